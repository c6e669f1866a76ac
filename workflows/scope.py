"""The scope lock, and what holds actions back within a scope: freezes by people, open circuits of providers.

The transaction that commits ``sent`` takes the lock shared and reads the holds after that; who places a hold commits it
first and then takes the lock for itself alone. So once that lock was had, every transaction that had not seen the hold
has ended, and nothing is newly sent.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from approvals.models import Proposal
from common.db import HELD_SHARED, lock_name, lock_name_shared
from common.pipelined import PLANNED_ONCE, Question, ask, rows_of, then
from common.prepared import Reading
from common.tx import require_transaction
from workflows.enums import HoldReason, HoldStatus
from workflows.models import Command, Hold

_SCOPE: Final = "scope"

# For hand-written SQL with the aliases h (hold) and c (command): the same rule as `matches`.
MATCHES: Final = """
    h.status IN ('in_force', 'trial')
    AND (h.tenant_id IS NULL OR h.tenant_id = c.tenant_id)
    AND h.operation IN ('', c.operation) AND h.provider IN ('', c.provider) AND h.target IN ('', c.target)
    AND (h.runs IS NULL OR c.run_id = ANY (h.runs))
    AND h.trial_command_id IS DISTINCT FROM c.id
    AND (h.workflow = '' OR EXISTS (
        SELECT FROM approvals_proposal p WHERE p.id = c.proposal_id AND p.workflow = h.workflow
            AND (h.workflow_version IS NULL OR h.workflow_version = p.workflow_version)))
"""


def enter_scope() -> None:
    """The shared lock, first of all locks: what holds when we read it now holds until we have committed."""
    lock_name_shared(_SCOPE)


def scope_lock() -> Question[None]:
    """`enter_scope`, to be asked together with others, before all of them, and with `PLANNED_ONCE`."""
    require_transaction()
    return Question(f"{PLANNED_ONCE.sql}, {HELD_SHARED}", [_SCOPE], lambda _: None)


def wait_for_scope() -> None:
    """The lock for oneself alone: every transaction that entered before has ended."""
    lock_name(_SCOPE)


@dataclass(frozen=True, slots=True)
class Holds:
    """The holds in force, freezes first."""

    rows: tuple[Hold, ...]

    def on(self, command: Command, proposal: Proposal) -> Hold | None:
        """What holds this command back, if anything does."""
        return next((hold for hold in self.rows if matches(hold, command, proposal)), None)


def matches(hold: Hold, command: Command, proposal: Proposal) -> bool:
    """Whether the command lies within the scope, and is not the one that is let through on trial."""
    return (
        hold.tenant_id in (None, command.tenant_id)
        and hold.operation in ("", command.operation)
        and hold.provider in ("", command.provider)
        and hold.target in ("", command.target)
        and (hold.runs is None or command.run_id in hold.runs)
        and hold.workflow in ("", proposal.workflow)
        and hold.workflow_version in (None, proposal.workflow_version)
        and hold.trial_command_id != command.pk
    )


_IN_FORCE: Final = Reading(
    Hold,
    "WHERE r.status = ANY(%s) AND (r.tenant_id IS NULL OR r.tenant_id = ANY(%s::uuid[])) ORDER BY r.placed_at, r.id",
)


def holds_in_force(tenants: Iterable[UUID]) -> Holds:
    """All that may hold something of these tenants. Read it after `enter_scope` where it must be true until commit."""
    found: Holds = ask(which_holds(tenants))[0]
    return found


def which_holds(tenants: Iterable[UUID]) -> Question[Holds]:
    """`holds_in_force`, to be asked together with others."""
    rows = rows_of(_IN_FORCE, list(HoldStatus.holding_states), list(set(tenants)))
    return then(
        rows, lambda found: Holds(tuple(sorted(found, key=lambda hold: hold.reason != HoldReason.FREEZE)))
    )
