"""Calling back: what is due is claimed, sent outside any transaction, and the answer is stored.

At least once: whoever dies between sending and storing leaves a row that is due again when its lease is over, and the
same ``webhook-id`` is sent again. Nothing that a receiver answers, or does not, changes a run.
"""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from audit.actors import Actor
from common.clock import Clock
from common.delivering import Seen, next_try, rest_after, try_once
from common.outgoing import OutgoingRequest
from common.rounds import each
from common.sealing import can_open
from common.signed_webhooks import signed_headers
from common.stopping import stopping
from common.tx import action
from workflows.actions.callbacks import end_callback, give_up_on, locked_callback
from workflows.actions.outbox import delivered, give_up, ring_on_commit
from workflows.enums import CallStatus
from workflows.models import CallbackCall, CallbackEndpoint, CallbackSecret, Run
from workflows.models.callbacks import TRIES_AT_A_TIME
from workflows.selectors import public_part

log = structlog.get_logger(__name__)

CALL_WITHIN_S: Final = 5.0
MOST_BYTES: Final = 16 * 1024
"""Of an answer: nothing of it is read but the status."""
LEASE: Final = timedelta(seconds=30)
"""Longer than a round takes; a try that was lost begins again after it."""
_FIRST_PAUSE: Final = timedelta(seconds=10)
_LONGEST_PAUSE: Final = timedelta(hours=2)
_LONGEST_REST: Final = timedelta(minutes=5)
"""So long a destination is left alone at most, when calls to it fail."""
ENDPOINTS_AT_ONCE: Final = 8
CALLS_TO_ONE: Final = 4


@dataclass(frozen=True, slots=True)
class Claimed:
    """One try that was begun: which row, which try of it, and where it goes."""

    call_id: UUID
    tenant_id: UUID
    endpoint_id: UUID
    run_id: UUID
    tries: int
    url: str
    reached_at: datetime


@dataclass(frozen=True, slots=True)
class _Ready:
    claimed: Claimed
    request: OutgoingRequest | None = field(repr=False)


def call_back_due(*, by: Actor, clock: Clock, rounds: int = 20) -> int:
    """Make the calls that are due, a round at a time; returns how many were made. Waits seconds for receivers."""
    _forget_ended_secrets()
    _give_up_orphans(by=by, clock=clock)
    made = 0
    for _ in range(rounds):
        claimed = [] if stopping() else claim_calls(clock=clock, by=by)
        if not claimed:
            break
        made += make_calls(claimed, by=by, clock=clock)
    return made


def make_calls(claimed: Sequence[Claimed], *, by: Actor, clock: Clock) -> int:
    """Send what was claimed, all at once, and store each answer."""
    ready = [_prepare(one, clock()) for one in claimed]
    with ThreadPoolExecutor(max_workers=len(ready)) as threads:
        seen = list(threads.map(_send, ready))
    answers = list(zip(claimed, seen, strict=True))
    return each(answers, lambda one: store_seen(one[0], one[1], by=by, clock=clock), what="call_back")


# -- claim ----------------------------------------------------------------------------------------------------


@action
def claim_calls(*, by: Actor, clock: Clock) -> list[Claimed]:
    """Begin a try of the calls that are due: of each destination a few, of one that fails a single one.

    The try is counted before it is made, and others are kept away until it should have ended.
    """
    now, claimed = clock(), []
    for endpoint in _endpoints_with_work(now):
        most = CALLS_TO_ONE if endpoint.failures == 0 else 1
        rows = CallbackCall.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
        due = rows.filter(endpoint=endpoint, status=CallStatus.PENDING, due_at__lte=now)
        for call in due.order_by("due_at", "id")[:most]:
            if call.tries >= call.most_tries:
                give_up(call, by=by, at=now, problem=call.problem or "gave_up")
                continue
            claimed.append(_begin(call, endpoint, now))
        endpoint.last_called_at = now
        endpoint.save(update_fields=["last_called_at"])
    return claimed


def _endpoints_with_work(now: datetime) -> list[CallbackEndpoint]:
    """Those that were called longest ago come first, and none that is left alone now, or that we cannot sign for."""
    due = CallbackCall.objects.filter(endpoint=OuterRef("pk"), status=CallStatus.PENDING, due_at__lte=now)
    awake = Q(paused_until=None) | Q(paused_until__lte=now)
    sealed = CallbackSecret.objects.filter(_counting(now), ~can_open("sealed"), endpoint=OuterRef("pk"))
    rows = CallbackEndpoint.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    found = rows.filter(awake, Exists(due), ~Exists(sealed), deactivated_at=None)
    return list(found.order_by(F("last_called_at").asc(nulls_first=True), "id")[:ENDPOINTS_AT_ONCE])


def _begin(call: CallbackCall, endpoint: CallbackEndpoint, now: datetime) -> Claimed:
    call.due_at = call.claimed_until = now + LEASE
    call.tries += 1
    call.save(update_fields=["due_at", "claimed_until", "tries"])
    return Claimed(
        call_id=call.pk, tenant_id=call.tenant_id, endpoint_id=endpoint.pk, run_id=call.run_id, tries=call.tries,
        url=endpoint.url, reached_at=call.created_at,
    )  # fmt: skip


# -- send: no transaction -------------------------------------------------------------------------------------


