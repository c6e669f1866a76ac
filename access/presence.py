"""Who is there in a stretch of time: of those who are asked, how many could answer before it is over."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from access.enums import Role
from access.hours import ALWAYS, Hours, Stretch, without
from common.prepared import fetch


@dataclass(frozen=True, slots=True)
class Muster:
    """How many of the people that are asked can answer. Whoever is on the proposer's side, or away, cannot.

    ``able`` counts people and places: who decides for themself and in somebody's stead is one, and so is whoever is
    away with their deputy. ``opens_at``: when work begins again, where nobody works in the whole stretch.
    """

    asked: int
    own: int
    away: int
    off: int
    able: int
    opens_at: datetime | None
    roster: str
    """A hash of all that was looked at in the organisation; another one: count again."""


@dataclass(frozen=True, slots=True)
class _Absence:
    start: datetime
    end: datetime
    deputy: UUID | None
    group: UUID | None


@dataclass(frozen=True, slots=True)
class _Person:
    person: UUID
    accounts: frozenset[UUID]
    roles: frozenset[str]
    groups: frozenset[UUID]
    own: bool
    absences: tuple[_Absence, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """Of whom is asked, of whom not, and from when to when they can answer."""

    tenant_id: UUID
    groups: tuple[UUID, ...]
    """Empty: every reviewer."""
    roles: tuple[str, ...]
    """Roles that are asked beside the groups."""
    excluded: tuple[UUID, ...]
    start: datetime
    end: datetime


_ROSTER: Final = """
    md5(concat_ws('|',
        (SELECT string_agg(
            concat_ws(',', m.user_id, m.is_active AND u.is_active, m.roles, m.person_id), ';' ORDER BY m.id)
         FROM access_membership m JOIN access_user u ON u.id = m.user_id WHERE m.tenant_id = t.id),
        (SELECT string_agg(concat_ws(',', g.membership_id, g.group_id), ';' ORDER BY g.id)
         FROM access_groupmembership g WHERE g.tenant_id = t.id),
        (SELECT string_agg(a.id::text, ';' ORDER BY a.id) FROM access_absence a
         WHERE a.tenant_id = t.id AND a.ended_at IS NULL AND a.ends_at > clock_timestamp()),
        (SELECT string_agg(concat_ws(',', h.id, h.changed_at), ';' ORDER BY h.id)
         FROM access_workinghours h WHERE h.tenant_id = t.id),
        (SELECT string_agg(b.id::text, ';') FROM access_breakglass b
         WHERE b.tenant_id = t.id AND b.ended_at IS NULL AND b.ends_at > clock_timestamp())
    ))
"""
_ROSTERS: Final = f"SELECT t.id, {_ROSTER} FROM common_tenant t WHERE t.id = ANY(%s::uuid[])"  # noqa: S608
_MUSTER: Final = f"""
    WITH absences AS (
        SELECT COALESCE(m.person_id, m.user_id) AS person, a.*
        FROM access_absence a JOIN access_membership m ON m.tenant_id = a.tenant_id AND m.user_id = a.user_id
        WHERE a.tenant_id = %s AND a.ended_at IS NULL AND a.starts_at < %s AND a.ends_at > %s
    ), people AS (
        SELECT m.user_id, m.roles, COALESCE(m.person_id, m.user_id) AS person,
            ARRAY(SELECT g.group_id FROM access_groupmembership g WHERE g.membership_id = m.id) AS groups
        FROM access_membership m JOIN access_user u ON u.id = m.user_id
        WHERE m.tenant_id = %s AND m.is_active AND u.is_active
          AND (m.roles && %s::varchar[] OR EXISTS (SELECT FROM absences a WHERE a.deputy_id = m.user_id))
          AND (cardinality(%s::uuid[]) = 0 OR m.roles && %s::varchar[] OR EXISTS (
                SELECT FROM access_groupmembership g WHERE g.membership_id = m.id AND g.group_id = ANY(%s::uuid[]))
            OR EXISTS (SELECT FROM absences a WHERE a.deputy_id = m.user_id))
    )
    SELECT {_ROSTER},
        EXISTS (SELECT FROM access_breakglass b
                WHERE b.tenant_id = t.id AND b.ended_at IS NULL AND b.ends_at > clock_timestamp()),
        COALESCE((SELECT jsonb_agg(jsonb_build_array(h.group_id, h.zone, h.week, h.holidays))
                  FROM access_workinghours h WHERE h.tenant_id = t.id), '[]'),
        COALESCE((SELECT jsonb_agg(jsonb_build_array(a.person, a.starts_at, a.ends_at, a.deputy_id, a.group_id)
                  ORDER BY a.starts_at, a.id) FROM absences a), '[]'),
        COALESCE((SELECT jsonb_agg(jsonb_build_array(p.person, ARRAY(
                    SELECT o.user_id FROM access_membership o
                    WHERE o.tenant_id = t.id AND COALESCE(o.person_id, o.user_id) = p.person),
                  p.user_id, p.roles, p.groups)) FROM people p), '[]')
    FROM common_tenant t WHERE t.id = %s
