"""For all that stops exactly one packet is open, with cause, owner and clock: each is driven through the product."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from approvals.actions import expire_due
from audit.models import Event
from common.clock import db_clock
from repair.models import RepairPacket
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, age, as_superuser, recover
from tests.workflows.toy import NOT_SENT, NOTHING_CAME
from workflows.actions.overdue import handle_overdue
from workflows.authoring import Observation, WaitForData
from workflows.engine.run import release_lost_steps
from workflows.enums import Lane
from workflows.models import Command, Run
from workflows.operations import Verdict
from workflows.results import CredentialRefused, SourceDown, ToPerson
from workflows.worker.claim import claim_commands
from workflows.worker.recover import void_lapsed

pytestmark = pytest.mark.django_db
Stopped = Callable[[Desk], Any]
"""Drives one run until it has stopped; returns the run's id."""


def answered(**seen: Any) -> Stopped:
    def drive(desk: Desk) -> Any:
        command = desk.approved()
        desk.till.answers = [Observation(sent=True, **seen)]
        desk.work()
        return command.run_id

    return drive


def no_answer(desk: Desk) -> Any:
    command = desk.approved()
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    return command.run_id


def lost_worker_after_sending(desk: Desk) -> Any:
    command = desk.approved()
    as_superuser(
        "UPDATE workflows_command SET status = 'sent', effect = 'unknown', due_at = NULL, tries = 1,"
        " lease_token = gen_random_uuid(), lease_until = now() - interval '1 minute', first_sent_at = now(),"
        " last_sent_at = now() WHERE id = %s", command.pk,
    )  # fmt: skip
    recover()
    return command.run_id


def provider_down(desk: Desk) -> Any:
    """Not reached, again and again, until tries are over."""
    command = desk.approved()
    for _ in range(6):
        desk.till.answers = [NOT_SENT]
        desk.work()
        age(command.run_id, 20, "workflows_command")
    return command.run_id


def lapsed(desk: Desk) -> Any:
    command = desk.approved()
    age(command.run_id, 3600)
    void_lapsed(by=SWEEP, clock=db_clock)
    return command.run_id


def record_changed(desk: Desk) -> Any:
    command = desk.approved()
    desk.till.tags["1042"] = "v2"
    desk.work()
    return command.run_id


def contract_changed(desk: Desk) -> Any:
    """Field report A14."""
    command = desk.approved()
    as_superuser("UPDATE approvals_proposal SET contract = %s WHERE id = %s", b"{}", command.proposal_id)
    desk.work()
    return command.run_id


def earlier_effect(desk: Desk) -> Any:
    command = desk.approved()
    desk.till.earlier = ("re_0",)
    desk.work()
    return command.run_id


def stage(**planned: Any) -> Stopped:
    def drive(desk: Desk) -> Any:
        desk.till.stages.update(planned)
        run = desk.start()
        desk.advance()
        return run.pk

    return drive


def raising(error: Exception) -> Callable[[Any], Any]:
    def run(context: Any) -> Any:
        raise error

    return run


def source_down_past_its_budget(desk: Desk) -> Any:
    desk.till.stages["read"] = raising(SourceDown("till"))
    run = desk.start()
    for _ in range(7):
        desk.advance()
        age(run.pk, 130, "workflows_step")
    return run.pk


def worker_killer(desk: Desk) -> Any:
    """A step whose worker ends each time."""
    from workflows.engine.claim import claim_step

    run = desk.start()
    for _ in range(6):
        claim_step(lane=Lane.NEW, by=SWEEP, clock=db_clock)
        age(run.pk, 60, "workflows_step")
        release_lost_steps(by=SWEEP)
        age(run.pk, 60, "workflows_step")
    return run.pk


def command_killer(desk: Desk) -> Any:
    command = desk.approved()
    for _ in range(7):
        claim_commands(limit=1, lane=Lane.NEW, worker="w", by=SWEEP, clock=db_clock)
        claim_commands(limit=1, lane=Lane.REPROCESS, worker="w", by=SWEEP, clock=db_clock)
        age(command.run_id, 60, "workflows_command")
        recover()
        age(command.run_id, 60, "workflows_command")
    return command.run_id


