"""How many proposals may be open at once, of one automation and of one organisation: people cannot read a flood."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.conf import settings

from common.errors import Refused
from common.pipelined import Question

_RETRY_AFTER_S: Final = 60


@dataclass(frozen=True, slots=True)
class Open:
    """Pending proposals of one automation and of its organisation, none counted further than to its limit."""

    of_automation: int
    of_organisation: int


class OpenLimit(Refused):
    """Too many proposals wait for people already. Wait until some of them are decided."""

    code = "open_limit"
    http_status = 429


def open_proposals(tenant_id: UUID, proposed_by: str) -> Question[Open]:
    """How many are pending. Counted before and not under a lock: some that come in the same instant pass together."""
    most = settings.PLACET_OPEN_PROPOSALS, settings.PLACET_OPEN_PROPOSALS_TENANT
    return Question(_OPEN, [tenant_id, proposed_by, most[0], tenant_id, most[1]], lambda rows: Open(*rows[0]))


def check_open_limit(open_: Open) -> None:
    """Raises OpenLimit when the automation, or all of its organisation, have as many pending as allowed."""
    limits = {
        "automation": (open_.of_automation, settings.PLACET_OPEN_PROPOSALS),
        "organisation": (open_.of_organisation, settings.PLACET_OPEN_PROPOSALS_TENANT),
    }
    for whose, (now, limit) in limits.items():
        if now >= limit:
            raise OpenLimit(whose=whose, limit=limit, retry_after=_RETRY_AFTER_S)


_OPEN: Final = """
    SELECT (SELECT count(*) FROM (SELECT FROM approvals_proposal p WHERE p.tenant_id = %s AND p.status = 'pending'
              AND p.proposed_by = %s LIMIT %s) theirs),
           (SELECT count(*) FROM (SELECT FROM approvals_proposal p WHERE p.tenant_id = %s AND p.status = 'pending'
              LIMIT %s) everybodys)
"""
