"""Whatever honest life an order had, its export holds: held and let go, not sent, looked up, tried again, erased."""

from pathlib import Path

import pytest

from tests.audit.bundling import Auditor, found, lines, sign, taken
from tests.workflows.conftest import Desk, desk
from tests.workflows.later import as_superuser, fresh, look_up
from tests.workflows.test_erasing import erase
from tests.workflows.test_freezing import frozen, hold_back, release, unfreeze
from tests.workflows.test_legal_holds import lift, place
from tests.workflows.test_worker_answers import answer
from tests.workflows.test_worker_unknown import NOT_FOUND, SETTLED, claimed
from tests.workflows.toy import NOT_SENT, NOTHING_CAME
from workflows import sweep
from workflows.models import Command, Run

__all__ = ["desk"]
pytestmark = pytest.mark.django_db


DUE = "UPDATE workflows_command SET due_at = now() - interval '1 second'"


@pytest.fixture
def auditor(tmp_path: Path) -> Auditor:
    return Auditor(tmp_path)


def held_and_let_go(desk: Desk) -> Command:
    command = desk.approved()
    hold = frozen(desk)
    assert hold_back() == 1
    unfreeze(hold)
    while release():
        pass
    return command


def not_sent(desk: Desk) -> Command:
    command = desk.approved()
    desk.till.answers = [NOT_SENT]
    desk.work()
    assert fresh(command).status == "ready"
    as_superuser(DUE)
    return command


def throttled(desk: Desk) -> Command:
    command = desk.approved()
    desk.till.answers = [answer(429)]
    desk.work()
    assert fresh(command).status == "retry_wait"
    as_superuser(DUE)
    return command


def worker_lost(desk: Desk) -> Command:
    command, _ = claimed(desk)
    as_superuser("UPDATE workflows_command SET lease_until = now() - interval '1 minute'")
    sweep.look_around()
    assert fresh(command).status == "ready"
    return command


def looked_up(desk: Desk) -> Command:
    command = desk.approved()
    desk.till.answers, desk.till.findings = [NOTHING_CAME], [NOT_FOUND]
    desk.work()
    as_superuser(
        f"UPDATE workflows_command SET last_sent_at = last_sent_at - interval '{SETTLED} seconds',"
        f" first_sent_at = first_sent_at - interval '{SETTLED} seconds'"
    )
    look_up(command)
    assert fresh(command).status == "ready"
    return command


LIVES = {
    "let go": held_and_let_go,
    "not sent": not_sent,
    "throttled": throttled,
    "worker lost": worker_lost,
    "looked up": looked_up,
}


@pytest.mark.parametrize("life", LIVES)
def test_it_holds(desk: Desk, auditor: Auditor, life: str) -> None:
    command = LIVES[life](desk)
    desk.work()
    desk.advance()
    assert fresh(command).status == "confirmed"
    auditor.keep(sign(desk.tenant.pk))
    report = auditor.verify(taken(desk.tenant))
    assert (found(report), report.lacks) == ((0, ""), [])


def test_it_holds_with_its_content_erased_and_says_so(desk: Desk, auditor: Auditor) -> None:
    command = desk.approved()
    desk.work()
    desk.advance()
    lift(desk, place(desk, target=command.target))
    assert erase(desk, Run.objects.get(pk=command.run_id)).done
    auditor.keep(sign(desk.tenant.pk))
    bundle = taken(desk.tenant)
    report = auditor.verify(bundle)
    assert (found(report), report.lacks) == ((0, ""), [])
    [contract] = lines(bundle, "contracts.jsonl")
    assert (contract["contract"], contract["erased"]) == (None, True)
