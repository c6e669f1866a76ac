"""What follows when something about a command becomes known: the design's section 6, points 5 and 6, as
pure rules.

Nothing here reads the database or changes a row. The worker, the reconciler and the people's desk gather
the facts under their locks, ask here for the next move, and make it with the command's transition of the
same name; the model tests play whole lives on the same functions.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from workflows.classify import Meaning
from workflows.enums import CommandStatus, HoldReason, VoidReason
from workflows.models import Command

C = CommandStatus


class Move(Enum):
    """The next transition of a command; the value is the name of its method."""

    CONFIRM = "confirm"
    REFUSE = "refuse"
    FREE = "free"
    RETRY_LATER = "retry_later"
    LOSE_TRACK = "lose_track"
    GIVE_UP = "give_up"
    HOLD = "hold_back"
    VOID = "make_void"
    CANCEL = "cancel"
    SEND = "send"
    STAY = ""
    """Nothing changes."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """A move, and why: ``hold_reason`` is set with HOLD, ``void_reason`` with VOID."""

    move: Move
    hold_reason: HoldReason | None = None
    void_reason: VoidReason | None = None


def after_answer(command: Command, meaning: Meaning, *, may_retry: bool) -> Move:
    """What the answer to the request of a *sent* command leads to. ``may_retry``: tries and total time
    are left.

    After a second send with the same key only a positive answer settles anything: a refusal of the second
    request says nothing about the first, and may even be the first one's doing.

    FREE and RETRY_LATER settle that nothing happened. Save that move with its event, then ask
    `after_nothing_happened` in the same transaction whether the command goes on at all.
    """
    assert command.status == C.SENT, f"an answer to a command that is {command.status}"
    if meaning is Meaning.CONFIRMED:
        return Move.CONFIRM
    if command.resent:
        return Move.LOSE_TRACK
    match meaning:
        case Meaning.NOT_SENT:
            return Move.FREE if may_retry else Move.GIVE_UP
        case Meaning.NOT_EXECUTED:
            return Move.RETRY_LATER if may_retry else Move.GIVE_UP
        case Meaning.NOT_AUTHORIZED:
            return Move.GIVE_UP
        case Meaning.REFUSED:
            return Move.REFUSE
        case _:  # unknown, and a key that was reused with other parameters
            return Move.LOSE_TRACK


def after_late_answer(command: Command, meaning: Meaning, *, of_last_attempt: bool) -> Move:
    """What a stale worker's late evidence settles about an *unknown* command.

    *No* counts only from the last attempt, and only if it was the one request in doubt: that an earlier request
    came to nothing says nothing about a later one. After a restored backup no *no* counts: it may have been sent again
    since, and no row knows of it. FREE stands for *nothing happened*: go on with `after_nothing_happened`. STAY: it
    settles nothing.
    """
    assert command.status == C.UNKNOWN, f"reconciling a command that is {command.status}"
    if meaning is Meaning.CONFIRMED:
        return Move.CONFIRM
    if command.resent or command.restored or not of_last_attempt:
        return Move.STAY
    if meaning is Meaning.REFUSED:
        return Move.REFUSE
    nothing_happened = (Meaning.NOT_SENT, Meaning.NOT_EXECUTED, Meaning.NOT_AUTHORIZED)
    return Move.FREE if meaning in nothing_happened else Move.STAY


def after_lookup(finding: str, *, settled: bool) -> Move:
    """What a look-up's finding settles about an *unknown* command.

    ``settled``: it was asked after the provider's settle time, counted from the last send. *Not found*
    before that settles nothing, because the request may still be on its way. FREE stands for *nothing
    happened*, as above.
    """
    if finding == "happened":
        return Move.CONFIRM
    return Move.FREE if finding == "not_found" and settled else Move.STAY


def after_lease(command: Command) -> Move:
    """The worker is gone.

    Never sent: it may be taken again. Sent: nobody knows, and time alone never settles it.
    """
    return {C.CLAIMED: Move.FREE, C.SENT: Move.LOSE_TRACK}.get(CommandStatus(command.status), Move.STAY)


def after_nothing_happened(
    command: Command,
    *,
    cancel_wished: bool,
    frozen: bool,
    circuit_open: bool,
    failed_check: VoidReason | None,
) -> Settlement:
    """Where a command goes once it is certain that nothing has happened.

    A cancel wish → cancelled; freeze or open circuit → held; a failed check (clock, policy, reviewer,
    digest) → void with that reason; otherwise *unknown* → ready, and what is ready or waits to retry
    stays as it is. The ordinary way to *sent* checks everything again, pins included.

    Raises AssertionError for a command that ended or whose request is on its way.
    """
    assert command.status in (C.UNKNOWN, *C.stoppable_states), f"nothing is settled while {command.status}"
    if cancel_wished:
        return Settlement(Move.CANCEL)
    if frozen or circuit_open:
        reason = HoldReason.FREEZE if frozen else HoldReason.CIRCUIT
        return (
            Settlement(Move.STAY) if command.status == C.HELD else Settlement(Move.HOLD, hold_reason=reason)
        )
    if failed_check is not None:
        return Settlement(Move.VOID, void_reason=failed_check)
    return Settlement(Move.FREE if command.status in (C.UNKNOWN, C.HELD) else Move.STAY)


def before_send(*, frozen: bool, circuit_open: bool, failed_check: VoidReason | None) -> Settlement:
    """The transaction that commits *sent*: it sends, voids or holds. The first reason that applies, in
    this order.

    What can no longer be executed is void even while frozen: holding it would only let it lapse later.
    """
    if failed_check is not None:
        return Settlement(Move.VOID, void_reason=failed_check)
    if frozen:
        return Settlement(Move.HOLD, hold_reason=HoldReason.FREEZE)
    if circuit_open:
        return Settlement(Move.HOLD, hold_reason=HoldReason.CIRCUIT)
    return Settlement(Move.SEND)


def may_send_again(
    command: Command,
    *,
    key_retention: timedelta | None,
    now: datetime,
    frozen: bool,
    circuit_open: bool,
    failed_check: VoidReason | None,
) -> bool:
    """Whether an *unknown* command may be sent once more with the same key.

    Only where the provider remembers keys, only while it surely remembers this one (counted from the
    first send), and only if the checks before a first send pass too: nothing is newly sent after expiry
    or revocation.
    """
    if command.status != C.UNKNOWN or key_retention is None or command.first_sent_at is None:
        return False
    if frozen or circuit_open or failed_check is not None:
        return False
    return now < command.first_sent_at + key_retention
