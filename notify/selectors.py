"""Reads: what a person was told and has not read, and how telling does."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Count, Min, Q, QuerySet

from common.prepared import fetch
from notify.enums import DispatchStatus
from notify.models import Destination, Dispatch, Notice, Preference

MOST_COUNTED: Final = 100
_UNREAD: Final = """
    SELECT count(*) FROM (
        SELECT FROM notify_notice
        WHERE tenant_id = %s AND user_id = ANY(%s::uuid[]) AND read_at IS NULL AND over_at IS NULL LIMIT %s) n
"""


def unread_count(tenant_id: UUID, accounts: Collection[UUID]) -> int:
    """Unread notices that still mean something, counted up to 100: one read of a partial index."""
    return int(fetch(_UNREAD, [tenant_id, list(accounts), MOST_COUNTED])[0][0])


def notices(tenant_id: UUID, accounts: Collection[UUID], *, unread: bool) -> QuerySet[Notice]:
    found = Notice.objects.filter(tenant_id=tenant_id, user_id__in=accounts).select_related("message")
    return found.filter(read_at=None, over_at=None) if unread else found


def preference_of(tenant_id: UUID, user_id: UUID) -> Preference:
    """The person's, or the defaults in a row that is not stored."""
    found = Preference.objects.filter(tenant_id=tenant_id, user_id=user_id).first()
    return found or Preference(tenant_id=tenant_id, user_id=user_id)


def destinations(tenant_id: UUID) -> QuerySet[Destination]:
    """With what waits and what was given up."""
    waiting = Count("dispatches", filter=Q(dispatches__status=DispatchStatus.PENDING))
    dead = Count("dispatches", filter=Q(dispatches__status=DispatchStatus.DEAD))
    rows = Destination.objects.filter(tenant_id=tenant_id).select_related("group")
    return rows.annotate(waiting=waiting, dead=dead)


def given_up(tenant_id: UUID) -> QuerySet[Dispatch]:
    """The newest first."""
    found = Dispatch.objects.filter(tenant_id=tenant_id, status=DispatchStatus.DEAD)
    return found.select_related("message", "notice__user", "destination").order_by("-ended_at", "-id")


@dataclass(frozen=True, slots=True)
class Mails:
    """How mails do: how many wait, since when the oldest is due, and how many were given up."""

    waiting: int
    oldest: datetime | None
    dead: int


def mails_of(tenant_id: UUID) -> Mails:
    mine = Dispatch.objects.filter(tenant_id=tenant_id, channel="mail")
    pending = mine.filter(status=DispatchStatus.PENDING).aggregate(n=Count("pk"), oldest=Min("due_at"))
    dead = mine.filter(status=DispatchStatus.DEAD).count()
    return Mails(pending["n"], pending["oldest"], dead)
