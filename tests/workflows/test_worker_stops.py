"""Withdraw, supersede, cancel: each in every state that a command can be in when somebody thinks better of it."""

from typing import Any
from uuid import UUID

import pytest

from approvals.actions import NotYours, withdraw
from approvals.models import Proposal
from audit.models import Event
from common.clock import db_clock
from common.ids import new_id
from tests.factories import make_user
from tests.workflows.conftest import AGENT, Desk, state
from tests.workflows.later import SWEEP, age, end_of, fresh, look_up
from tests.workflows.test_worker_answers import CONFIRMED, answer
from tests.workflows.test_worker_unknown import HAPPENED, NOT_FOUND, SETTLED
from tests.workflows.toy import NOTHING_CAME, PAID
from workflows.actions import cancelling
from workflows.actions.cancelling import RunEnded, cancel_run
from workflows.actions.decided import TooLate
from workflows.actions.outside import AlreadySuperseded, OutsideProposal, propose_from_outside
from workflows.actions.runs import Source
from workflows.enums import Lane
from workflows.models import Command, Run
from workflows.worker.claim import Claim, claim_commands
from workflows.worker.loop import execute
from workflows.worker.send import commit_sent, look
from workflows.worker.store import store_answer

pytestmark = pytest.mark.django_db

STOPPABLE = ["ready", "claimed", "retry_wait"]
TOO_LATE = ["sent", "unknown"]


def propose(
    desk: Desk, *, amount: str = "10.00", supersedes: UUID | None = None, order: str = "1042"
) -> Proposal:
    arguments = {"order": order, "amount": amount, "currency": "EUR"}
    request = OutsideProposal(
        workflow="toy-outside", source=Source("agent", str(new_id()), key="1"), operation="toy.pay",
        arguments=arguments, reason="because", supersedes=supersedes,
    )  # fmt: skip
    return propose_from_outside(tenant=desk.tenant, request=request, by=AGENT, clock=db_clock).proposal


def claim_one() -> Claim:
    [claim] = claim_commands(limit=1, lane=Lane.NEW, worker="one", by=SWEEP, clock=db_clock)
    return claim


def brought(desk: Desk, status: str) -> tuple[Command, Claim | None]:
    """A command of an outside proposal in this state, and the claim of the worker that holds it."""
    proposal = propose(desk)
    desk.decide(proposal)
    command = Command.objects.get(proposal=proposal)
    if status == "ready":
        return command, None
    if status in ("retry_wait", "unknown"):
        desk.till.answers = [answer(429) if status == "retry_wait" else NOTHING_CAME]
        desk.work()
        desk.till.calls.clear()
        return fresh(command), None
    claim = claim_one()
    if status == "sent":
        held = Command.objects.select_related("proposal", "run").get(pk=command.pk)
        assert commit_sent(claim, look(claim, held), by=SWEEP, clock=db_clock)
    assert fresh(command).status == status
    return command, claim


def take_back(desk: Desk, command: Command) -> Proposal:
    return withdraw(
        tenant_id=desk.tenant.pk,
        proposal_id=command.proposal_id,
        reason="not needed",
        by=AGENT,
        clock=db_clock,
    )


def cancel(desk: Desk, run_id: UUID) -> str:
    return cancel_run(tenant_id=desk.tenant.pk, run_id=run_id, reason="not needed", by=AGENT, clock=db_clock)


def nothing_more_is_sent(desk: Desk, claim: Claim | None) -> None:
    if claim is not None:
        execute(claim, by=SWEEP, clock=db_clock)
    desk.work()
    assert desk.till.calls == []


# -- withdraw ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", STOPPABLE)
def test_withdrawn_before_it_is_sent(desk: Desk, status: str) -> None:
    command, claim = brought(desk, status)
    take_back(desk, command)
    assert end_of(command) == {
        "command": "void(withdrawn)", "effect": "none", "proposal": "withdrawn", "step": "skipped",
        "run": "completed", "packets": [],
    }  # fmt: skip
    assert Run.objects.get(pk=command.run_id).outcome == "withdrawn"
    nothing_more_is_sent(desk, claim)
    assert take_back(desk, command).status == "withdrawn"  # again: the same answer