def body_of(run: Run, claimed: Claimed) -> dict[str, Any]:
    """The body: what is public of the run as it stands now. No content of a case, and nobody's name."""
    return {
        "type": f"run.{run.status}", "timestamp": claimed.reached_at.isoformat().replace("+00:00", "Z"),
        "attempt": claimed.tries, "data": public_part(run),
    }  # fmt: skip


def _prepare(claimed: Claimed, now: datetime) -> _Ready:
    """One that cannot be made fails alone."""
    try:
        return _Ready(claimed, _request(claimed, now))
    except Exception as error:
        log.exception("callback_not_made", call=str(claimed.call_id), error=type(error).__name__)
        return _Ready(claimed, None)


def _request(claimed: Claimed, now: datetime) -> OutgoingRequest | None:
    keys = _keys(claimed.endpoint_id, now)
    run = Run.objects.get(tenant_id=claimed.tenant_id, pk=claimed.run_id)
    body = json.dumps(body_of(run, claimed)).encode()
    headers = {"content-type": "application/json", "user-agent": "placet"}
    headers |= signed_headers(keys, identity=str(claimed.call_id), body=body, now=now)
    return OutgoingRequest("POST", claimed.url, headers, body, max_bytes=MOST_BYTES) if keys else None


def _keys(endpoint_id: UUID, now: datetime) -> list[bytes]:
    """Those that count, the newest first. Raises CannotOpen."""
    rows = CallbackSecret.objects.filter(_counting(now), endpoint_id=endpoint_id)
    return [row.key() for row in rows.order_by("-created_at", "-id")]


def _counting(now: datetime) -> Q:
    return (Q(ends_at=None) | Q(ends_at__gt=now)) & Q(sealed__isnull=False)


def _send(ready: _Ready) -> Seen:
    """One try. Called in a thread that knows no database."""
    if ready.request is None:
        return Seen("not_made")
    return try_once(ready.request, CALL_WITHIN_S, what=str(ready.claimed.call_id))


# -- store ----------------------------------------------------------------------------------------------------


@action
def store_seen(claimed: Claimed, seen: Seen, *, by: Actor, clock: Clock) -> bool:
    """What came of one try. A try that another has overtaken may still tell that it was delivered, and no more."""
    endpoint = locked_callback(claimed.tenant_id, claimed.endpoint_id)
    rows = CallbackCall.objects.select_for_update(of=("self",), no_key=True)
    this_or_newer = Q(pk=claimed.call_id) | Q(run_id=claimed.run_id, status=CallStatus.PENDING)
    calls = list(rows.filter(this_or_newer).order_by("id"))
    call, now = next(row for row in calls if row.pk == claimed.call_id), clock()
    call.http_status, newest = seen.http_status or call.http_status, call.tries == claimed.tries
    _note_health(endpoint, seen, now)
    if call.status == CallStatus.SUPERSEDED:
        call.save(update_fields=["http_status"])
        _let_go([row for row in calls if row.status == CallStatus.PENDING], now)
    elif call.status != CallStatus.PENDING:
        pass  # it has ended meanwhile
    elif not seen.problem:
        delivered(call, by=by, at=now)
    elif newest:
        _failed(call, seen, by=by, now=now)
    if seen.http_status == 410 and endpoint.deactivated_at is None:
        end_callback(endpoint, by=by, at=now, kind="callback_endpoint.gone", reason="http_410", gone=True)
    return True


def _note_health(endpoint: CallbackEndpoint, seen: Seen, now: datetime) -> None:
    if not seen.problem:
        endpoint.failures, endpoint.paused_until, endpoint.last_delivered_at = 0, None, now
    else:
        endpoint.last_failed_at = now
        endpoint.paused_until = now + rest_after(endpoint.failures, _LONGEST_REST)
        endpoint.failures += 1
        endpoint.last_problem = f"http_{seen.http_status}" if seen.http_status else seen.problem
    endpoint.save(
        update_fields=["failures", "paused_until", "last_delivered_at", "last_failed_at", "last_problem"]
    )


def _failed(call: CallbackCall, seen: Seen, *, by: Actor, now: datetime) -> None:
    """Tried again later, with backoff and jitter; after the last try given up, for admins and on the run's page."""
    if call.tries >= call.most_tries:
        give_up(call, by=by, at=now, problem=seen.problem)
        return
    so_far = call.tries - (call.most_tries - TRIES_AT_A_TIME)  # since it was made, or sent again
    call.problem, call.claimed_until = seen.problem, None
    call.due_at = next_try(now, so_far, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
    call.save(update_fields=["problem", "claimed_until", "due_at", "http_status"])


def _let_go(waiting: Sequence[CallbackCall], now: datetime) -> None:
    """The newer state of the same run waited for the end of this try."""
    for call in waiting:
        if call.tries == 0 and call.due_at is not None and call.due_at > now:
            call.due_at = now
            call.save(update_fields=["due_at"])
            ring_on_commit()


# -- beside it ------------------------------------------------------------------------------------------------


@action
def _give_up_orphans(*, by: Actor, clock: Clock) -> None:
    """Calls that were written while their destination ended."""
    waiting = CallbackCall.objects.filter(endpoint=OuterRef("pk"), status=CallStatus.PENDING)
    rows = CallbackEndpoint.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    for endpoint in rows.filter(Exists(waiting), deactivated_at__isnull=False):
        give_up_on(endpoint, by=by, at=clock())


def _forget_ended_secrets() -> None:
    CallbackSecret.objects.filter(ends_at__lte=Now(), sealed__isnull=False).update(sealed=None)
