"""Chat messages: what is due is claimed by destination, sent outside any transaction, and the answer is stored.

At least once, with the same ``webhook-id`` at each try. A destination that fails is left alone for a while.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.core.mail import EmailMessage
from django.db.models import Exists, F, OuterRef, Q

from audit.actors import Actor
from common.clock import Clock
from common.delivering import Seen, rest_after, try_once
from common.outgoing import OutgoingRequest
from common.rounds import each
from common.sealing import can_open
from common.signed_webhooks import signed_headers
from common.stopping import stopping
from common.tx import action
from notify.actions import checking, ending
from notify.actions.destinations import end_destination, locked_destination
from notify.anchors import checkpoint_letter
from notify.enums import DispatchStatus, Style
from notify.models import Destination, Dispatch
from notify.post import Post
from notify.rooms import body_of

log = structlog.get_logger(__name__)

CALL_WITHIN_S: Final = 5.0
MOST_BYTES: Final = 16 * 1024
LEASE: Final = timedelta(seconds=30)
ROOMS_AT_ONCE: Final = 8
CALLS_TO_ONE: Final = 4
_LONGEST_REST: Final = timedelta(minutes=5)
_FOR_GOOD: Final = frozenset({400, 401, 403, 404, 405, 410, 413, 415, 422})
"""The address, the key or the shape is wrong: asking again changes nothing, and its people need another way."""
GONE: Final = 410


@dataclass(frozen=True, slots=True)
class Claimed:
    dispatch_id: UUID
    tenant_id: UUID
    destination_id: UUID
    tries: int


@dataclass(frozen=True, slots=True)
class Ready:
    claimed: Claimed
    request: OutgoingRequest | None = field(repr=False)
    moot: str = ""
    mail: EmailMessage | None = field(default=None, repr=False)
    """In place of a request, to an address."""


def send_chats(*, by: Actor, clock: Clock, rounds: int = 20) -> int:
    """Send what is due, a round at a time; returns how many tries were made. Waits seconds for receivers."""
    made = 0
    for _ in range(rounds):
        claimed = [] if stopping() else claim_chats(by=by, clock=clock)
        if not claimed:
            break
        ready = [prepare(one, clock()) for one in claimed]
        with ThreadPoolExecutor(max_workers=len(ready)) as threads:
            answers = list(zip(ready, threads.map(_send, ready), strict=True))
        made += each(answers, lambda one: store(one[0], one[1], by=by, clock=clock), what="chat")
    return made


@action
def claim_chats(*, by: Actor, clock: Clock) -> list[Claimed]:
    """Begin a try of what is due: of each destination a few, of one that fails a single one."""
    now, claimed = clock(), []
    for room in _rooms_with_work(now):
        rows = Dispatch.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
        due = rows.filter(destination=room, status=DispatchStatus.PENDING, due_at__lte=now).select_related(
            "message"
        )
        for row in due.order_by("due_at", "id")[: CALLS_TO_ONE if room.failures == 0 else 1]:
            if row.tries >= ending.MOST_TRIES:
                ending.give_up([row], by=by, at=now, problem=row.problem or "gave_up")
                continue
            row.due_at = row.claimed_until = now + LEASE
            row.tries += 1
            row.save(update_fields=["due_at", "claimed_until", "tries"])
            claimed.append(Claimed(row.pk, row.tenant_id, room.pk, row.tries))
        room.last_called_at = now
        room.save(update_fields=["last_called_at"])
    return claimed


def _rooms_with_work(now: datetime) -> list[Destination]:
    due = Dispatch.objects.filter(destination=OuterRef("pk"), status=DispatchStatus.PENDING, due_at__lte=now)
    awake = Q(paused_until=None) | Q(paused_until__lte=now)
    rows = Destination.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    mine = can_open("sealed_url") & (Q(sealed_secret=None) | can_open("sealed_secret"))
    found = rows.filter(awake, mine, Exists(due), deactivated_at=None)
    return list(found.order_by(F("last_called_at").asc(nulls_first=True), "id")[:ROOMS_AT_ONCE])


def prepare(claimed: Claimed, now: datetime) -> Ready:
    """One that cannot be made fails alone."""
    try:
        return _prepare(claimed, now)
    except Exception as error:
        log.exception("chat_not_made", dispatch=str(claimed.dispatch_id), error=type(error).__name__)
        return Ready(claimed, None)


def _prepare(claimed: Claimed, now: datetime) -> Ready:
    row = Dispatch.objects.select_related("message", "destination").get(pk=claimed.dispatch_id)
    told, room = row.message, row.destination
    assert room is not None
    standing = checking.standings([told])[told.tenant_id, told.subject_type, told.subject_id]
    why = checking.why_moot(told, standing, now)
    if why:
        return Ready(claimed, None, moot=why)
    if room.style == Style.MAIL:
        return Ready(claimed, None, mail=checkpoint_letter(row, room.url().removeprefix("mailto:")))
    body = json.dumps(body_of(told, room.style)).encode()
    headers = {"content-type": "application/json", "user-agent": "placet"}
    headers |= signed_headers(room.keys(), identity=str(row.pk), body=body, now=now)
    return Ready(claimed, OutgoingRequest("POST", room.url(), headers, body, max_bytes=MOST_BYTES))


def _send(ready: Ready) -> Seen:
    if ready.mail is not None:
        with Post() as post:
            return post.hand_over(ready.mail)
    if ready.request is None:
        return Seen("" if ready.moot else "not_made")
    seen = try_once(ready.request, CALL_WITHIN_S, what=str(ready.claimed.dispatch_id))
    return replace(seen, final=seen.http_status in _FOR_GOOD)


@action
def store(ready: Ready, seen: Seen, *, by: Actor, clock: Clock) -> bool:
    """What came of one try. One that another has overtaken may still tell that it was delivered, and no more."""
    claimed = ready.claimed
    room = locked_destination(claimed.tenant_id, claimed.destination_id)
    [row] = ending.locked([claimed.dispatch_id])
    now = clock()
    if not ready.moot:
        _note_health(room, seen, now)
    if row.status != DispatchStatus.PENDING:
        pass  # it has ended meanwhile
    elif ready.moot:
        ending.moot([row], by=by, at=now, because=ready.moot)
    elif not seen.problem:
        ending.delivered([row], by=by, at=now)
    elif row.tries == claimed.tries:
        ending.failed([row], seen, by=by, at=now)
    if seen.http_status == GONE and room.deactivated_at is None:
        end_destination(room, by=by, at=now, kind="destination.gone", reason="http_410")
    return not ready.moot


def _note_health(room: Destination, seen: Seen, now: datetime) -> None:
    if not seen.problem:
        room.failures, room.paused_until, room.last_delivered_at = 0, None, now
    else:
        room.paused_until = now + rest_after(room.failures, _LONGEST_REST)
        room.failures += 1
        room.last_failed_at = now
        room.last_problem = f"http_{seen.http_status}" if seen.http_status else seen.problem
    room.save(
        update_fields=["failures", "paused_until", "last_delivered_at", "last_failed_at", "last_problem"]
    )