@pytest.mark.parametrize("status", TOO_LATE)
def test_withdrawn_after_it_was_sent_is_too_late(desk: Desk, status: str) -> None:
    command, _ = brought(desk, status)
    with pytest.raises(TooLate) as refused:
        take_back(desk, command)
    assert refused.value.details == {"command_id": str(command.pk)}
    assert (fresh(command).status, Proposal.objects.get().status) == (status, "approved")


def test_only_the_proposer_withdraws(desk: Desk) -> None:
    from dataclasses import replace

    command, _ = brought(desk, "ready")
    with pytest.raises(NotYours):
        withdraw(
            tenant_id=desk.tenant.pk, proposal_id=command.proposal_id, reason="x", clock=db_clock,
            by=replace(AGENT, performed_by="api:another"),
        )  # fmt: skip
    assert fresh(command).status == "ready"


# -- supersede ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", STOPPABLE)
def test_superseded_before_it_is_sent(desk: Desk, status: str) -> None:
    """Field report C1: what is dropped is not executed, and its votes are not carried over."""
    command, claim = brought(desk, status)
    successor = propose(desk, amount="7.00", supersedes=command.proposal_id)
    assert end_of(command) == {
        "command": "void(superseded)", "effect": "none", "proposal": "superseded", "step": "waiting(approval)",
        "run": "waiting_for_approval", "packets": [],
    }  # fmt: skip
    assert (successor.run_id, successor.step, successor.version, successor.status) == (
        command.run_id, "action", 2, "pending",
    )  # fmt: skip
    assert not successor.decisions.exists()
    nothing_more_is_sent(desk, claim)
    with pytest.raises(AlreadySuperseded):
        propose(desk, amount="6.00", supersedes=command.proposal_id)
    desk.decide(successor)
    desk.till.answers = [PAID]
    desk.work()
    assert end_of(Command.objects.get(proposal=successor)) == CONFIRMED | {"run": "completed"}
    assert [str(call.arguments.amount) for call in desk.till.calls] == ["7.00"]


def test_the_key_grows_only_with_a_certain_end_and_another_action(desk: Desk) -> None:
    """Design, section 5: the generation. Nothing happened and another amount: a new key; the same again: the old."""
    first, _ = brought(desk, "ready")
    other = propose(desk, amount="7.00", supersedes=first.proposal_id)
    assert (other.generation, other.idempotency_key == first.idempotency_key) == (2, False)
    same = propose(desk, amount="10.00", supersedes=other.pk)
    assert (same.generation, same.idempotency_key) == (1, first.idempotency_key)


@pytest.mark.parametrize("status", TOO_LATE)
def test_superseded_after_it_was_sent_is_too_late(desk: Desk, status: str) -> None:
    command, _ = brought(desk, status)
    with pytest.raises(TooLate):
        propose(desk, amount="7.00", supersedes=command.proposal_id)
    assert (fresh(command).status, Proposal.objects.count()) == (status, 1)


# -- cancel ------------------------------------------------------------------------------------------------------

CANCELLED = {
    "command": "cancelled", "effect": "none", "proposal": "withdrawn", "step": "cancelled", "run": "cancelled",
    "packets": [],
}  # fmt: skip


@pytest.mark.parametrize("status", STOPPABLE)
def test_cancelled_before_it_is_sent(desk: Desk, status: str) -> None:
    command, claim = brought(desk, status)
    assert cancel(desk, command.run_id) == "cancelled"
    assert end_of(command) == CANCELLED
    nothing_more_is_sent(desk, claim)
    assert cancel(desk, command.run_id) == "cancelled"


