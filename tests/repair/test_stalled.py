"""Stalled work that no rule foresaw is found, told once, and told as settled when it has moved after all."""

import pytest

from common.clock import db_clock
from repair.models import RepairPacket
from repair.stalled import AFTER_S, AT_ONCE, LOST, NOT_EXPIRED, NOT_LOOKED_UP, NOT_TAKEN, SAYS, tell_stalled
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, age, as_superuser
from tests.workflows.toy import NOTHING_CAME
from workflows import sweep
from workflows.models import Command, Run, Step

pytestmark = pytest.mark.django_db
LATE = AFTER_S + 60


def look() -> int:
    return tell_stalled(by=SWEEP, clock=db_clock)


def packets(run_id: object) -> list[tuple[str, str, str]]:
    rows = RepairPacket.objects.filter(run_id=run_id, cause="stalled").order_by("opened_at")
    return list(rows.values_list("step", "status", "summary"))


def queued(desk: Desk) -> Run:
    return desk.start()


def step_of_a_lost_worker(desk: Desk) -> Run:
    run = desk.start()
    as_superuser(
        "UPDATE workflows_step SET status = 'running', due_at = NULL, lease_token = gen_random_uuid(),"
        " lease_until = now(), started_at = now() WHERE run_id = %s AND key = 'read'", run.pk,
    )  # fmt: skip
    return run


def ready(desk: Desk) -> Run:
    return desk.approved().run


def sent_and_lost(desk: Desk) -> Run:
    command = desk.approved()
    as_superuser(
        "UPDATE workflows_command SET status = 'sent', effect = 'unknown', due_at = NULL, tries = 1,"
        " lease_token = gen_random_uuid(), lease_until = now(), first_sent_at = now(), last_sent_at = now()"
        " WHERE id = %s", command.pk,
    )  # fmt: skip
    return command.run


def in_doubt(desk: Desk) -> Run:
    command = desk.approved()
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    return command.run


def undecided(desk: Desk) -> Run:
    proposal = desk.proposed()
    as_superuser("UPDATE approvals_proposal SET decide_by = now() WHERE id = %s", proposal.pk)
    return Run.objects.get(pk=proposal.run_id)


@pytest.mark.parametrize(
    ("make", "step", "says"),
    [
        (queued, "read", NOT_TAKEN),
        (step_of_a_lost_worker, "read", LOST),
        (ready, "pay", NOT_TAKEN),
        (sent_and_lost, "pay", LOST),
        (in_doubt, "pay", NOT_LOOKED_UP),
        (undecided, "pay", NOT_EXPIRED),
    ],
    ids=lambda it: getattr(it, "__name__", it),
)
def test_what_should_move_and_does_not_is_told_once(desk: Desk, make: object, step: str, says: str) -> None:
    run = make(desk)  # type: ignore[operator]
    assert look() == 0, "not yet"
    age(run.pk, LATE)
    assert look() == 1
    assert packets(run.pk) == [(step, "open", SAYS[says])]
    packet = RepairPacket.objects.get(cause="stalled")
    assert (packet.owner, packet.on_expiry, packet.ended_at) == ("toy-desk", "escalate", None)
    assert look() == 0, "once"
    packet.refresh_from_db()
    assert packet.escalations == 0


def test_when_it_has_moved_the_packet_ends(desk: Desk) -> None:
    run = desk.start()
    age(run.pk, LATE)
    assert sweep.look_further() == 1, "the sweep calls it"
    desk.advance()
    assert look() == 1
    packet = RepairPacket.objects.get(cause="stalled")
    assert (packet.status, packet.resolution) == ("resolved", "went_on")


def test_while_others_of_its_kind_are_worked_on_it_is_behind_and_not_stalled(desk: Desk) -> None:
    behind, taken = desk.start(), step_of_a_lost_worker(desk)
    age(behind.pk, LATE)
    Step.objects.filter(run=taken, status="running").update(lease_until=db_clock().replace(year=2100))
    assert look() == 0


def test_what_waits_for_a_doubt_on_its_record_is_told_of_there(desk: Desk) -> None:
    in_doubt(desk)
    as_superuser("UPDATE approvals_proposal SET business_key = 'hmac:other' WHERE status = 'approved'")
    as_superuser("UPDATE workflows_command SET business_key = 'hmac:other'")
    second = desk.approved()
    assert Command.objects.filter(target=second.target).count() == 2
    age(second.run_id, LATE, "workflows_command")
    assert look() == 0


def test_the_oldest_of_a_workflow_stand_for_the_others(desk: Desk) -> None:
    runs = [desk.start() for _ in range(AT_ONCE + 3)]
    for number, run in enumerate(runs):
        age(run.pk, LATE + 100 - number)
    look()
    look()
    told = set(RepairPacket.objects.filter(cause="stalled").values_list("run_id", flat=True))
    assert told == {run.pk for run in runs[:AT_ONCE]}
