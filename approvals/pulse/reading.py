"""Fill the memory from the history, by the system role: one statement when nothing has happened.

The history is what is read because every change of a proposal writes its event in the same transaction.
"""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.db import connection

from approvals.enums import ProposalStatus
from approvals.pulse.memory import Change, Memory, Present
from audit.names import names_of, spoken
from common.dbroles import as_system
from common.states_ui import state_ui
from notify.unread import unread_of

MOST_READ: Final = 5000
NAMES_KEPT_S: Final = 600.0
_WHOSE: Final = ("key", "tenant_id", "user_id")

_SINCE: Final = """
    SELECT e.id, e.xid, e.tenant_id, e.kind, e.subject_id, e.performed_by, e.at,
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint
    FROM (SELECT 1) AS always LEFT JOIN LATERAL (
        SELECT * FROM audit_event
        WHERE xid >= COALESCE(%s, pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
            AND subject_type = 'proposal' ORDER BY xid LIMIT %s
    ) AS e ON true
"""
_WAITING: Final = """
    SELECT t.id, (SELECT count(*) FROM approvals_proposal p
        WHERE p.tenant_id = t.id AND p.status = 'pending' AND p.decide_by > statement_timestamp())
    FROM unnest(%s::uuid[]) AS t(id)
"""
_STILL: Final = """
    SELECT k.key, m.roles, ARRAY(
        SELECT g.group_id FROM access_groupmembership g WHERE g.membership_id = m.id ORDER BY g.group_id)
    FROM unnest(%s::text[], %s::uuid[], %s::uuid[], %s::text[]) AS k(key, user_id, membership_id, password)
    JOIN django_session s ON s.session_key = k.key AND s.expire_date > statement_timestamp()
    JOIN access_user u ON u.id = k.user_id AND u.is_active
        AND encode(sha256(convert_to(u.password, 'UTF8')), 'hex') = k.password
    JOIN access_membership m ON m.id = k.membership_id AND m.user_id = u.id AND m.is_active
"""
_GIVEN: Final = """
    SELECT p.id, (SELECT count(*) FROM approvals_decision d
        WHERE d.proposal_id = p.id AND d.replaced_at IS NULL AND d.kind = 'approve') || ' of ' || p.needed
    FROM approvals_proposal p WHERE p.id = ANY(%s::uuid[])
"""
"""As the row of the queue says it; asked for only where somebody has voted and more votes are needed."""
VOTE: Final = "proposal.vote"
HOLDS: Final = {"proposal.held": True, "proposal.taken_over": True, "proposal.released": False}
OVER: Final = {
    f"proposal.{status}": str(status)
    for status in ProposalStatus
    if status not in ("pending", "consumed", "lapsed")
}

_names: dict[str, tuple[float, str]] = {}


@as_system()
def look(memory: Memory) -> None:
    """Read what has happened since the last look, and how many wait wherever something has."""
    since = memory.place or None
    rows = _fetch(_SINCE, [since, MOST_READ])
    place, events = rows[0][-1], [row for row in rows if row[0] is not None]
    if len(events) >= MOST_READ:  # the rest comes with the next look
        place = min(place, events[-1][1])
    fresh = [row for row in events if row[0] not in memory.known]
    tenants = {row[2] for row in fresh} | (
        {known.tenant_id for known in memory.here(60)} - memory.tenants_known()
    )
    waiting = dict(_fetch(_WAITING, [list(tenants)])) if tenants else {}
    memory.learn(place, _changes(fresh, memory.clock()), waiting)


@as_system()
def look_back(memory: Memory, since: int) -> None:
    """Read from an earlier place on, for a page that knew it from before this process began. Too much is left out."""
    rows = [row for row in _fetch(_SINCE, [since, MOST_READ]) if row[0] is not None]
    if len(rows) < MOST_READ:
        memory.reach_back(since, _changes(rows, memory.clock()))


@as_system()
def check_sessions(memory: Memory, within_s: float) -> None:
    """Look at all sessions that asked lately, with one statement; whoever lost theirs, or rights, is forgotten."""
    here = memory.here(within_s)
    if not here:
        return
    columns = [
        [getattr(known, name) for known in here] for name in ("key", "user_id", "membership_id", "password")
    ]
    still = {key: rights_of(roles, groups) for key, roles, groups in _fetch(_STILL, columns)}
    memory.leave([known.key for known in here if still.get(known.key) != known.rights])
    memory.unread.update(unread_of(*([getattr(known, name) for known in here] for name in _WHOSE)))


def rights_of(roles: Iterable[str], groups: Iterable[UUID]) -> str:
    """Roles and groups in one word, to see whether they have changed."""
    text = f"{sorted(map(str, roles))} {sorted(map(str, groups))}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def password_mark(stored: str) -> str:
    return hashlib.sha256(stored.encode()).hexdigest()


def _changes(rows: Sequence[tuple[Any, ...]], now: float) -> list[Change]:
    over = {row[4] for row in rows if row[3] in OVER}
    told = [
        row for row in rows
        if row[3] == "proposal.made" or row[3] in HOLDS or row[3] in OVER or (row[3] == VOTE and row[4] not in over)
    ]  # fmt: skip
    names = _spoken({row[5] for row in told})
    voted = list({row[4] for row in told if row[3] == VOTE})
    given = {str(pk): words for pk, words in (_fetch(_GIVEN, [voted]) if voted else ())}
    return [
        Change(event, place, tenant_id, _told(kind, str(proposal_id), names[actor], at, given), now)
        for event, place, tenant_id, kind, proposal_id, actor, at, _ in told
    ]


def _told(kind: str, proposal_id: str, who: str, at: Any, given: Mapping[str, str]) -> dict[str, Any]:
    told = {"id": proposal_id, "at": at.isoformat()}
    if kind in HOLDS:
        return told | {
            "is": "held" if HOLDS[kind] else "free",
            "who": who,
            "taken": kind == "proposal.taken_over",
        }
    if kind == VOTE:
        return told | {"is": "vote", "who": who, "given": given.get(proposal_id, "")}
    if kind in OVER:
        ui = state_ui("proposal", OVER[kind])
        return told | {"is": "over", "who": who, "tone": ui.tone, "icon": ui.icon, "word": ui.word}
    return told | {"is": "new"}


def _spoken(actors: set[str]) -> dict[str, str]:
    """Actors as people read them. A name is looked up once in a while."""
    now = time.monotonic()
    missing = {actor for actor in actors if _names.get(actor, (float("-inf"), ""))[0] < now - NAMES_KEPT_S}
    if missing:
        names = names_of(missing)
        _names.update({actor: (now, spoken(actor, names)) for actor in missing})
    return {actor: _names[actor][1] for actor in actors}


def _fetch(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def session(key: str, membership: Any, password: str, groups: Iterable[UUID], ends: float) -> Present:
    """A session that has just been checked, to be remembered."""
    return Present(
        key=key, user_id=membership.user_id, membership_id=membership.pk, tenant_id=membership.tenant_id,
        password=password_mark(password), rights=rights_of(membership.roles, groups), ends=ends,
    )  # fmt: skip
