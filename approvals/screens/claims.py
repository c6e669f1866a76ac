"""Who reads what at this moment, for lists and pages."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from approvals.models import Claim
from common.display import visible


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a proposal, and until when if they do nothing more. ``mine``: it is the reader."""

    user_id: UUID
    name: str
    until: datetime
    mine: bool


def holders(tenant_id: UUID, reader: UUID, now: datetime) -> dict[UUID, Holder]:
    """The live claims of a tenant by proposal: as many as its people have taken within the last minutes."""
    rows = Claim.objects.filter(tenant_id=tenant_id, until__gt=now).select_related("user")
    return {row.proposal_id: _holder(row, reader) for row in rows}


def holder_of(tenant_id: UUID, proposal_id: UUID, reader: UUID, now: datetime) -> Holder | None:
    """Who holds this one."""
    rows = Claim.objects.filter(tenant_id=tenant_id, proposal_id=proposal_id, until__gt=now)
    row = rows.select_related("user").first()
    return _holder(row, reader) if row else None


def _holder(row: Claim, reader: UUID) -> Holder:
    return Holder(row.user_id, visible(str(row.user)), row.until, row.user_id == reader)
