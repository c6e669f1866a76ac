"""The circuit breaker of a provider: a hold that opens by itself after trouble, is tried by one call, and closes.

It counts the last definite and indefinite ends of attempts, of this tenant's connector to the provider, and only when
one has just ended badly: the good path pays nothing for it.
"""

from datetime import timedelta
from typing import Final

from audit.actions import record
from audit.bound import ROW, row_digest
from common.db import lock_name
from workflows.actions.freezing import lock_hold
from workflows.bound import of_hold
from workflows.classify import Meaning
from workflows.enums import HoldReason, HoldStatus
from workflows.models import Attempt, Hold
from workflows.worker.held import Held

BAD: Final = frozenset(
    {Meaning.UNKNOWN.value, Meaning.NOT_SENT.value, Meaning.NOT_AUTHORIZED.value, "postponed"}
)
GOOD: Final = frozenset({Meaning.CONFIRMED.value, Meaning.REFUSED.value})
"""What says something about the provider. A worker that died, or *come back later*, does not."""
IN_A_ROW: Final = 5
OF_COMMANDS: Final = 3
"""One action that never works is that action's trouble, not the provider's."""
WITHIN: Final = timedelta(minutes=5)
FIRST_PAUSE_S: Final = 30
LONGEST_PAUSE_S: Final = 600
KEY_REUSED: Final = "key_reused"


def note_trouble(held: Held) -> None:
    """Open the circuit when nothing but trouble came from the provider lately. Last in its transaction: it may wait
    for another worker that opens the same one.
    """
    if _only_trouble(held):
        _open(held, f"{IN_A_ROW} calls in a row came to nothing", pause_s=FIRST_PAUSE_S)


def freeze_connector(held: Held) -> None:
    """The provider says that a key came before with other parameters: then keys are not what we believe them to be, and
    nothing more goes there until a person has looked.
    """
    _open(held, "The provider says that an idempotency key was used before, with other parameters", pause_s=0)


def _only_trouble(held: Held) -> bool:
    command = held.command
    last = list(
        Attempt.objects.filter(
            tenant_id=command.tenant_id, command__provider=command.provider, outcome__in=BAD | GOOD,
            ended_at__gt=held.now - WITHIN,
        ).order_by("-ended_at").values_list("outcome", "command_id")[:IN_A_ROW]
    )  # fmt: skip
    bad = all(outcome in BAD for outcome, _ in last)
    return len(last) == IN_A_ROW and bad and len({command_id for _, command_id in last}) >= OF_COMMANDS


def _open(held: Held, why: str, *, pause_s: int) -> None:
    tenant_id, provider = held.command.tenant_id, held.command.provider
    lock_name(f"circuit/{tenant_id}/{provider}")
    known = Hold.objects.filter(
        tenant_id=tenant_id,
        provider=provider,
        reason=HoldReason.CIRCUIT,
        status__in=HoldStatus.holding_states,
    ).first()
    if known is not None and _still_holds(known, held, why, pause_s):
        return
    until = held.now + timedelta(seconds=pause_s) if pause_s else None
    hold = Hold.objects.create(
        tenant_id=tenant_id, reason=HoldReason.CIRCUIT, provider=provider, why=why, placed_by=held.by.performed_by,
        placed_at=held.now, until=until, pause_s=pause_s,
    )  # fmt: skip
    record(
        by=held.by, kind="hold.in_force", tenant_id=tenant_id, subject_type="hold", subject_id=hold.pk,
        to_state=hold.status, reason=why,
        body={
            "reason": hold.reason, "scope": hold.scope, "command_id": str(held.command.pk),
            ROW: row_digest(of_hold(vars(hold))),
        },
    )  # fmt: skip


def _still_holds(known: Hold, held: Held, why: str, pause_s: int) -> bool:
    """Whether the circuit that was found open is enough. For what only a person can judge it closes no more by itself;
    one that is being lifted just now holds nothing.
    """
    if pause_s:
        return True
    known = lock_hold(known.pk)
    if known.status not in HoldStatus.holding_states:
        return False
    if known.until is not None:
        _wait_for_a_person(known, held, why)
    return True


def _wait_for_a_person(known: Hold, held: Held, why: str) -> None:
    before = known.status
    if before == HoldStatus.TRIAL:
        known.hold_on(until=None, pause_s=0)
    known.until = None
    known.save()
    record(
        by=held.by, kind="hold.in_force", tenant_id=held.command.tenant_id, subject_type="hold", subject_id=known.pk,
        from_state=before, to_state=known.status, reason=why, body={"command_id": str(held.command.pk)},
    )  # fmt: skip
