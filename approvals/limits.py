"""How many proposals of one automation may be open at once: people cannot read a flood."""

from typing import Final
from uuid import UUID

from django.conf import settings

from approvals.enums import ProposalStatus
from approvals.models import Proposal
from common.errors import Refused

_RETRY_AFTER_S: Final = 60


class OpenLimit(Refused):
    """Too many proposals of this automation wait for people already. Wait until some of them are decided."""

    code = "open_limit"
    http_status = 429


def check_open_limit(tenant_id: UUID, proposed_by: str) -> None:
    """Raises OpenLimit when the automation has as many pending proposals as `PLACET_OPEN_PROPOSALS` allows."""
    limit: int = settings.PLACET_OPEN_PROPOSALS
    pending = Proposal.objects.filter(
        tenant_id=tenant_id, status=ProposalStatus.PENDING, proposed_by=proposed_by
    )
    waiting = pending[:limit].count()
    if waiting >= limit:
        raise OpenLimit(limit=limit, retry_after=_RETRY_AFTER_S)
