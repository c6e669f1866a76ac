"""Mails: what is due is claimed by person, sent outside any transaction, and what came of it is stored.

At least once: whoever dies between handing over and storing leaves rows that are due again when their lease is over,
and the same Message-ID is handed over again, by which mail programs know the second one.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives

from audit.actors import Actor
from common.clock import Clock
from common.crashpoints import crashpoint
from common.deadline import Deadline
from common.delivering import Seen
from common.ids import new_id
from common.rounds import each
from common.stopping import stopping
from common.tx import action
from notify import times
from notify.actions import checking, ending
from notify.enums import Channel, DispatchStatus, Rhythm
from notify.letters import Entry, Reader, letter
from notify.models import Dispatch, Preference
from notify.post import Post

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(minutes=5)
ROUND_S: Final = 60.0
"""A round hands nothing over any more after it; what is left is due again when its lease is over."""
LETTERS: Final = 20
ROWS: Final = 400
MANY: Final = 5
"""More than so many at once to one person leave as one list, also where they want each: a flood is no news."""
LONGEST_LIST: Final = 100


@dataclass(frozen=True, slots=True)
class Claimed:
    """One mail that is to leave: the rows it is about, and which try of them this is."""

    batch: UUID
    tenant_id: UUID
    user_id: UUID
    ids: tuple[UUID, ...]
    tries: int


@dataclass(frozen=True, slots=True)
class Ready:
    """``mail`` is None where nothing of it needs to be told any more. ``moot``: which rows, and why."""

    claimed: Claimed
    mail: EmailMultiAlternatives | None
    moot: tuple[tuple[UUID, str], ...]
    problem: str = ""


def send_mails(*, by: Actor, clock: Clock, rounds: int = 10) -> int:
    """Hand over the mails that are due; returns how many. Waits seconds for the mail server."""
    sent = 0
    for _ in range(rounds):
        claimed = [] if stopping() else claim_mails(by=by, clock=clock)
        if not claimed:
            break
        sent += hand_over(claimed, by=by, clock=clock)
    return sent


def hand_over(claimed: Sequence[Claimed], *, by: Actor, clock: Clock) -> int:
    """Each claimed mail, and what came of each stored before the next."""
    until = Deadline.after(ROUND_S)
    with Post() as post:

        def one(mail: Claimed) -> bool:
            if until.over():
                return False
            ready = prepare(mail, clock())
            seen = post.hand_over(ready.mail) if ready.mail is not None else Seen(ready.problem, final=True)
            crashpoint("CP16")
            return store(ready, seen, by=by, clock=clock)

        return each(claimed, one, what="mail")


# -- claim ----------------------------------------------------------------------------------------------------


@action
def claim_mails(*, by: Actor, clock: Clock) -> list[Claimed]:
    """Begin a try of what is due, a few people at a time. It is counted before it is made."""
    now = clock()
    rows = Dispatch.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    due = rows.filter(channel=Channel.MAIL, status=DispatchStatus.PENDING, due_at__lte=now)
    found = list(due.select_related("message", "notice").order_by("due_at", "id")[:ROWS])
    tired = [row for row in found if row.tries >= ending.MOST_TRIES]
    ending.give_up(tired, by=by, at=now, problem="gave_up")
    letters = _letters([row for row in found if row.status == DispatchStatus.PENDING])
    return [_begin(batch, rows, now) for batch, rows in itertools.islice(letters.items(), LETTERS)]


def _letters(rows: Sequence[Dispatch]) -> dict[UUID, list[Dispatch]]:
    """What leaves together: what did at an earlier try, and several new ones for who wants or needs a list."""
    rhythms = _rhythms(rows)
    fresh = Counter(_reader(row) for row in rows if row.batch is None)
    letters: dict[UUID, list[Dispatch]] = defaultdict(list)
    lists: dict[tuple[UUID, UUID], UUID] = {}
    for row in rows:
        if row.batch is None:
            reader = _reader(row)
            together = rhythms.get(reader, Rhythm.EACH) != Rhythm.EACH or fresh[reader] > MANY
            row.batch = lists.setdefault(reader, new_id()) if together else new_id()
        letters[row.batch].append(row)
    return letters


def _reader(row: Dispatch) -> tuple[UUID, UUID]:
    assert row.notice is not None
    return row.tenant_id, row.notice.user_id


def _rhythms(rows: Sequence[Dispatch]) -> dict[tuple[UUID, UUID], str]:
    readers = {_reader(row) for row in rows}
    found = Preference.objects.filter(
        tenant_id__in={tenant for tenant, _ in readers}, user_id__in={user for _, user in readers}
    )
    return {(row.tenant_id, row.user_id): row.rhythm for row in found}


def _begin(batch: UUID, rows: list[Dispatch], now: datetime) -> Claimed:
    for row in rows[LONGEST_LIST:]:
        row.batch = None  # the rest is a list of its own, in the next round
    rows = rows[:LONGEST_LIST]
    tries = max(row.tries for row in rows) + 1
    for row in rows:
        row.due_at = row.claimed_until = now + LEASE
        row.batch, row.tries = batch, tries
    Dispatch.objects.bulk_update(rows, ["due_at", "claimed_until", "batch", "tries"])
    tenant_id, user_id = _reader(rows[0])
    return Claimed(batch, tenant_id, user_id, tuple(row.pk for row in rows), tries)


# -- prepare: reads only --------------------------------------------------------------------------------------


def prepare(claimed: Claimed, now: datetime) -> Ready:
    """The mail, of what is still to be told at this moment."""
    rows = list(
        Dispatch.objects.filter(pk__in=claimed.ids).select_related("message", "notice__user", "tenant")
    )
    moot = _moot(rows, claimed.user_id, now)
    left = [row for row in rows if row.pk not in moot and row.status == DispatchStatus.PENDING]
    gone = tuple(moot.items())
    if not left:
        return Ready(claimed, None, gone)
    try:
        return Ready(claimed, _letter(claimed, left), gone)
    except ValidationError:
        return Ready(claimed, None, gone, problem="no_address")
    except Exception as error:
        log.exception("mail_not_made", batch=str(claimed.batch), error=type(error).__name__)
        return Ready(claimed, None, gone, problem="not_made")


def _moot(rows: Sequence[Dispatch], user_id: UUID, now: datetime) -> dict[UUID, str]:
    standings = checking.standings(row.message for row in rows)
    found = {}
    for row in rows:
        told = row.message
        standing = standings[told.tenant_id, told.subject_type, told.subject_id]
        why = checking.why_moot(told, standing, now)
        if not why and user_id not in checking.still_theirs(told, standing, [user_id]):
            why = checking.NOT_THEIRS
        if why:
            found[row.pk] = why
    return found


def _letter(claimed: Claimed, rows: Sequence[Dispatch]) -> EmailMultiAlternatives:
    first = rows[0]
    assert first.notice is not None
    wishes = Preference.objects.filter(tenant_id=claimed.tenant_id, user_id=claimed.user_id).first()
    reader = Reader(
        user_id=claimed.user_id, email=first.notice.user.email, zone=wishes.zone if wishes else times.UTC_NAME,
        tenant=first.tenant.slug,
    )  # fmt: skip
    ordered = sorted(rows, key=lambda row: (row.message.until or row.due_at or row.created_at, row.pk))
    entries = [Entry(row.notice_id, row.message) for row in ordered if row.notice_id is not None]
    return letter(claimed.batch, reader, entries)


# -- store ----------------------------------------------------------------------------------------------------


@action
def store(ready: Ready, seen: Seen, *, by: Actor, clock: Clock) -> bool:
    """What came of one try. Rows that another try has overtaken are left to that one, unless the mail was taken."""
    moot, now = dict(ready.moot), clock()
    rows = [row for row in ending.locked(ready.claimed.ids) if row.status == DispatchStatus.PENDING]
    mine = [row for row in rows if row.tries == ready.claimed.tries]
    for why in sorted(set(moot.values())):
        ending.moot([row for row in mine if moot.get(row.pk) == why], by=by, at=now, because=why)
    told = [row for row in rows if row.pk not in moot]
    if not told or (ready.mail is None and not ready.problem):
        return False
    if not seen.problem:
        ending.delivered(told, by=by, at=now)
        return True
    ending.failed([row for row in told if row in mine], seen, by=by, at=now)
    return False
