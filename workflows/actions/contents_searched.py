"""That somebody looked through the contents for a word is an event; the word itself stands nowhere."""

from uuid import UUID

from access.policies import check_can_manage
from audit.actions import record
from audit.actors import Actor
from common.tx import action


@action
def searched(*, tenant_id: UUID, found: int, why: str, by: Actor) -> None:
    """``found``: in how many runs it stands. By an admin, or at the command line."""
    check_can_manage(by, tenant_id)
    record(
        by=by, kind="tenant.contents_searched", tenant_id=tenant_id, subject_type="tenant", subject_id=tenant_id,
        reason=why[:500], body={"found": found},
    )  # fmt: skip
