"""What real workers and a real sweep write while things go right and wrong: no personal word, and no key of a provider.

`tests/security/test_canaries.py` looks at all else, in the test's own process.
"""

import dataclasses
import signal
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from django.conf import settings
from django.db import connections

from approvals.actions import decide
from approvals.models import Proposal
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from common.ids import new_id
from tests.e2e.fleet import AGENT, Fleet, eventually
from tests.examples.refunds.conftest import KEY
from tests.security.test_broken_seals import damage
from tests.security.test_canaries import _value, forms
from workflows.actions.outside import OutsideProposal, propose_from_outside
from workflows.actions.runs import Source
from workflows.models import Command

pytestmark = pytest.mark.e2e
PERSONAL = ("kanari-mail", "kanari-reason", "kanari-vote")


def approved(fleet: Fleet) -> Command:
    """A refund with a person in its arguments, in what the automation says, and in what the reviewer says."""
    arguments = fleet.arguments() | {"receipt_to": "kanari-mail@example.com"}
    request = OutsideProposal(
        workflow="refund-desk-agent", source=Source("agent", str(new_id()), key="1"), operation="refunds.issue",
        arguments=arguments, reason="kanari-reason says so.",
    )  # fmt: skip
    proposal = propose_from_outside(tenant=fleet.tenant, request=request, by=AGENT, clock=db_clock).proposal
    by = Actor(f"user:{fleet.reviewer.pk}", Via.SESSION, Owner.PERSON, user_id=fleet.reviewer.pk)
    yes = dataclasses.replace(fleet._yes(proposal), reason="kanari-vote agrees.")
    decide(tenant_id=fleet.tenant.pk, proposal_id=proposal.pk, submission=yes, clock=db_clock, by=by)
    return Command.objects.get(proposal=proposal)


def statuses(commands: list[Command]) -> set[str]:
    found = Command.objects.filter(pk__in=[command.pk for command in commands])
    return set(found.values_list("status", flat=True))


def found_in(text: str) -> list[str]:
    return [word for word in (*PERSONAL, KEY) if any(form in text for form in forms(word))]


def queries_of_others() -> str:
    """What the server shows of every connection to whoever may look: names of programs, and last statements."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT application_name, query FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        return repr(cursor.fetchall())


def redis_as_text() -> str:
    client: Any = redis.Redis(unix_socket_path=urlsplit(settings.CELERY_BROKER_URL).path)
    return "".join(repr((key, client.dump(key), _value(client, key))) for key in client.scan_iter())


def test_logs_of_processes_and_what_they_show_have_no_personal_word(fleet: Fleet) -> None:
    damaged, lost = approved(fleet), approved(fleet)
    others = [approved(fleet) for _ in range(3)]
    other_rows = Proposal.objects.exclude(pk=damaged.proposal_id).values_list("pk", flat=True)
    keep = {pk: _stored(pk) for pk in other_rows}
    damage(Proposal, "contract")
    for pk, stored in keep.items():
        _put_back(pk, stored)
    fleet.provider.process.send_signal(signal.SIGSTOP)
    fleet.start_worker()
    fleet.processes.sweep("--every", "0.2")
    seen: list[str] = []
    try:
        eventually(
            lambda: statuses([damaged]) == {"void"}, seconds=120,
            between=lambda: seen.append(queries_of_others() + redis_as_text()),
        )  # fmt: skip
    finally:
        fleet.provider.process.send_signal(signal.SIGCONT)
    eventually(
        lambda: statuses([lost, *others]) <= {"confirmed", "unknown", "dead"}, seconds=180,
        between=lambda: seen.append(queries_of_others() + redis_as_text()),
    )  # fmt: skip
    fleet.processes.stop_all()
    logs = fleet.processes.log("worker") + fleet.processes.log("sweep")
    assert len(logs) > 200
    assert found_in(logs) == []
    assert found_in("".join(seen)) == []


def _stored(pk: Any) -> bytes:
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT contract FROM approvals_proposal WHERE id = %s", [pk])
        return bytes(cursor.fetchone()[0])


def _put_back(pk: Any, stored: bytes) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE approvals_proposal SET contract = %s WHERE id = %s", [stored, pk])
