"""Traits of proposals that were made before traits were kept: so that what is *never seen before* really never was."""

from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from approvals.enums import ProposalStatus
from approvals.models import Proposal, Trait
from approvals.refusals import Uninspectable
from approvals.shown import view_of
from approvals.traits import seen_in, trait_rows
from common.content_errors import ContentErased
from common.db import lock_name
from common.ids import id_at
from common.models import Tenant
from common.sealed import prefetch_keys
from common.tx import action

BATCH: Final = 200
_MATTERS: Final = (*ProposalStatus.live_states, ProposalStatus.CONSUMED)
"""What was carried out, or may be yet: nothing else is ever compared with."""


Place = tuple[datetime, UUID]


def remember_all() -> int:
    """Write the traits of every proposal that has none; returns of how many. Again it finds only those without any."""
    return sum(
        _remember_of(tenant_id) for tenant_id in Tenant.objects.order_by("pk").values_list("pk", flat=True)
    )


def _remember_of(tenant_id: UUID) -> int:
    place, found = remember_some(tenant_id)
    while place is not None:
        place, count = remember_some(tenant_id, place)
        found += count
    return found


@action
def remember_some(
    tenant_id: UUID, after: Place | None = None, *, limit: int = BATCH
) -> tuple[Place | None, int]:
    """One batch, the oldest first: the place behind it, None at the end, and of how many proposals traits were written.

    One whose contents were erased, or cannot be read, has none. Rows come to stand in the history where they belong.
    """
    lock_name("traits of old proposals")
    known = Trait.objects.filter(proposal=OuterRef("pk"))
    rows = Proposal.objects.filter(~Exists(known), tenant_id=tenant_id, status__in=_MATTERS).order_by(
        "created_at", "id"
    )
    if after is not None:
        at, pk = after
        rows = rows.filter(Q(created_at__gt=at) | Q(created_at=at, pk__gt=pk), created_at__gte=at)
    batch = list(rows.only(*_READ)[:limit])
    prefetch_keys(batch)
    made = [traits for row in batch if (traits := _traits_of(row))]
    Trait.objects.bulk_create([trait for traits in made for trait in traits])
    end = batch[-1] if len(batch) == limit else None
    return ((end.created_at, end.pk) if end else None), len(made)


_READ: Final = ("tenant_id", "run_id", "operation", "target", "view", "view_digest", "digest", "created_at")


def _traits_of(proposal: Proposal) -> list[Trait]:
    try:
        rows = trait_rows(proposal, seen_in(view_of(proposal).fields))
    except (ContentErased, Uninspectable):
        return []
    for row in rows:
        row.id = id_at(proposal.created_at)
    return rows
