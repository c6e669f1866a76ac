"""A person reads: their own notices, and nobody else's."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import QuerySet

from common.clock import Clock
from common.tx import action
from notify.models import Notice


@action
def mark_read(*, tenant_id: UUID, accounts: Collection[UUID], notice_id: UUID, clock: Clock) -> Notice | None:
    """The notice, read from now on; None where there is none of theirs. Twice changes nothing."""
    rows = Notice.objects.select_for_update(of=("self",), no_key=True).select_related("message")
    notice = rows.filter(tenant_id=tenant_id, user_id__in=accounts, pk=notice_id).first()
    if notice is not None and notice.read_at is None:
        notice.read_at = clock()
        notice.save(update_fields=["read_at"])
    return notice


@action
def mark_all_read(*, tenant_id: UUID, accounts: Collection[UUID], clock: Clock) -> int:
    """All that they have; returns how many were unread."""
    return _unread(tenant_id, accounts).update(read_at=clock())


def _unread(tenant_id: UUID, accounts: Collection[UUID]) -> QuerySet[Notice]:
    return Notice.objects.filter(tenant_id=tenant_id, user_id__in=accounts, read_at=None)