def undecided(desk: Desk) -> Any:
    proposal = desk.proposed()
    age(proposal.run_id, 5 * 3600)
    expire_due(clock=db_clock)
    return proposal.run_id


def data_not_supplied(desk: Desk) -> Any:
    desk.till.stages["judge"] = WaitForData("Which?", {"properties": {}}, timedelta(hours=1))
    run = desk.start()
    desk.advance()
    age(run.pk, 3601)
    handle_overdue(by=SWEEP, clock=db_clock)
    return run.pk


def nobody_may(desk: Desk) -> Any:
    desk.till.verdict = Verdict("ask_one", "toy.ask", "It is a toy.", group="An empty group")
    run = desk.start()
    desk.advance()
    return run.pk


def changes_wanted(desk: Desk) -> Any:
    proposal = desk.proposed()
    desk.decide(proposal, "request_changes", reason="smaller")
    return proposal.run_id


CASES: dict[str, tuple[str, Stopped]] = {
    "unknown outcome": ("command_unknown", no_answer),
    "an odd status is no answer": ("command_unknown", answered(status=500)),
    "its worker was lost after it had sent": ("command_unknown", lost_worker_after_sending),
    "its key stands for something else": ("command_key_reused", answered(status=422, code="key_reused")),
    "refused": ("command_refused", answered(status=422, code="closed")),
    "credential refused by the provider": ("command_dead", answered(status=401)),
    "provider down past its budget": ("command_dead", provider_down),
    "a row that ends its worker": ("command_dead", command_killer),
    "void, its time was over": ("command_lapsed", lapsed),
    "void, the record changed": ("command_pin", record_changed),
    "void, other bytes than approved": ("command_digest", contract_changed),
    "done before": ("command_dead", earlier_effect),
    "failed stage": ("stage_broke", stage(read=raising(ZeroDivisionError()))),
    "a stage that asks for a person": ("odd_case", stage(judge=ToPerson("odd_case"))),
    "source down past its budget": ("source_down", source_down_past_its_budget),
    "credential refused by a source": ("credential_refused", stage(read=raising(CredentialRefused("no")))),
    "a step that ends its worker": ("quarantined", worker_killer),
    "expired, and so for people": ("approval_expired", undecided),
    "data not supplied in time": ("data_not_supplied", data_not_supplied),
    "nobody eligible": ("nobody_eligible", nobody_may),
    "changes requested": ("changes_requested", changes_wanted),
}


@pytest.mark.parametrize("name", CASES)
def test_one_packet_is_open_with_cause_owner_and_clock(desk: Desk, name: str) -> None:
    cause, drive = CASES[name]
    run = Run.objects.get(pk=drive(desk))
    open_ = list(RepairPacket.objects.filter(run=run, ended_at=None))
    assert [packet.cause for packet in open_] == [cause]
    [packet] = open_
    assert (packet.owner, packet.on_expiry, packet.escalations) == ("toy-desk", "escalate", 0)
    assert packet.waiting_until > db_clock()
    assert packet.step in {step.key for step in run.steps.all()}
    assert packet.summary.endswith(".")
    if cause.startswith("command_"):
        assert packet.command_id == Command.objects.get(run=run).pk
    assert Event.objects.filter(kind="packet.opened", subject_id=packet.pk, run_id=run.pk).count() == 1


def test_an_approval_that_lost_its_reviewer_is_asked_again_and_needs_no_packet(desk: Desk) -> None:
    from access.models import Membership

    command = desk.approved()
    Membership.objects.filter(user=desk.ada).update(is_active=False)
    desk.work()
    assert not RepairPacket.objects.filter(run_id=command.run_id, ended_at=None).exists()
    assert Run.objects.get(pk=command.run_id).status == "waiting_for_approval"
