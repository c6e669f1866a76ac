"""How many proposals may be open at once, of one automation and of one organisation: people cannot read a flood."""

from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from approvals.enums import ProposalStatus
from approvals.models import Proposal
from common.errors import Refused

_RETRY_AFTER_S: Final = 60


class OpenLimit(Refused):
    """Too many proposals wait for people already. Wait until some of them are decided."""

    code = "open_limit"
    http_status = 429


def check_open_limit(tenant_id: UUID, proposed_by: str) -> None:
    """Raises OpenLimit when the automation, or all of its organisation, have as many pending proposals as allowed.

    Counted before and not under a lock: some that come in the same instant may pass together.
    """
    pending = Proposal.objects.filter(tenant_id=tenant_id, status=ProposalStatus.PENDING)
    _check("automation", pending.filter(proposed_by=proposed_by), settings.PLACET_OPEN_PROPOSALS)
    _check("organisation", pending, settings.PLACET_OPEN_PROPOSALS_TENANT)


def _check(whose: str, pending: QuerySet[Proposal], limit: int) -> None:
    if pending[:limit].count() >= limit:
        raise OpenLimit(whose=whose, limit=limit, retry_after=_RETRY_AFTER_S)
