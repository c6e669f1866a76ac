"""A command under its locks, and how it moves: the parts that send, store, recover and reconcile share."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from approvals.actions import lock_proposal, save_moved
from approvals.models import Proposal
from audit.actors import Actor
from common.clock import Clock
from common.tx import require_transaction
from workflows import registry
from workflows.actions.cancelling import cancel_steps
from workflows.actions.decided import move_command, save_command
from workflows.actions.proposing import can_reissue, reissue
from workflows.actions.settle import (
    case_or_none,
    end_by_case,
    lock_run,
    save_step,
    settle_run,
    steps_of,
)
from workflows.endings import StepEnd, apply_ending
from workflows.enums import CommandStatus, HoldReason, SettledBy
from workflows.hooks import Stop, settled, stopped
from workflows.models import Attempt, Command, Hold, Run, Step
from workflows.scope import holds_in_force
from workflows.settling import Move, Settlement
from workflows.waits import wait_for_person


@dataclass
class Held:
    """Proposal and command, locked in that order; ``now`` was read after the locks."""

    proposal: Proposal
    command: Command
    by: Actor
    now: datetime
    clock: Clock

    @property
    def operation(self) -> Any:
        return registry.operation(self.command.operation, self.command.operation_version)

    def move(self, move: str, why: str = "", /, **arguments: Any) -> None:
        """Make one transition of the command, save it and write its event."""
        move_command(self.command, move, self.by, why, digest=self.proposal.digest, **arguments)

    @cached_property
    def hold_on(self) -> Hold | None:
        """The freeze or open circuit that this command falls under. True until commit only within the scope lock."""
        return holds_in_force([self.command.tenant_id]).on(self.command, self.proposal)

    @property
    def is_frozen(self) -> bool:
        return self.hold_on is not None and self.hold_on.reason == HoldReason.FREEZE

    @property
    def circuit_is_open(self) -> bool:
        return self.hold_on is not None and self.hold_on.reason == HoldReason.CIRCUIT

    @cached_property
    def attempt(self) -> Attempt | None:
        """The latest physical try; no other begins while the command is locked."""
        return Attempt.objects.filter(command=self.command).order_by("-number").first()


def hold(
    tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock, token: UUID | None = None
) -> Held | None:
    """Lock proposal and command. With a token: None unless it is still the row's, so a stale worker moves nothing."""
    require_transaction()
    proposal = lock_proposal(tenant_id, proposal_id)
    rows = Command.objects.select_for_update(of=("self",), no_key=True).filter(
        tenant_id=tenant_id, proposal_id=proposal_id
    )
    command = (rows.filter(lease_token=token) if token is not None else rows).first()
    return Held(proposal, command, by, clock(), clock) if command is not None else None


# -- moves ------------------------------------------------------------------------------------------------------


def make_move(
    held: Held, settlement: Settlement, *, due_at: datetime, code: str = "", by: SettledBy = SettledBy.CHECK
) -> None:
    """Make a settlement's move on the command and save it; an end is carried over to proposal, step and run."""
    before, why = held.command.status, code or str(settlement.void_reason or "")
    match settlement.move:
        case Move.STAY:
            _stay_held(held)
            return
        case Move.FREE:
            held.move("free", why, due_at=due_at)
        case Move.HOLD:
            assert settlement.hold_reason is not None
            held.move("hold_back", settlement.hold_reason, reason=settlement.hold_reason, hold=held.hold_on)
        case Move.VOID:
            assert settlement.void_reason is not None
            held.move("make_void", why, at=held.now, reason=settlement.void_reason, by=by)
        case Move.CANCEL:
            held.move("cancel", why, at=held.now, by=by)
        case other:
            raise AssertionError(f"{other} is no settlement")
    conclude(held, was_unknown=before == CommandStatus.UNKNOWN)


def _stay_held(held: Held) -> None:
    """What held it is lifted, and something else holds it still: from now on it waits for that."""
    command, other = held.command, held.hold_on
    if command.status == CommandStatus.HELD and other is not None and other.pk != command.hold_id:
        command.hold, command.hold_reason = other, HoldReason(other.reason)
        save_command(command, command.status, by=held.by, reason="still held", digest=held.proposal.digest)


def conclude(held: Held, *, was_unknown: bool = False) -> None:
    """After the command was saved: carry an end over, and let the run's status follow."""
    run = lock_run(held.command.tenant_id, held.command.run_id)
    steps = steps_of(run)
    step = next(step for step in steps if step.pk == held.command.step_id)
    if held.command.status in CommandStatus.final_states:
        _carry_over(held, run, step, steps)
    elif was_unknown:
        settled(run, step.key, "did_not_happen", by=held.by, at=held.now)
    settle_run(run, by=held.by, now=held.now, steps=steps)


