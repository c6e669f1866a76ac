"""Tokens as the history speaks of them: by which of them something was asked for, whether it has ended since or not."""

from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from django.db.models import Q
from django.urls import reverse

from access.models import ApiToken
from access.tokens import PREFIX, SHOWN
from audit.finding import as_uuid
from audit.through import Named

_MOST: Final = 50


def names_of(tenant_id: UUID, idents: Collection[UUID]) -> Mapping[UUID, Named]:
    """The beginning of each, and whose it is."""
    rows = ApiToken.objects.filter(tenant_id=tenant_id, pk__in=idents).select_related("agent")
    return {
        row.pk: Named(str(row), str(row.agent), reverse("people:agent", args=[row.agent_id])) for row in rows
    }


def find(tenant_id: UUID, text: str) -> list[UUID]:
    """Those that begin so, and the one with this id. Of a whole token only its first characters are looked at."""
    ident, begins = as_uuid(text), text[:SHOWN]
    named = Q(pk=ident) if ident else Q(prefix=begins) if begins.startswith(PREFIX) else None
    if named is None:
        return []
    rows = ApiToken.objects.filter(named, tenant_id=tenant_id)
    return list(rows.order_by("-created_at").values_list("pk", flat=True)[:_MOST])
