"""Webhooks: proven, stored and answered at once; taken in later, by whoever looks for what is due.

Nothing is read out of a body before its signature holds. The id of a delivery is unique in PostgreSQL, for ever: a
second delivery gets the same answer and has no effect, whatever became of Redis or of this process.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from access.auth import agent_actor, on_behalf_of
from access.policies import check_agent_may_start, check_agent_usable
from access.selectors import people_behind
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.dbroles import as_system, bind_tenant
from common.digests import same, tenant_hmac
from common.doorbell import doorbell
from common.errors import Refused
from common.rounds import each
from common.sealing import CannotOpen, SecretKeyUnknown, can_open
from common.strictjson import JsonRefused, parse
from common.tx import action
from workflows.actions.runs import EventConflict, Requester, Source, start_run
from workflows.models import Delivery, Endpoint, EndpointSecret
from workflows.registry import UnknownWorkflow
from workflows.webhooks import Message, Names, NotProven, prove

TAKE_IN: Final = "workflows.tasks.take_in"
MOST_TRIES: Final = 5
PER_ROUND: Final = 50
_FIRST_PAUSE: Final = timedelta(seconds=30)
"""After a try that did not end, doubled each time: longer than any try takes, so it is the lease as well."""
_NOTE_EVERY: Final = timedelta(minutes=1)
_STRANGER_KEY: Final = ("nobody", b"\x00" * 32)


class HookRefused(Refused):
    """There is no such endpoint, or the request does not prove that it comes from its sender."""

    code = "hook_refused"
    http_status = 401


@dataclass(frozen=True, slots=True)
class Received:
    delivery: Delivery
    created: bool
    conflict: bool = False
    """The id came before with another body."""


def receive(
    *, address: str, message: Message, clock: Clock, request_id: str = "",
    before: Callable[[Endpoint], None] = lambda _: None,
) -> Received:  # fmt: skip
    """Prove and store one webhook. ``before`` is called for a proven one, and may refuse it.

    Raises HookRefused, for whatever reason, in the same words; EventConflict for an id that came with another body.
    """
    endpoint = _endpoint_at(address)
    keys = _keys(endpoint, clock()) if endpoint else []
    try:
        # For an unknown address the same work is done, with a key that nobody has.
        names = endpoint.header_names if endpoint else Names()
        identity, secret_id = prove(message, names, keys or [_STRANGER_KEY], clock())
    except NotProven as refusal:
        if endpoint:
            _note_refused(endpoint, refusal.why, request_id)
        raise HookRefused from None
    if endpoint is None or not keys:
        raise HookRefused
    before(endpoint)
    by = agent_actor(endpoint.agent, through=endpoint.word, request_id=request_id)
    received = _store(endpoint.pk, UUID(secret_id), identity, message.body, by=by, clock=clock)
    if received.conflict:
        raise EventConflict(delivery_id=str(received.delivery.pk))
    return received


@as_system()
def _endpoint_at(address: str) -> Endpoint | None:
    """By the system role: the address says which tenant it is."""
    endpoint = Endpoint.objects.select_related("agent").filter(address=address, deactivated_at=None).first()
    if endpoint is not None:
        bind_tenant(endpoint.tenant_id)
    return endpoint


def _keys(endpoint: Endpoint, now: datetime) -> list[tuple[str, bytes]]:
    """The secrets that count and that this process can open. Raises SecretKeyUnknown where it can open none."""
    counting = Q(ends_at=None) | Q(ends_at__gt=now)
    rows = EndpointSecret.objects.filter(counting, endpoint=endpoint, sealed__isnull=False)
    mine = [(str(row.pk), row.key()) for row in rows.filter(can_open("sealed")).order_by("created_at")]
    if not mine and rows.exists():
        raise SecretKeyUnknown  # a sender tries again after a 503, and gives up after "not proven"
    return mine


@action
def _note_refused(endpoint: Endpoint, why: str, request_id: str) -> None:
    """Once a minute at most: who floods an address that leaked shall not fill the history."""
    quiet = Q(last_refused_at=None) | Q(last_refused_at__lt=Now() - _NOTE_EVERY)
    free = Endpoint.objects.filter(quiet, pk=endpoint.pk).select_for_update(skip_locked=True, no_key=True)
    if not Endpoint.objects.filter(pk__in=list(free.values_list("pk", flat=True))).update(
        last_refused_at=Now()
    ):
        return
    record(
        by=agent_actor(endpoint.agent, through=endpoint.word, request_id=request_id), kind="endpoint.delivery_refused",
        tenant_id=endpoint.tenant_id, subject_type="endpoint", subject_id=endpoint.pk, reason=why,
    )  # fmt: skip


@action
def _store(
    endpoint_id: UUID, secret_id: UUID, identity: str, raw: bytes, *, by: Actor, clock: Clock
) -> Received:
    """Check under the lock that endpoint and secret still count, then keep the delivery, or find the first one."""
    endpoint = Endpoint.objects.select_for_update(of=("self",), no_key=True).get(pk=endpoint_id)
    now = clock()
    secret = EndpointSecret.objects.filter(pk=secret_id, sealed__isnull=False).first()
    if endpoint.deactivated_at or secret is None or (secret.ends_at and secret.ends_at <= now):
        raise HookRefused
    endpoint.last_received_at = now
    endpoint.save(update_fields=["last_received_at"])
    body_hash = tenant_hmac(endpoint.tenant_id, "hook-body", raw)
    known = Delivery.objects.filter(endpoint=endpoint, event_id=identity).first()
    if known is not None:
        return _again(known, body_hash, by=by)
    delivery = Delivery(
        tenant_id=endpoint.tenant_id, endpoint=endpoint, event_id=identity, body_hash=body_hash, received_at=now,
        due_at=now,
    )  # fmt: skip
    delivery.seal_body(raw)
    delivery.save(force_insert=True)
    _record("delivery.received", delivery, by=by)
    transaction.on_commit(lambda: doorbell.ring(TAKE_IN), robust=True)
    return Received(delivery, created=True)


def _again(known: Delivery, body_hash: str, *, by: Actor) -> Received:
    """The same id once more; the endpoint's lock keeps others away. Nothing but the count changes."""
    conflict = not same(known.body_hash, body_hash)
    known.repeats += not conflict
    known.conflicts += conflict
    known.save(update_fields=["repeats", "conflicts"])
    return Received(known, created=False, conflict=conflict)