def test_cancelled_while_sent_it_is_a_wish_and_a_confirmed_effect_stands(desk: Desk) -> None:
    """Field report A8: no second send, and the attempt finishes."""
    command, claim = brought(desk, "sent")
    assert claim is not None
    assert cancel(desk, command.run_id) == "cancel_requested"
    assert fresh(command).status == "sent"
    store_answer(claim, PAID, by=SWEEP, clock=db_clock)
    assert end_of(command) == CONFIRMED | {"run": "completed"}
    with pytest.raises(RunEnded):
        cancel(desk, command.run_id)


@pytest.mark.parametrize("seen", [answer(429), NOTHING_CAME], ids=["throttled", "no answer"])
def test_a_wish_to_cancel_is_granted_once_nothing_happened_for_certain(desk: Desk, seen: Any) -> None:
    command, claim = brought(desk, "sent")
    assert claim is not None
    cancel(desk, command.run_id)
    store_answer(claim, seen, by=SWEEP, clock=db_clock)
    if seen is NOTHING_CAME:
        assert fresh(command).status == "unknown"
        age(command.run_id, SETTLED)
        desk.till.findings = [NOT_FOUND]
        assert look_up(command)
        assert fresh(command).settled_by == "lookup"
    assert end_of(command) == CANCELLED
    nothing_more_is_sent(desk, None)


def test_cancelled_while_unknown_and_then_found(desk: Desk) -> None:
    command, _ = brought(desk, "unknown")
    assert cancel(desk, command.run_id) == "cancel_requested"
    desk.till.findings = [HAPPENED]
    look_up(command)
    assert end_of(command) == CONFIRMED | {"run": "completed"}


def test_cancelled_while_pending(desk: Desk) -> None:
    proposal = desk.proposed()
    assert cancel(desk, proposal.run_id) == "cancelled"
    assert Proposal.objects.get().status == "withdrawn"
    assert state(proposal.run_id) == (
        "cancelled", {"read": "completed", "judge": "completed", "pay": "cancelled", "tell": "cancelled"},
    )  # fmt: skip
    [event] = Event.objects.filter(kind="run.cancelled")
    assert event.performed_by == "api:tester"


def test_a_proposal_made_while_the_cancel_waited_is_withdrawn_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids are read without a lock: what came between the reading and the locking is seen under it."""
    proposal = desk.proposed()
    reads = iter([[]])
    real = cancelling._live_proposals
    monkeypatch.setattr(cancelling, "_live_proposals", lambda *a: next(reads, None) or real(*a))
    assert cancel(desk, proposal.run_id) == "cancelled"
    assert Proposal.objects.get().status == "withdrawn"


def test_after_a_wish_to_cancel_no_further_action_is_proposed(desk: Desk) -> None:
    run = desk.start()
    desk.advance()
    desk.decide(Proposal.objects.get())
    claim = claim_one()
    command = Command.objects.get()
    held = Command.objects.select_related("proposal", "run").get(pk=command.pk)
    commit_sent(claim, look(claim, held), by=SWEEP, clock=db_clock)
    assert cancel(desk, run.pk) == "cancel_requested"
    store_answer(claim, PAID, by=SWEEP, clock=db_clock)
    from tests.workflows.toy import _default

    desk.till.stages["tell"] = lambda context: _default("pay", context)
    desk.advance()
    assert Proposal.objects.count() == 1
    assert state(run.pk) == (
        "cancelled", {"read": "completed", "judge": "completed", "pay": "completed", "tell": "cancelled"},
    )  # fmt: skip


def test_the_second_proposal_for_one_thing_waits_for_the_first(desk: Desk) -> None:
    from approvals.refusals import ActionInProgress

    first = propose(desk)
    second = propose(desk)
    desk.decide(first)
    with pytest.raises(ActionInProgress) as refused:
        desk.decide(second, user=make_user(desk.tenant, "cleo"))
    assert refused.value.details == {"command_id": str(Command.objects.get().pk)}
    assert Proposal.objects.get(pk=second.pk).status == "pending"
    assert not second.decisions.exists()
