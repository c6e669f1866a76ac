"""All that is due, once: hear what happened, find out whom it concerns, send. A lane of its own: receivers are slow."""

from collections.abc import Callable

from audit.actors import clock_actor
from common.clock import Clock, db_clock
from common.rounds import each
from notify import hooks
from notify.actions.anchoring import anchor_due
from notify.actions.chatting import send_chats
from notify.actions.following import follow
from notify.actions.mailing import send_mails
from notify.actions.spreading import spread_due

BY = clock_actor("notices")


def tell_due(clock: Clock = db_clock) -> int:
    """Returns how many of the parts did something. One that fails keeps no other from being done."""
    parts: list[Callable[[], int]] = [
        lambda: follow(clock=clock),
        lambda: _tell_what_is_due(clock),
        lambda: spread_due(clock=clock),
        lambda: anchor_due(clock=clock),
        lambda: send_chats(by=BY, clock=clock),
        lambda: send_mails(by=BY, clock=clock),
    ]
    return each(parts, lambda part: part(), what="tell_due")


def _tell_what_is_due(clock: Clock) -> int:
    """Of the tellers that gather before they tell; returns how much they did."""
    looks = [teller.due for teller in hooks.tellers() if teller.due is not None]
    return each(looks, lambda look: look(clock), what="tell_gathered")
