"""What keeps coming back: why things stopped lately, beside the time before."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, F, Max, Q, QuerySet
from django.urls import reverse

from common.display import visible
from repair.incidents.criteria import Criteria
from repair.models import RepairMove, RepairPacket
from repair.tables import cause_words
from workflows.enums import RunKind
from workflows.screens.words import title_of

SPANS: Final = (7, 30, 90)
"""Days that can be looked at, each beside as many before."""
USUAL: Final = 30
MOST: Final = 50


@dataclass(frozen=True, slots=True)
class Returning:
    """One cause in one workflow: how often in the span, how often in the one before, and when last."""

    words: str
    workflow: str
    times: int
    before: int
    last: datetime
    href: str = ""
    find_href: str = ""
    """Where all runs of the kind are found, and an incident is opened of them."""

    @property
    def trend(self) -> str:
        if not self.before:
            return "new"
        return "more" if self.times > self.before else "fewer" if self.times < self.before else "as often"


@dataclass(frozen=True, slots=True)
class Learned:
    """The page: what people said it was, what the product saw, and of how many settled cases nobody has said why."""

    days: int
    said: tuple[Returning, ...]
    seen: tuple[Returning, ...]
    unsaid: int
    spans: tuple[tuple[int, str], ...]


def learned(tenant_id: UUID, asked: str, now: datetime) -> Learned:
    """``asked``: the days, as an address says them; what is not offered is the usual span."""
    days = next((days for days in SPANS if asked == str(days)), USUAL)
    page = reverse("repair:causes")
    return Learned(
        days=days, said=_said(tenant_id, days, now), seen=_seen(tenant_id, days, now),
        unsaid=_unsaid(tenant_id, now - timedelta(days=days)),
        spans=tuple((span, f"{page}?{urlencode({'days': span})}") for span in SPANS),
    )  # fmt: skip


def _said(tenant_id: UUID, days: int, now: datetime) -> tuple[Returning, ...]:
    moves = RepairMove.objects.filter(tenant_id=tenant_id, root_cause__isnull=False, refused="")
    rows = _counted(moves, "at", days, now, what=F("root_cause__title"), flow=F("packet__run__workflow"))
    return tuple(_row(row, visible(row["what"])) for row in rows)


def _seen(tenant_id: UUID, days: int, now: datetime) -> tuple[Returning, ...]:
    # A replay is no case of its own: what it meets again was counted when it came first.
    packets = RepairPacket.objects.filter(tenant_id=tenant_id).exclude(run__kind=RunKind.REPLAY)
    rows = _counted(packets, "opened_at", days, now, what=F("cause"), flow=F("run__workflow"))
    return tuple(_row(row, cause_words(row["what"]), _list_of(row), _runs_of(row, days, now)) for row in rows)


def _counted(rows: QuerySet[Any], at: str, days: int, now: datetime, **by: F) -> list[dict[str, Any]]:
    """Both spans in one read, the most frequent first."""
    since, span = now - timedelta(days=days), timedelta(days=days)
    grouped = rows.filter(**{f"{at}__gte": since - span}).order_by().values(**by)
    recent = Q(**{f"{at}__gte": since})
    counted = grouped.annotate(
        times=Count("pk", filter=recent), before=Count("pk", filter=~recent), last=Max(at)
    )
    return list(counted.filter(times__gt=0).order_by("-times", "-last", "what", "flow")[:MOST])


def _row(row: dict[str, Any], words: str, href: str = "", find_href: str = "") -> Returning:
    return Returning(words, title_of(row["flow"]), row["times"], row["before"], row["last"], href, find_href)


def _list_of(row: dict[str, Any]) -> str:
    """Those of the kind that are still open."""
    return reverse("repair:packets") + "?" + urlencode({"q": row["what"], "workflow": row["flow"]})


def _runs_of(row: dict[str, Any], days: int, now: datetime) -> str:
    """Every run of the kind that began in the span, whatever became of it."""
    return Criteria(since=now - timedelta(days=days), workflow=row["flow"], cause=row["what"]).address()


def _unsaid(tenant_id: UUID, since: datetime) -> int:
    told = RepairMove.objects.filter(tenant_id=tenant_id, root_cause__isnull=False, refused="", at__gte=since)
    ended = RepairPacket.objects.filter(tenant_id=tenant_id, opened_at__gte=since, ended_at__isnull=False)
    return ended.exclude(pk__in=told.values("packet_id")).count()
