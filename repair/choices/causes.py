"""Why things stop: a list that every team begins with, and that grows by what people add."""

from datetime import datetime
from typing import Final
from uuid import UUID

from audit.actors import Actor
from common.tx import require_transaction
from repair.models import RepairCause

NEW: Final = "new"
BEGIN_WITH: Final = (
    "The provider was down or slow",
    "The provider lost or delayed an answer",
    "The record changed meanwhile",
    "Data was wrong or missing",
    "Nobody decided in time",
    "A rule or policy did not fit the case",
    "A credential was stale or revoked",
    "The same thing was asked for twice",
    "A mistake in the workflow",
    "A mistake in operating it",
)


def known_causes(tenant_id: UUID) -> list[str]:
    """Those that every team begins with, then the tenant's own, by name."""
    own = RepairCause.objects.filter(tenant_id=tenant_id).exclude(title__in=BEGIN_WITH)
    return [*BEGIN_WITH, *own.order_by("title").values_list("title", flat=True)]


def cause_named(tenant_id: UUID, title: str, *, by: Actor, now: datetime) -> RepairCause:
    """The row of this title, made where there is none yet. Of two who add the same at once, both get the one."""
    require_transaction()
    new = RepairCause(tenant_id=tenant_id, title=title, created_by=by.performed_by, created_at=now)
    RepairCause.objects.bulk_create([new], ignore_conflicts=True)
    return RepairCause.objects.get(tenant_id=tenant_id, title=title)