def _carry_over(held: Held, run: Run, step: Step, steps: list[Step]) -> None:
    command, proposal = held.command, held.proposal
    before_proposal, before_step = proposal.status, step.status
    ending = apply_ending(command, proposal, step, at=held.now, wait=wait_for_person(held.now))
    save_moved(proposal, before_proposal, by=held.by, reason=proposal.end_reason)
    save_step(step, before_step, by=held.by, reason=proposal.end_reason)
    match ending.step:
        case StepEnd.PERSON if run.cancel_requested_at is not None:
            # Nothing happened, so the wish to cancel wins: nobody needs to look any more.
            cancel_steps(steps, by=held.by, now=held.now)
        case StepEnd.PERSON:
            settled(run, step.key, command.status, by=held.by, at=held.now)
            _ask_a_person_unless_foreseen(held, run, step, steps)
        case StepEnd.APPROVAL_OF_NEXT_VERSION if not can_reissue(proposal):
            settled(run, step.key, command.status, by=held.by, at=held.now)
            open_packet(
                held, run, step, "command_digest", _SUMMARIES["digest"].format(nothing="Nothing happened")
            )
        case StepEnd.APPROVAL_OF_NEXT_VERSION:
            settled(run, step.key, command.status, by=held.by, at=held.now)
            reissue(run, step, proposal, by=held.by, clock=held.clock, now=held.now)
        case StepEnd.CANCELLED:
            cancel_steps(steps, by=held.by, now=held.now)
        case _:
            settled(run, step.key, command.status, by=held.by, at=held.now)


_SUMMARIES = {
    "refused": "The provider refused the action. Nothing happened.",
    "dead": "It was tried as often as allowed, or must not be tried again. Nothing happened.",
    "lapsed": "The time to execute was over. {nothing}; to ask again takes a new proposal.",
    "policy": "The policy changed after the approval. {nothing}; to ask again takes a new proposal.",
    "pin": "The record changed after the approval. {nothing}; to ask again takes a new proposal.",
    "digest": "The stored contract is not what was approved. {nothing}.",
    "signature": "An approval lacks the signature of a passkey that it must have. {nothing}.",
    "unknown": "A request went out and no complete answer came back. Nobody knows yet whether it happened.",
    "key_reused": "The provider says that this key came before with other parameters. Nobody knows what happened.",
    "restored": "A backup was restored. Whether this was done after the backup was made, nobody knows yet.",
    "late_effect": "A late answer says that it happened, after this had ended otherwise. It may have happened twice.",
    "earlier_effect": "The same thing happened before, or may have happened. Nothing was sent.",
    "credential_refused": "The provider refused our credential: it was revoked, or it is stale. Nothing happened.",
    "quarantined": "A worker ended each time it took this action. Nothing was sent.",
}


def _ask_a_person_unless_foreseen(held: Held, run: Run, step: Step, steps: list[Step]) -> None:
    """A refusal that the exception table foresees ends the run as its row says; all else goes to a person."""
    command = held.command
    foreseen = case_or_none(registry.promised(run), command.failure_code)
    if command.status == CommandStatus.REFUSED and foreseen is not None:
        end_by_case(run, step, foreseen, steps, by=held.by, now=held.now)
        return
    run.user_message = run.user_message or registry.contract_of(run.workflow).stopped_tell
    cause = command.void_reason or command.status
    why = _SUMMARIES.get(command.failure_code if not command.void_reason else "") or _SUMMARIES[cause]
    nothing = "Nothing was sent" if command.first_sent_at is None else "Nothing happened"
    open_packet(held, run, step, f"command_{cause}", why.format(nothing=nothing))


def open_packet(held: Held, run: Run, step: Step, cause: str, summary: str) -> None:
    owner = registry.contract_of(run.workflow).owner
    stopped(
        Stop(run, step.key, cause, summary, owner, held.command.pk, held.proposal.pk), by=held.by, at=held.now
    )


def report_unknown(held: Held) -> None:
    """The outcome is not known: open a packet beside the reconciler's own look-ups, and let the run say so."""
    run = lock_run(held.command.tenant_id, held.command.run_id)
    step = next(step for step in steps_of(run) if step.pk == held.command.step_id)
    cause = (
        held.command.failure_code if held.command.failure_code in ("key_reused", "restored") else "unknown"
    )
    open_packet(held, run, step, f"command_{cause}", _SUMMARIES[cause])
    settle_run(run, by=held.by, now=held.now)


def report_late_effect(held: Held) -> None:
    """What came back late contradicts how the command ended. The end stays as it is; people look at the provider."""
    run = lock_run(held.command.tenant_id, held.command.run_id)
    step = next(step for step in steps_of(run) if step.pk == held.command.step_id)
    open_packet(held, run, step, "late_effect", _SUMMARIES["late_effect"])
