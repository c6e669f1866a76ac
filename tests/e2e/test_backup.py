"""A backup brings everything back, and nothing is done twice that was done after it was made.

With the tools that `docs/operating.md` names, in the order in which it names them.
"""

import subprocess
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connections
from psycopg import sql

from access.enums import Role
from approvals.actions import decide
from approvals.models import Proposal
from audit.actors import Actor, Owner, Via
from audit.sealer import seal
from common.clock import db_clock
from launch.postgres import find_home
from launch.process import stop
from tests.config.examined import says
from tests.e2e.fleet import Fleet, eventually
from tests.e2e.outages import beside
from tests.factories import make_user
from workflows.actions.asking_again import ask_again
from workflows.doorbell import ring
from workflows.models import Command, Hold

pytestmark = [pytest.mark.django_db, pytest.mark.e2e]


def run(program: str, *arguments: str) -> None:
    """A client program of PostgreSQL on the test's database."""
    settings = connections["owner"].settings_dict
    where = ("--host", settings["HOST"], "--username", settings["USER"])
    command = [str(find_home() / "bin" / program), *where, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def name() -> str:
    return str(connections["owner"].settings_dict["NAME"])


def back_up(to: Path) -> Path:
    run("pg_dump", "--format", "custom", "--file", str(to), name())
    return to


def restore(backup: Path) -> None:
    """Into a new database made of template0: in a prepared one, tables would get rights that the backup takes back."""
    with beside() as admin:
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name())))
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name())))
    run("pg_restore", "--exit-on-error", "--dbname", name(), str(backup))
    connections.close_all()


def confirmed(command: Command) -> bool:
    return Command.objects.get(pk=command.pk).status == "confirmed"


def execute(fleet: Fleet, *commands: Command) -> None:
    """By a sweep that is stopped afterwards, as everything is before a restore."""
    sweep = fleet.processes.sweep("--every", "0.2")
    eventually(lambda: all(confirmed(command) for command in commands), seconds=120, between=ring)
    stop(sweep, 15, grace=20)


def test_a_restored_backup(fleet: Fleet, tmp_path: Path) -> None:
    [before] = fleet.approve(1)
    execute(fleet, before)
    [approved] = fleet.approve(1)
    waiting = fleet.proposed()
    backup = back_up(tmp_path / "placet.dump")
    execute(fleet, approved)  # after the backup, which does not know
    assert set(fleet.effects().values()) == {1}
    restore(backup)
    assert Command.objects.get(pk=approved.pk).status == "ready", "as the backup says"
    assert Proposal.objects.get(pk=waiting.pk).status == "pending"

    said = StringIO()
    call_command("after_restore", stdout=said)
    assert "1 actions are in doubt" in said.getvalue()
    assert "1 open questions" in said.getvalue()
    says("history_rights", "ok", "nothing else")
    says("role", "ok", "owns nothing")
    says("migrations", "ok", "applied")
    seal(db_clock)
    call_command("verify_audit", stdout=StringIO())

    execute(fleet, approved)  # by asking the provider: it was done
    assert Command.objects.get(pk=approved.pk).tries == 0
    again = asked_again(fleet, waiting)
    [hold] = Hold.objects.exclude(status="lifted")
    call_command("lift", str(hold.pk), "--why", "all is reconciled", stdout=StringIO())
    last = Command.objects.get(proposal=again)
    execute(fleet, last)
    fleet.each_took_effect_once([before, approved, last])
    seal(db_clock)
    call_command("verify_audit", stdout=StringIO())


def asked_again(fleet: Fleet, old: Proposal) -> Proposal:
    """The question that waited is asked anew by an operator, and decided."""
    operator = make_user(fleet.tenant, roles=[Role.OPERATOR])
    by = Actor(f"user:{operator.pk}", Via.SESSION, Owner.PERSON, user_id=operator.pk)
    asked = ask_again(tenant_id=fleet.tenant.pk, run_id=old.run_id, step=old.step, by=by, clock=db_clock)
    person = Actor(f"user:{fleet.reviewer.pk}", Via.SESSION, Owner.PERSON, user_id=fleet.reviewer.pk)
    decide(
        tenant_id=fleet.tenant.pk, proposal_id=asked.pk, submission=fleet._yes(asked), clock=db_clock, by=person
    )  # fmt: skip
    return asked
