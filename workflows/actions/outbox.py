"""The outbox of callbacks: what a run's requester is to hear is written in the transaction in which it became so.

Nothing is called from here. A run without a callback costs nothing.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.actions import Entry, record_many
from audit.actors import Actor, clock_actor
from common.clock import Clock
from common.doorbell import doorbell
from common.errors import InvalidInput
from common.tx import action, require_transaction
from workflows.enums import CallStatus, RunStatus
from workflows.models import CallbackCall, CallbackEndpoint, Run

CALL_BACK: Final = "workflows.tasks.call_back"
TOLD: Final = frozenset({*RunStatus.final_states, "waiting_for_data", "unknown", "manual_repair"})
"""States that somebody outside should hear of: it is over, it needs their data, or it does not go on by itself."""
BY: Final = clock_actor("callbacks")


class CallbackNotRegistered(InvalidInput):
    """`callback` is the name or the exact address of a callback that an admin has registered and not deactivated."""

    code = "callback_not_registered"


def registered_name(tenant_id: UUID, given: str) -> str:
    """The name of the active destination that has this name or this very address. Raises CallbackNotRegistered.

    Only what an admin has registered is ever called: an automation cannot make this server call anything else.
    """
    column = "url" if "://" in given else "name"
    active = CallbackEndpoint.objects.filter(tenant_id=tenant_id, deactivated_at=None, **{column: given})
    name = active.values_list("name", flat=True).first()
    if name is None:
        raise CallbackNotRegistered
    return name


def note_state(run: Run, now: datetime) -> None:
    """Let the requester of a locked run hear of its new state; a call about an older one that waits is given up.

    While that older one is under way the new one waits for its end, so that two never overtake each other.
    """
    require_transaction()
    if run.status in TOLD:
        _tell(run, now)


def note_question(run: Run, now: datetime) -> None:
    """Let the requester of a locked run hear that something is asked of them: the call says how many questions wait."""
    require_transaction()
    _tell(run, now)


def _tell(run: Run, now: datetime) -> None:
    if not run.callback:
        return
    endpoints = CallbackEndpoint.objects.filter(tenant_id=run.tenant_id, name=run.callback)
    endpoint = endpoints.filter(deactivated_at=None).first()
    if endpoint is None:
        return
    due = max([now, *(_supersede(call, now) for call in _pending_of(run))])
    CallbackCall.objects.create(
        tenant_id=run.tenant_id, endpoint=endpoint, run=run, state_version=run.state_version, run_status=run.status,
        created_at=now, due_at=due,
    )  # fmt: skip
    ring_on_commit()


def ring_on_commit() -> None:
    transaction.on_commit(lambda: doorbell.ring(CALL_BACK), robust=True)


def _pending_of(run: Run) -> list[CallbackCall]:
    rows = CallbackCall.objects.select_for_update(of=("self",), no_key=True)
    return list(rows.filter(tenant_id=run.tenant_id, run=run, status=CallStatus.PENDING))


def _supersede(call: CallbackCall, now: datetime) -> datetime:
    """Returns until when a try of it may be under way."""
    call.supersede(at=now)
    _store(call, CallStatus.PENDING, by=BY)
    return call.claimed_until or now


_KINDS: Final = {
    CallStatus.DELIVERED: "callback.delivered",
    CallStatus.SUPERSEDED: "callback.superseded",
    CallStatus.DEAD: "callback.given_up",
    CallStatus.PENDING: "callback.sent_again",
}


def delivered(call: CallbackCall, *, by: Actor, at: datetime) -> None:
    """For a locked row that is pending."""
    call.deliver(at=at)
    _store(call, CallStatus.PENDING, by=by)


def give_up(call: CallbackCall, *, by: Actor, at: datetime, problem: str) -> None:
    """For a locked row that is pending."""
    call.give_up(at=at, problem=problem)
    _store(call, CallStatus.PENDING, by=by, reason=problem)


def due_again(call: CallbackCall, *, by: Actor, at: datetime) -> None:
    """For a locked row that was given up, of a run that is locked and has no newer one."""
    call.send_again(at=at)
    _store(call, CallStatus.DEAD, by=by)


def _store(call: CallbackCall, before: CallStatus, *, by: Actor, reason: str = "") -> None:
    call.save(update_fields=[
        "status", "problem", "due_at", "ended_at", "http_status", "claimed_until", "most_tries",
    ])  # fmt: skip
    record_many([Entry(
        by=by, kind=_KINDS[CallStatus(call.status)], tenant_id=call.tenant_id, subject_type="callback",
        subject_id=call.pk, run_id=call.run_id, from_state=before, to_state=call.status, reason=reason,
        body={"endpoint": str(call.endpoint_id), "state_version": call.state_version, "tries": call.tries},
    )])  # fmt: skip


# -- what is over ---------------------------------------------------------------------------------------------

PER_ROUND: Final = 500
LEAST_DAYS: Final = 1
"""The database keeps what has ended for a day at least."""


@action
def forget_old_calls(*, clock: Clock, limit: int = PER_ROUND) -> int:
    """Remove the oldest calls that ended longer ago than is kept; returns how many. The history keeps their ends."""
    days = max(settings.PLACET_CALLBACK_DAYS, LEAST_DAYS)
    rows = CallbackCall.objects.select_for_update(of=("self",), skip_locked=True)
    old = rows.filter(ended_at__lt=clock() - timedelta(days=days)).order_by("ended_at", "id")
    found = list(old.values_list("pk", flat=True)[:limit])
    return CallbackCall.objects.filter(pk__in=found).delete()[0] if found else 0