"""  # noqa: S608 - texts of ours


def rosters(tenant_ids: Collection[UUID]) -> dict[UUID, str]:
    """A hash of each organisation's people, groups, absences, hours and posture, as of now."""
    return {tenant: str(roster) for tenant, roster in fetch(_ROSTERS, [list(tenant_ids)])}


def muster(question: Question) -> Muster:
    """Count who could answer, in one statement."""
    it, groups, roles = question, list(question.groups), list(question.roles)
    [(roster, open_, hours, absences, people)] = fetch(_MUSTER, [
        it.tenant_id, it.end, it.start, it.tenant_id, [Role.REVIEWER.value, *roles], groups, roles, groups,
        it.tenant_id,
    ])  # fmt: skip
    known = _people(
        json.loads(people), json.loads(absences), frozenset() if open_ else frozenset(it.excluded)
    )
    return _Count(it, known, _hours(json.loads(hours))).muster(str(roster))


def _people(rows: list[Any], absences: list[Any], excluded: frozenset[UUID]) -> list[_Person]:
    """One of each person: what any of their accounts holds."""
    away: dict[str, list[_Absence]] = {}
    for person, start, end, deputy, group in absences:
        times = datetime.fromisoformat(start), datetime.fromisoformat(end)
        away.setdefault(person, []).append(_Absence(*times, _id(deputy), _id(group)))
    found: dict[str, _Person] = {}
    for person, accounts, _, roles, groups in rows:
        before = found.get(person)
        all_ids = frozenset(map(UUID, accounts))
        found[person] = _Person(
            UUID(person), all_ids, frozenset(roles) | (before.roles if before else frozenset()),
            frozenset(map(UUID, groups)) | (before.groups if before else frozenset()),
            not all_ids.isdisjoint(excluded), tuple(away.get(person, ())),
        )  # fmt: skip
    return list(found.values())


def _id(text: str | None) -> UUID | None:
    return UUID(text) if text else None


def _hours(rows: Iterable[Any]) -> dict[UUID | None, Hours]:
    return {_id(group): hours_of(zone, week, holidays) for group, zone, week, holidays in rows}


def hours_of(zone: str, week: Sequence[Any], holidays: Iterable[str | date]) -> Hours:
    """As they are stored: days as pairs or null, holidays as dates or their ISO texts."""
    days = tuple((int(day[0]), int(day[1])) if day else None for day in week)
    off = (date.fromisoformat(day) if isinstance(day, str) else day for day in holidays)
    return Hours(ZoneInfo(zone), days, frozenset(off))


class _Count:
    """The arithmetic of one question."""

    def __init__(self, question: Question, people: list[_Person], hours: dict[UUID | None, Hours]) -> None:
        self.question, self.hours = question, hours
        self.asked = [person for person in people if self._places(person) is not None]
        self.by_account = {account: person for person in people for account in person.accounts}

    def muster(self, roster: str) -> Muster:
        own = away = off = 0
        pairs: list[tuple[UUID, UUID]] = []
        for person in self.asked:
            working = self._working(person)
            mine = [] if person.own else self._who_decides(person, working)
            pairs += mine
            own += person.own
            off += not person.own and not working
            away += bool(not person.own and working and not mine)
        able = min(len({head for head, _ in pairs}), len({place for _, place in pairs}))
        closed = off and off == len(self.asked) - own
        return Muster(len(self.asked), own, away, off, able, self._opens_at() if closed else None, roster)

    def _places(self, person: _Person) -> frozenset[UUID | None] | None:
        """The groups for which they are asked; None stands for the organisation; no answer: they are not."""
        it = self.question
        if not person.roles.isdisjoint(it.roles):
            return frozenset({None})
        if Role.REVIEWER not in person.roles:
            return None
        if not it.groups:
            return frozenset({None})
        return person.groups & frozenset(it.groups) or None

    def _working(self, person: _Person) -> list[Stretch]:
        places = self._places(person) or frozenset()
        return [
            stretch for place in places
            for stretch in self._hours_for(place).stretches(self.question.start, self.question.end)
        ]  # fmt: skip

    def _hours_for(self, group: UUID | None) -> Hours:
        return self.hours.get(group) or self.hours.get(None) or ALWAYS

    def _who_decides(self, person: _Person, working: list[Stretch]) -> list[tuple[UUID, UUID]]:
        """(who, in whose place) of everybody who could: the person, and their deputies while they are away."""
        found = [(person.person, person.person)] if _free(working, person) else []
        for absence in person.absences:
            deputy = self.by_account.get(absence.deputy) if absence.deputy else None
            if deputy is None or deputy.own or deputy.person == person.person:
                continue
            meanwhile = [
                (max(start, absence.start), min(end, absence.end))
                for start, end in working
                if start < absence.end and end > absence.start
            ]
            fits = absence.group is None or absence.group in (self._places(person) or ())
            if fits and Role.REVIEWER in deputy.roles and _free(meanwhile, deputy):
                found.append((deputy.person, person.person))
        return found

    def _opens_at(self) -> datetime | None:
        places = {place for person in self.asked for place in self._places(person) or ()}
        found = [self._hours_for(place).opens_after(self.question.end) for place in places]
        return min((at for at in found if at is not None), default=None)


def _free(stretches: list[Stretch], person: _Person) -> bool:
    return bool(without(stretches, [(absence.start, absence.end) for absence in person.absences]))
