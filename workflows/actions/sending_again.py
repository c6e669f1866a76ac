"""Send again what was given up: for admins, when a receiver is well again. The same calls, with the same ids."""

from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from access.policies import check_can_manage
from audit.actors import Actor
from common.clock import Clock
from common.tx import action
from workflows.actions.callbacks import CallbackEnded, locked_callback
from workflows.actions.outbox import due_again, ring_on_commit
from workflows.enums import CallStatus
from workflows.models import CallbackCall, CallbackEndpoint, Run

AT_ONCE: Final = 200


def given_up(endpoint: CallbackEndpoint) -> QuerySet[CallbackCall]:
    """What can be sent again: the calls that were given up and are about the newest state that their run told of."""
    newer = CallbackCall.objects.filter(run=OuterRef("run"), state_version__gt=OuterRef("state_version"))
    calls = CallbackCall.objects.filter(
        tenant_id=endpoint.tenant_id, endpoint=endpoint, status=CallStatus.DEAD
    )
    return calls.filter(~Exists(newer))


@action
def send_given_up_again(
    *, endpoint: CallbackEndpoint, by: Actor, clock: Clock, run_id: UUID | None = None
) -> int:
    """Make the oldest of them due at once, or those of one run; returns how many. Twice changes nothing.

    A run that is busy now is left out: it may be about to tell of a newer state. Raises RoleMissing, CallbackEnded.
    """
    check_can_manage(by, endpoint.tenant_id)
    meant = given_up(endpoint) if run_id is None else given_up(endpoint).filter(run_id=run_id)
    oldest = list(meant.order_by("created_at", "id").values_list("run_id", flat=True)[:AT_ONCE])
    # Whoever writes a call has its run, so while we have it there is no newer one that we do not see.
    runs = Run.objects.select_for_update(of=("self",), no_key=True, skip_locked=True).filter(
        tenant_id=endpoint.tenant_id, pk__in=oldest
    )
    free = list(runs.order_by("id").values_list("pk", flat=True))
    locked = locked_callback(endpoint.tenant_id, endpoint.pk)
    if locked.deactivated_at is not None:
        raise CallbackEnded
    now = clock()
    rows = given_up(locked).filter(run_id__in=free).select_for_update(of=("self",), no_key=True)
    calls = list(rows.order_by("id"))
    for call in calls:
        due_again(call, by=by, at=now)
    if calls:
        locked.paused_until = None
        locked.save(update_fields=["paused_until"])
        ring_on_commit()
    return len(calls)
