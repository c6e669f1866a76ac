"""From claimed to sent for several commands: one transaction that checks everything, of each of them.

Only what passes every check is committed as *sent*. Whatever does not is left claimed, and is looked at once more,
alone and with all the waiting that it takes, by `workflows.worker.send.commit_sent`, which says what becomes of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from access.selectors import Standing, standings_unless_busy
from approvals.models import Decision, Proposal
from approvals.policies import approving, eligible
from audit.actions import record_many
from audit.actors import Actor
from common.clock import Clock
from common.crashpoints import crashpoint
from common.deadline import Deadline
from common.digests import same
from common.pipelined import ask, ask_then_time
from common.tx import action
from workflows.actions.decided import command_event
from workflows.enums import AttemptStatus, CommandStatus, Lane
from workflows.models import Attempt, Command
from workflows.operations import Call
from workflows.scope import Holds, scope_lock, which_holds
from workflows.secret_arguments import secret_refs
from workflows.signed import must_have_signatures
from workflows.worker.batch import rows
from workflows.worker.batch.saving import Kept, save_together
from workflows.worker.checks import intact_contract, why_not
from workflows.worker.claim import Claim
from workflows.worker.send import Looked, make_call, may_have_been_done


@dataclass(frozen=True, slots=True)
class Sent:
    """A command whose *sent* is committed, and its one request, built from the bytes that were checked."""

    claim: Claim
    call: Call[Any]
    lease: Deadline
    """How long the token surely is the row's, on this machine's own clock."""


@dataclass(frozen=True, slots=True)
class _Locked:
    """What the locks of a batch hold still until the commit."""

    policies: Mapping[str, int]
    proposals: Mapping[UUID, Proposal]
    commands: Mapping[UUID, Command]
    attempts: Mapping[UUID, Attempt]
    votes: Mapping[UUID, Sequence[Decision]]
    people: Mapping[tuple[UUID, UUID], Standing]
    holds: Holds
    in_the_way: frozenset[UUID]
    """Commands whose business key had an effect before, or whose target something newer has changed."""
    now: datetime
    """Read after the last lock."""


@action
def commit_sent_together(
    claims: Sequence[Claim], looks: Mapping[UUID, Looked | None], *, by: Actor, clock: Clock
) -> list[Sent]:
    """Commit *sent* for those of the claims that pass every check, and return them with their calls.

    ``looks`` holds what was read outside, by command; None where the operation has nothing to read. Locks: the shared
    scope, proposals, commands by token, the people who approved. Raises RowsChanged, and then nothing is sent.
    """
    # The call's deadline begins before *sent* commits: a worker that sleeps in between wakes up too late to call.
    deadlines = {claim.command_id: _deadline(claim, 1) for claim in claims}
    leases = {claim.command_id: _deadline(claim, 2) for claim in claims}
    locked = _lock(claims, clock)
    calls = {
        claim.command_id: call
        for claim in claims
        if (call := _call_if_all_holds(claim, locked, looks[claim.command_id], deadlines)) is not None
    }
    if not calls:
        return []
    going = [claim for claim in claims if claim.command_id in calls]
    _move_to_sent(going, locked, by)
    crashpoint("CP4")
    return [Sent(claim, calls[claim.command_id], leases[claim.command_id]) for claim in going]


def _deadline(claim: Claim, times: int) -> Deadline:
    return Deadline.after(times * claim.operation.call_deadline.total_seconds())


def _lock(claims: Sequence[Claim], clock: Clock) -> _Locked:
    # The scope: freezes, open circuits and policies are read under its lock, for all of them, here and nowhere else.
    _, holds, policies, proposals, commands, attempts, votes, in_the_way = ask(
        scope_lock(), which_holds(claim.tenant_id for claim in claims),
        rows.lock_policies([claim.operation.policy.name for claim in claims]),
        rows.lock_proposals(claims), rows.lock_commands(claims, CommandStatus.CLAIMED),
        rows.attempts_of(claims, AttemptStatus.CLAIMED), rows.votes_on(claims), rows.with_others_in_the_way(claims),
    )  # fmt: skip
    rows.name_runs(commands, claims)
    approvers = {
        (proposal.tenant_id, user)
        for proposal in proposals.values() for user in approving(proposal, votes.get(proposal.pk, ()))
    }  # fmt: skip
    (ours, standing), now = ask_then_time(clock, *standings_unless_busy(approvers))
    people = {person: held for person, held in standing.items() if person in ours}
    return _Locked(policies, proposals, commands, attempts, votes, people, holds, in_the_way, now)


def _call_if_all_holds(
    claim: Claim, locked: _Locked, looked: Looked | None, deadlines: Mapping[UUID, Deadline]
) -> Call[Any] | None:
    """The call that may be made, or None where anything at all is in its way."""
    command, proposal = locked.commands.get(claim.command_id), locked.proposals.get(claim.proposal_id)
    if command is None or proposal is None or claim.command_id not in locked.attempts:
        return None
    if command.lane == Lane.REPROCESS:
        return None  # what is done anew is compared with all that its run's family did, where it goes alone
    if command.tries or may_have_been_done(proposal):
        return None  # an earlier request, or order, may have been answered late: that is read where it goes alone
    contract = intact_contract(proposal, command)
    if contract is None or not _holds(claim, command, proposal, contract, locked):
        return None
    if claim.command_id in locked.in_the_way or locked.holds.on(command, proposal) is not None:
        return None
    if must_have_signatures(claim.operation, contract) or secret_refs(
        claim.operation.arguments, contract["arguments"]
    ):
        return None  # signatures, and the values that were read for it, are compared where it goes alone
    if not _may_go(proposal, contract, looked):
        return None
    return _make_call(command, contract, deadlines[claim.command_id])


def _holds(
    claim: Claim, command: Command, proposal: Proposal, contract: Mapping[str, Any], locked: _Locked
) -> bool:
    votes = locked.votes.get(proposal.pk, ())
    reason = why_not(
        proposal, contract, votes, now=locked.now, policy=lambda: locked.policies.get(claim.operation.policy.name),
        count=lambda: eligible(proposal, _those(locked, proposal, approving(proposal, votes)), votes),
    )  # fmt: skip
    return reason is None


def _those(locked: _Locked, proposal: Proposal, people: Iterable[UUID]) -> list[Standing]:
    found = (locked.people.get((proposal.tenant_id, user)) for user in people)
    return [standing for standing in found if standing is not None]


def _may_go(proposal: Proposal, contract: Mapping[str, Any], looked: Looked | None) -> bool:
    """What was read outside allows the call, and was read on the word of these very bytes."""
    if looked is None:
        return not contract["pins"]  # nothing was to be read, so nothing may be bound to it either
    return is_clean(looked) and same(looked.digest, proposal.digest)


def is_clean(looked: Looked) -> bool:
    """Whether nothing that was read outside stands in the way."""
    clean = not looked.changed and not looked.earlier and looked.postpone is None
    return clean and not looked.refused_credential


def _make_call(command: Command, contract: Mapping[str, Any], deadline: Deadline) -> Call[Any] | None:
    try:
        return make_call(command, contract, deadline)
    except Exception:  # noqa: BLE001 - the operation's own code; alone, the command says what is wrong with it
        return None


def _move_to_sent(going: Sequence[Claim], locked: _Locked, by: Actor) -> None:
    attempts = Kept(locked.attempts[claim.command_id] for claim in going)
    commands = Kept(locked.commands[claim.command_id] for claim in going)
    for claim in going:
        command, attempt = locked.commands[claim.command_id], locked.attempts[claim.command_id]
        attempt.send(at=locked.now)
        command.send(at=locked.now, lease_until=locked.now + 2 * claim.operation.call_deadline)
        command.state_version += 1
    record_many([
        command_event(
            locked.commands[claim.command_id], CommandStatus.CLAIMED, by=by,
            digest=locked.proposals[claim.proposal_id].digest,
        )
        for claim in going
    ])  # fmt: skip
    save_together(attempts, commands)