# -- later ----------------------------------------------------------------------------------------------------


def take_in_due(*, by: Actor, clock: Clock, limit: int = PER_ROUND) -> int:
    """Make runs of the deliveries that are due; returns how many have ended. One that breaks stops no other."""
    _forget_ended_secrets()
    claimed = _claim(limit, by=by, clock=clock)
    return each(claimed, lambda delivery_id: _take_in(delivery_id, by=by, clock=clock), what="take_in")


@action
def _claim(limit: int, *, by: Actor, clock: Clock) -> list[UUID]:
    """Count the try before it is made, and keep others away until it should have ended."""
    rows = Delivery.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    mine = rows.filter(can_open("body"), due_at__lte=clock())
    due = list(mine.order_by("due_at", "id")[:limit])
    now, claimed = clock(), []
    for delivery in due:
        if delivery.tries >= MOST_TRIES:
            _end(delivery, "quarantined", by=by, at=now, code="gave_up")
            continue
        delivery.due_at = now + _FIRST_PAUSE * 2**delivery.tries
        delivery.tries += 1
        delivery.save(update_fields=["due_at", "tries"])
        claimed.append(delivery.pk)
    return claimed


def _take_in(delivery_id: UUID, *, by: Actor, clock: Clock) -> bool:
    """One delivery. Made anew after a crash it finds the run that it had made: the source event is unique."""
    delivery = Delivery.objects.select_related("endpoint__agent").get(pk=delivery_id)
    try:
        started = _start(delivery, clock)
    except UnknownWorkflow:
        return False  # not installed here, or not yet: another try may find it
    except (Refused, JsonRefused, CannotOpen) as refusal:
        code = getattr(refusal, "code", "cannot_open")
        return _settle(delivery_id, "quarantined", by=by, clock=clock, code=code)
    outcome = "accepted" if started.created else "duplicate"
    return _settle(delivery_id, outcome, by=by, clock=clock, run_id=started.run.pk)


def _start(delivery: Delivery, clock: Clock) -> Any:
    endpoint, agent = delivery.endpoint, delivery.endpoint.agent
    check_agent_usable(agent)
    check_agent_may_start(agent, endpoint.workflow)  # its bounds may be newer than the endpoint
    document = parse(delivery.raw_body())
    assert isinstance(document, dict)
    if endpoint.input_member:
        inner = document.get(endpoint.input_member)
        if not isinstance(inner, dict):
            raise JsonRefused("top_level_not_object", "The body has no such member that is an object.")
        document = inner
    return start_run(
        tenant_id=delivery.tenant_id, workflow=endpoint.workflow, input=document,
        by=agent_actor(agent, through=endpoint.word), source=Source(endpoint.source_system, delivery.event_id),
        clock=clock, requester=Requester(on_behalf_of(agent), people_behind(agent, *_shown_its_secrets(endpoint))),
    )  # fmt: skip


def _shown_its_secrets(endpoint: Endpoint) -> list[UUID | None]:
    return list(endpoint.secrets.filter(sealed__isnull=False).values_list("made_by", flat=True))


@action
def _settle(
    delivery_id: UUID, outcome: str, *, by: Actor, clock: Clock, code: str = "", run_id: UUID | None = None
) -> bool:
    delivery = Delivery.objects.select_for_update(of=("self",), no_key=True).get(pk=delivery_id)
    if delivery.outcome is not None:
        return False  # somebody else was quicker, and came to the same
    _end(delivery, outcome, by=by, at=clock(), code=code, run_id=run_id)
    return True


_KINDS: Final = {
    "accepted": "delivery.accepted",
    "duplicate": "delivery.duplicate",
    "quarantined": "delivery.quarantined",
}


def _end(
    delivery: Delivery, outcome: str, *, by: Actor, at: datetime, code: str = "", run_id: UUID | None = None
) -> None:
    delivery.outcome, delivery.code, delivery.run_id = outcome, code[:60], run_id
    delivery.ended_at, delivery.due_at = at, None
    delivery.save(update_fields=["outcome", "code", "run_id", "ended_at", "due_at"])
    _record(_KINDS[outcome], delivery, by=by, reason=code)


def _record(kind: str, delivery: Delivery, *, by: Actor, reason: str = "") -> None:
    record(
        by=by, kind=kind, tenant_id=delivery.tenant_id, subject_type="delivery", subject_id=delivery.pk,
        run_id=delivery.run_id, reason=reason, body={"endpoint": str(delivery.endpoint_id)},
    )  # fmt: skip


def _forget_ended_secrets() -> None:
    EndpointSecret.objects.filter(ends_at__lte=Now(), sealed__isnull=False).update(sealed=None)
