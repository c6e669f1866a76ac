"""What the pages of absences and of working hours show."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q

from access.forms_absence import initial_week
from access.hours import DAYS
from access.models import Absence, Group, Membership, WorkingHours
from common.states_ui import Tone

SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class AbsenceRow:
    """One absence: of whom, in the clock of its zone, and how it stands."""

    absence: Absence
    starts: str
    ends: str
    tone: Tone
    icon: str
    word: str
    open: bool


@dataclass(frozen=True, slots=True)
class AbsenceScreen:
    """Of one person: their own, and those in which they decide in somebody's stead."""

    membership: Membership
    own: tuple[AbsenceRow, ...]
    deputising: tuple[AbsenceRow, ...]
    zone: str
    """The one that a new absence begins with."""


def absence_screen(membership: Membership, now: datetime) -> AbsenceScreen:
    tenant_id, accounts = membership.tenant_id, membership.accounts
    rows = Absence.objects.filter(tenant_id=tenant_id).select_related("user", "deputy", "group")
    own = list(rows.filter(user__in=accounts).order_by("-starts_at", "-id")[:SHOWN])
    coming = rows.filter(deputy__in=accounts, ended_at=None, ends_at__gt=now).order_by("starts_at", "id")
    usual = (
        WorkingHours.objects.filter(tenant_id=tenant_id, group=None).values_list("zone", flat=True).first()
    )
    return AbsenceScreen(
        membership, _rows(own, now), _rows(coming[:SHOWN], now), own[0].zone if own else usual or "UTC"
    )


def _rows(absences: Iterable[Absence], now: datetime) -> tuple[AbsenceRow, ...]:
    return tuple(_row(absence, now) for absence in absences)


def _row(absence: Absence, now: datetime) -> AbsenceRow:
    tone, icon, word = _standing(absence, now)
    ahead = absence.ended_at is None and absence.ends_at > now
    return AbsenceRow(
        absence,
        _local(absence.starts_at, absence.zone),
        _local(absence.ends_at, absence.zone),
        tone,
        icon,
        word,
        ahead,
    )


def _standing(absence: Absence, now: datetime) -> tuple[Tone, str, str]:
    if absence.ended_at is not None:
        return "mute", "ban", "Taken back"
    if absence.ends_at <= now:
        return "mute", "check", "Over"
    if absence.starts_at > now:
        return "act", "clock", "Ahead"
    return "wait", "pending", "Away now"


def _local(at: datetime, zone: str) -> str:
    return at.astimezone(ZoneInfo(zone)).strftime("%a %d %b %Y, %H:%M")


@dataclass(frozen=True, slots=True)
class HoursRow:
    """The week of one group, or of the whole organisation."""

    group: Group | None
    row: WorkingHours | None
    days: tuple[tuple[str, str], ...]


def hours_rows(tenant_id: UUID) -> list[HoursRow]:
    """The organisation's first, then those of every group."""
    found = {row.group_id: row for row in WorkingHours.objects.filter(tenant_id=tenant_id)}
    groups: list[Group | None] = [None, *Group.objects.filter(tenant_id=tenant_id).order_by("name", "id")]
    return [_hours_row(group, found.get(group.pk if group else None)) for group in groups]


def _hours_row(group: Group | None, row: WorkingHours | None) -> HoursRow:
    if row is None:
        return HoursRow(group, None, ())
    texts = initial_week(row)
    days = tuple(
        (
            day,
            f"{texts[f'from_{number}']}–{texts[f'until_{number}']}"
            if f"from_{number}" in texts
            else "closed",
        )
        for number, day in enumerate(DAYS)
    )
    return HoursRow(group, row, days)


def who_is_away(tenant_id: UUID, now: datetime) -> tuple[AbsenceRow, ...]:
    """Now and ahead, of everybody, the soonest first."""
    rows = Absence.objects.filter(Q(tenant_id=tenant_id, ended_at=None, ends_at__gt=now))
    return _rows(rows.select_related("user", "deputy", "group").order_by("starts_at", "id")[:SHOWN], now)
