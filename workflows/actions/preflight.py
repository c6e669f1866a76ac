"""Nobody is asked what would be denied anyway: checked when a proposal is made, on every way of proposing.

The operation's check and its policy are asked while it is prepared. Here stands what only the database knows, and it is
the same that a worker asks before it sends.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from common.errors import Refused
from common.prepared import fetch
from workflows.enums import CommandStatus, Effect


class AlreadyDone(Refused):
    """The very same thing was done before, so no worker would do it again. Look at that action instead."""

    code = "already_done"


@dataclass(frozen=True, slots=True)
class SameOrders:
    """Earlier orders with one business key: the first that has happened, and whether one is on its way, or may be."""

    done: tuple[UUID, UUID, UUID] | None
    in_progress: bool


def orders_of_the_same(tenant_id: UUID, business_key: str) -> SameOrders:
    """Read both on one way: a worker would ask the same before it sends."""
    rows = fetch(_SAME, {"tenant": tenant_id, "key": business_key})
    done = next(((command, run, proposal) for command, run, proposal, done, _ in rows if done), None)
    return SameOrders(done, any(live for *_, live in rows))


def check_not_done(same: SameOrders) -> None:
    """Raises AlreadyDone where the very same thing has happened, as a whole or in part."""
    if same.done is not None:
        command, run, proposal = same.done
        raise AlreadyDone(command_id=str(command), run_id=str(run), proposal_id=str(proposal))


_DONE: Final = f"c.effect IN ('{Effect.HAPPENED}', '{Effect.PARTIAL}')"
_LIVE: Final = ", ".join(f"'{state}'" for state in CommandStatus.live_states)
# Of each kind one is enough, by its own index, however many there were.
_SAME: Final = f"""
    (SELECT c.id, c.run_id, c.proposal_id, true, false FROM workflows_command c
     WHERE c.tenant_id = %(tenant)s AND c.business_key = %(key)s AND {_DONE} ORDER BY c.created_at, c.id LIMIT 1)
    UNION ALL
    (SELECT c.id, c.run_id, c.proposal_id, false, true FROM workflows_command c
     WHERE c.tenant_id = %(tenant)s AND c.business_key = %(key)s AND c.status IN ({_LIVE}) LIMIT 1)
"""  # noqa: S608 - our own words
