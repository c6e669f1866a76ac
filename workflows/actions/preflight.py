"""Nobody is asked what would be denied anyway: checked when a proposal is made, on every way of proposing.

The operation's check and its policy are asked while it is prepared. Here stands what only the database knows, and it is
the same that a worker asks before it sends.
"""

from typing import Final
from uuid import UUID

from common.errors import Refused
from workflows.enums import Effect
from workflows.models import Command

_DONE: Final = (Effect.HAPPENED, Effect.PARTIAL)


class AlreadyDone(Refused):
    """The very same thing was done before, so no worker would do it again. Look at that action instead."""

    code = "already_done"


def check_not_done(tenant_id: UUID, business_key: str) -> None:
    """Raises AlreadyDone while an earlier action with this business key has happened, as a whole or in part."""
    done = (
        Command.objects.filter(tenant_id=tenant_id, business_key=business_key, effect__in=_DONE)
        .order_by("created_at", "pk")
        .values_list("pk", "run_id", "proposal_id")
        .first()
    )
    if done is not None:
        command, run, proposal = done
        raise AlreadyDone(command_id=str(command), run_id=str(run), proposal_id=str(proposal))
