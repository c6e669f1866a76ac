"""Does the approval still hold? The checks that need only the database, made by whoever holds the locks."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from approvals.enums import DecisionKind, ProposalStatus
from approvals.models import Decision, Proposal
from approvals.policies import approved_by_rule, standing_votes, valid_approvals
from approvals.signing import those_that_count
from common.digests import contract_digest, same
from common.sealed import readable
from common.strictjson import JsonRefused
from workflows import registry
from workflows.contracts import read_contract
from workflows.enums import VoidReason
from workflows.models import Command
from workflows.operations import Operation
from workflows.signed import must_have_signatures
from workflows.worker.held import Held

SHORTEST_PAUSE = timedelta(seconds=1)
"""Who says *come back at once* is not asked in a tight loop."""


def failed_check(held: Held, *, policy: int | None = None) -> VoidReason | None:
    """The first reason why this approval no longer holds: bytes, clock, policy, people. Design, invariant 1.

    ``policy`` is the current version where the caller holds the scope lock; else it is read without a lock, which
    is enough to end or to free a command, because the way to *sent* checks again.
    """
    proposal, votes = held.proposal, standing_votes(held.proposal)
    reason = why_not(
        proposal, intact_contract(proposal, held.command), votes, now=held.now,
        policy=lambda: policy if policy is not None else current_policy(held.operation),
        count=lambda: valid_approvals(proposal, votes, lock=True),
    )  # fmt: skip
    if reason is None and not _is_signed(held, votes):
        reason = VoidReason.SIGNATURE
    if reason is not None:
        return reason
    # The people's rows were locked, perhaps after a wait: it is the time after the last lock that counts.
    held.now = held.clock()
    return VoidReason.LAPSED if _is_over(proposal, held.now) else None


def _is_signed(held: Held, votes: Sequence[Decision]) -> bool:
    """Whether enough of the people who still count have signed, where an approval must be signed.

    By the contract and by this code, not by what a row says of it; each signature is checked anew.
    """
    contract = intact_contract(held.proposal, held.command)
    assert contract is not None, "it was intact a moment ago"
    if not must_have_signatures(held.operation, contract):
        return True
    signed = those_that_count(held.proposal, votes)
    return valid_approvals(held.proposal, signed, lock=True) >= max(1, held.proposal.needed)


def why_not(
    proposal: Proposal, contract: Mapping[str, Any] | None, votes: Sequence[Decision], *, now: datetime,
    policy: Callable[[], int | None], count: Callable[[], int],
) -> VoidReason | None:  # fmt: skip
    """The checks themselves, in their order, on what was read under the locks.

    ``contract`` is what `intact_contract` found, ``policy`` says the current version, ``count`` counts the valid
    approvals. What is over is over, also where nobody here knows the operation and so its policy.
    """
    if contract is None or not _bound_to_this(proposal, votes):
        return VoidReason.DIGEST
    if _is_over(proposal, now):
        return VoidReason.LAPSED
    if contract["policy_version"] != policy():
        return VoidReason.POLICY
    return None if _still_approved(proposal, votes, count) else VoidReason.REVIEWER


def _is_over(proposal: Proposal, now: datetime) -> bool:
    return proposal.execute_by is None or now >= proposal.execute_by


def intact_contract(proposal: Proposal, command: Command) -> Mapping[str, Any] | None:
    """The stored contract if it hashes to the approved digest and is about this very command; else None."""
    stored = readable(proposal, "contract")
    if stored is None or not same(contract_digest(stored), proposal.digest):
        return None
    try:
        contract = read_contract(stored)
        claimed = tuple(contract[name] for name in _NAMES_THE_COMMAND)
    except (JsonRefused, AssertionError, KeyError):
        return None
    ours = (
        str(command.run_id), proposal.step, command.operation, command.operation_version, command.target,
        command.idempotency_key,
    )  # fmt: skip
    return contract if claimed == ours else None


_NAMES_THE_COMMAND = ("run_id", "step", "operation", "operation_version", "target", "idempotency_key")


def _bound_to_this(proposal: Proposal, votes: Sequence[Decision]) -> bool:
    """Whether every standing yes names the digests that stand here: no yes is ever recorded for others."""
    ours = (proposal.digest, proposal.view_digest)
    return all((vote.digest, vote.view_digest) == ours for vote in votes if vote.kind == DecisionKind.APPROVE)


_CURRENT_POLICY = (
    "SELECT version FROM workflows_definition WHERE kind = 'policy' AND name = %s AND is_current"
)


def current_policy(operation: Any, *, lock: bool = False) -> int | None:
    """The policy's current version. With ``lock`` it is the shared scope lock, first in the lock order: a newer
    version waits for us, or we see it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CURRENT_POLICY + (" FOR SHARE" if lock else ""), [operation.policy.name])
        row = cursor.fetchone()
    return row[0] if row is not None else None


def _still_approved(proposal: Proposal, votes: Sequence[Decision], count: Callable[[], int]) -> bool:
    if proposal.status != ProposalStatus.APPROVED:
        return False
    if proposal.needed == 0 and approved_by_rule(proposal, votes):
        return True
    return count() >= max(1, proposal.needed)


def tries_left(held: Held) -> bool:
    """Whether the caps on tries and on total time allow one more request."""
    operation, command = held.operation, held.command
    in_time = held.now < (command.first_sent_at or held.now) + operation.max_total
    return bool(command.tries < operation.max_tries and in_time)


def not_after_lapse(held: Held, due_at: datetime) -> datetime:
    """No later than *execute by*: what lapses while it waits is then seen to, and not only when it would be due."""
    return min(due_at, held.proposal.execute_by or due_at)


FIRST_LOOK = timedelta(seconds=2)
LONGEST_PAUSE = timedelta(minutes=10)


def settles_at(held: Held) -> datetime:
    """From when on *not found* counts, for a command that was sent."""
    return settled_from(held.command, held.operation)


def settled_from(command: Command, operation: Operation[Any]) -> datetime:
    """The last request may have left as late as its deadline, and then the provider has its settle time."""
    assert command.last_sent_at is not None
    return command.last_sent_at + operation.call_deadline + operation.settle_time


def next_look(held: Held) -> datetime:
    """When to ask next about an unknown outcome. *Yes* counts at any time, so it is asked early, then less and less;
    and once as soon as *no* counts too.
    """
    pause = min(FIRST_LOOK * float(2 ** min(held.command.lookups, 12)), LONGEST_PAUSE)
    if not registry.knows(held.command.operation, held.command.operation_version):
        return held.now + pause  # code that knows it will ask
    settled = settles_at(held)
    return settled if held.now < settled < held.now + pause else held.now + pause
