"""Doctor on processes, people and what stands still."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from access.enums import Role
from access.models import Membership
from audit.actions import record
from audit.actors import clock_actor
from audit.checks import check_chain
from audit.sealer import seal
from common.clock import db_clock
from common.heartbeat import beat, note
from tests.api.callers import token_for
from tests.config.examined import found, says
from tests.factories import make_command, make_group, make_packet, make_proposal, make_tenant, make_user
from tests.workflows.later import age, as_superuser
from tests.workflows.test_freezing import ROOT
from workflows import registry
from workflows.actions.freezing import Scope, freeze

pytestmark = pytest.mark.django_db


def later(seconds: float) -> None:
    as_superuser("UPDATE common_heartbeat SET seen_at = seen_at - make_interval(secs => %s)", seconds)


def event(tenant_id: Any) -> None:
    with transaction.atomic():
        record(
            by=clock_actor(), kind="tenant.created", tenant_id=tenant_id, subject_type="tenant",
            subject_id=tenant_id,
        )  # fmt: skip


# -- processes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "check", "level"),
    [("sweep", "sweep", "problem"), ("worker", "workers", "warning"), ("beat", "beat", "warning")],
)
def test_a_process_that_shows_no_sign_any_more(kind: str, check: str, level: str) -> None:
    says(check, level, "none was ever seen")
    note(kind, "here-1")
    assert found(check).level == "ok"
    later(300)
    says(check, level, "the last sign was 5 min ago")


def test_events_without_a_seal() -> None:
    event(make_tenant().pk)
    assert found("sealer").level == "ok", "for the moment"
    as_superuser("UPDATE audit_event SET at = at - interval '5 minutes'")
    says("sealer", "problem", "1 events have no seal; the oldest has waited for 5 min")
    seal(db_clock)
    assert found("sealer").level == "ok"


def test_a_version_that_no_process_has() -> None:
    make_command(status="ready", operation_version=7)
    says("operations", "problem", "no process runs")
    beat("sweep", registry.known_names())
    as_superuser("UPDATE common_heartbeat SET knows = '[\"refunds.issue@1\"]'")
    note("worker", "other")
    says("operations", "problem", "No running process can execute refunds.issue@7 (1 actions)")
    as_superuser("UPDATE common_heartbeat SET knows = '[\"refunds.issue@7\"]' WHERE kind = 'worker'")
    assert found("operations").level == "ok"
    later(300)
    assert found("operations").level == "problem", "it knew, and is gone"


# -- what stands still ----------------------------------------------------------------------------------------------


def test_work_that_nobody_takes() -> None:
    assert found("due").level == "ok"
    make_command(status="ready", due_at=db_clock() - timedelta(minutes=10))
    says("due", "problem", "the oldest command has been due for 10 min")


def test_outcomes_that_nobody_knows() -> None:
    command = make_command(status="unknown")
    says("unknown", "ok", "Of 1 actions nobody knows")
    age(command.run_id, 3000, "workflows_command")
    says("unknown", "warning", "the oldest was sent 50 min ago")


def test_packets_that_wait_too_long() -> None:
    packet = make_packet()
    assert found("packets").level == "ok"
    as_superuser(
        "UPDATE repair_repairpacket SET waiting_until = now() - interval '1 hour' WHERE id = %s", packet.pk
    )
    says("packets", "warning", "1 things that stopped wait for longer")


def test_a_freeze() -> None:
    assert found("holds").level == "ok"
    freeze(scope=Scope(None), why="Maintenance.", by=ROOT, clock=db_clock)
    says("holds", "warning", "1 freezes and 0 open circuits")


def test_a_history_that_was_changed() -> None:
    tenant = make_tenant().pk
    event(tenant)
    seal(db_clock)
    says("history", "warning", "1 histories were never checked")
    check_chain(tenant, by=clock_actor())
    seal(db_clock)
    says("history", "ok", "1 histories held")
    as_superuser("UPDATE audit_event SET at = at - interval '5 days' WHERE kind = 'chain.verified'")
    says("history", "warning", "the oldest check is 5 days old")
    as_superuser("UPDATE audit_event SET reason = 'changed' WHERE kind = 'tenant.created'")
    check_chain(tenant, by=clock_actor())
    says("history", "problem", "does not hold")


def test_backups_are_noted() -> None:
    says("backup", "warning", "No backup was ever noted")
    call_command("note_backup", "--name", "nightly", stdout=StringIO())
    says("backup", "ok", "The last backup (nightly) was noted")
    later(3 * 86_400)
    says("backup", "warning", "The last backup was noted 3 days ago")


# -- people ---------------------------------------------------------------------------------------------------------


def test_tokens_that_end_soon() -> None:
    tenant = make_tenant("harbour")
    token_for(tenant)
    as_superuser("UPDATE access_apitoken SET expires_at = now() + interval '30 days'")
    assert found("tokens").level == "ok"
    as_superuser("UPDATE access_apitoken SET expires_at = now() + interval '3 days'")
    says("tokens", "warning", "1 API tokens end within 7 days, 0 of them within one: harbour/")
    as_superuser("UPDATE access_apitoken SET revoked_at = now()")
    assert found("tokens").level == "ok"


def test_people_without_a_second_factor() -> None:
    tenant = make_tenant()
    admin, reviewer = make_user(tenant, roles=[Role.ADMIN]), make_user(tenant)
    says("second_factors", "warning", "2 people sign in with a password alone, 1 of them")
    for user in (admin, reviewer):
        as_superuser(
            "INSERT INTO mfa_authenticator (user_id, type, data, created_at) VALUES (%s, 'totp', '{}', now())",
            user.pk,
        )
    assert found("second_factors").level == "ok"


def test_questions_that_nobody_may_decide() -> None:
    tenant = make_tenant("harbour")
    group = make_group(tenant, "Finance")
    asker = make_user(tenant, groups=[group])
    make_proposal(tenant=tenant, group=group, excluded_users=[asker.pk])
    make_user(tenant, roles=[Role.ADMIN], groups=[group])
    make_user(tenant, groups=[make_group(tenant, "Another desk")])
    says("eligible", "warning", "1 for Finance of harbour")
    other = make_user(tenant, groups=[group])
    assert found("eligible").level == "ok"
    Membership.objects.filter(user=other).update(is_active=False)
    assert found("eligible").level == "warning"
