"""When each choice is offered: pure rules on facts. The actions behind them check the same again under their locks."""

from typing import Final

from approvals.enums import ProposalStatus
from common import spans
from common.errors import Refused
from repair.choices.facts import Facts, OrderFacts, Rule, Why, first
from repair.enums import PacketStatus
from workflows.enums import CommandStatus, RunStatus, StepStatus, WaitingFor
from workflows.following import why_not_rest, why_not_undo

C = CommandStatus
P = ProposalStatus
LATE_EFFECT: Final = "late_effect"
ENDED_UNDECIDED: Final = (P.LAPSED, P.INVALIDATED, P.EXPIRED)
NOTHING_HAPPENED: Final = (C.REFUSED, C.DEAD)
"""How an order ends without effect, and not by a check of ours."""
FAILED: Final = {
    "lapsed": "The time to execute is over.",
    "policy": "The policy has changed since the approval.",
    "reviewer": "Too few of those who approved may still approve.",
    "digest": "The stored contract is not what was approved.",
    "signature": "An approval lacks the signature of a passkey that it must have.",
    "pin": "The record has changed since the approval.",
}

# -- parts --------------------------------------------------------------------------------------------------------


def may_repair(facts: Facts) -> Why | None:
    return (
        None
        if facts.may_repair
        else Why("role_missing", "Operators, workflow owners and admins choose here.")
    )


def still_open(facts: Facts) -> Why | None:
    if facts.packet in PacketStatus.open_states:
        return None
    return Why("packet_closed", "This case is closed.")


def run_goes(facts: Facts) -> Why | None:
    if facts.run in RunStatus.final_states:
        return Why("run_ended", "The run has ended: nothing of it goes on.")
    return None


def not_cancelling(facts: Facts) -> Why | None:
    if facts.cancel_wished:
        return Why("cancel_requested", "The run is to be cancelled, so nothing new is done in it.")
    return None


def in_doubt(facts: Facts) -> Why | None:
    """The order's outcome is not known."""
    if facts.order is None:
        return Why(
            "no_order", "No order to a provider belongs to this case, so there is no outcome to speak of."
        )
    if facts.order.status == C.SENT:
        return Why(
            "still_under_way", "A request is under way right now. Its answer, or its deadline, comes first."
        )
    if facts.order.status != C.UNKNOWN:
        return Why("already_settled", "The outcome is not in doubt.")
    return None


def not_own_side(facts: Facts) -> Why | None:
    if facts.own_side:
        return Why(
            "own_proposal", "You are on the side that asked for it: somebody else says what became of it."
        )
    return None


def settled_by_time(facts: Facts) -> Why | None:
    """The last request can take no effect any more."""
    until = _order(facts).lands_until
    if until is not None and facts.now < until:
        return Why(
            "not_settled_yet",
            f"The last request may still take effect. This is offered from {spans.utc_text(until)} on.",
        )
    return None


def provider_can_tell(facts: Facts) -> Why | None:
    order = _order(facts)
    if not order.known:
        return Why("unknown_version", "The code here does not know this version of the operation.")
    if not order.can_look_up:
        return Why("no_look_up", "This provider has no look-up.")
    return None


def rests_on_a_record(facts: Facts) -> Why | None:
    return (
        None if facts.record else Why("no_record", "It rests on no record that could be looked at from here.")
    )


def not_asked_already(facts: Facts) -> Why | None:
    if _order(facts).asked_soon:
        return Why("look_up_due", "It is due already: the worker asks in a moment.")
    return None


def key_is_known(facts: Facts) -> Why | None:
    order = _order(facts)
    if not order.known:
        return Why("unknown_version", "The code here does not know this version of the operation.")
    if order.key_until is None:
        return Why("no_key_memory", "The operation declares no time for which its provider remembers a key.")
    if facts.now >= order.key_until:
        return Why(
            "key_forgotten", "The provider may have forgotten the key by now, and would do it a second time."
        )
    if order.failure_code == "key_reused":
        return Why("key_reused", "The provider says that this key came before with other parameters.")
    return None


def may_be_sent(facts: Facts) -> Why | None:
    """All that a first send is checked for, as far as the database knows it."""
    order = _order(facts)
    if order.failed_check:
        return Why(
            f"check_{order.failed_check}", FAILED[order.failed_check] + " Nothing is sent on it any more."
        )
    if order.held_by:
        held = "frozen" if order.held_by == "freeze" else "held, because its provider is in trouble"
        return Why("held", f"It is {held}: nothing is sent meanwhile.")
    if not order.tries_left:
        return Why("tries_exhausted", "It was sent as often, or for as long, as the operation allows.")
    return None


def waits_for_a_person(facts: Facts) -> Why | None:
    if facts.step == StepStatus.WAITING and facts.waiting_for == WaitingFor.PERSON:
        return None
    if facts.step == StepStatus.WAITING:
        return Why(
            "not_waiting", "The step waits for something else than a person's word on it. That comes first."
        )
    return Why("not_waiting", "The step does not wait for a person: it goes on by itself, or has ended.")


def not_happened_late(facts: Facts) -> Why | None:
    if facts.order is not None and facts.order.said_late:
        return Why(
            "may_have_happened",
            "A late answer says that it happened after all. Asking again could do it twice.",
        )
    return None


def ended_without_a_no(facts: Facts) -> Why | None:
    if not facts.proposal:
        return Why("never_proposed", "Nothing was ever proposed at this step.")
    changed_mind = facts.proposal == P.EXPIRED and facts.decided
    if facts.proposal not in ENDED_UNDECIDED or changed_mind:
        return Why(
            "not_to_be_repeated",
            "The last proposal did not end by time or by a check: as it is, it is not asked again.",
        )
    if facts.order is not None and not facts.order.may_ask_again:
        return Why("not_to_be_repeated", "How its order ended does not allow it to be asked again as it is.")
    return None


def ended_without_effect(facts: Facts) -> Why | None:
    """Nothing happened for certain, and people or the provider may get to see something better."""
    if not facts.proposal:
        return Why("never_proposed", "Nothing was ever proposed at this step.")
    if facts.proposal in (*ENDED_UNDECIDED, P.CHANGES_REQUESTED):
        return None
    if facts.proposal == P.CONSUMED and facts.order is not None and facts.order.status in NOTHING_HAPPENED:
        return None
    return Why("not_without_effect", "The last proposal is alive, or was rejected, or has had its effect.")


def something_editable(facts: Facts) -> Why | None:
    """What was given up may be proposed again as it was; anything else needs something that may be changed."""
    if facts.editable or (facts.order is not None and facts.order.status == C.DEAD):
        return None
    return Why(
        "not_editable", "The operation lets nobody change its values: the proposer makes a new version."
    )


def asks_for_data(facts: Facts) -> Why | None:
    if not facts.asks:
        return Why("no_data_asked", "This step has not asked for data.")
    if facts.step != StepStatus.WAITING or facts.waiting_for not in (WaitingFor.DATA, WaitingFor.PERSON):
        return Why("not_waiting", "The step does not wait for data any more.")
    if facts.waiting_for == WaitingFor.DATA and facts.wait_over:
        return Why("wait_over", "Its time is over this moment: look again.")
    return None


def nothing_in_flight(facts: Facts) -> Why | None:
    """What may have happened is first found out: whatever closes the case must not bury it."""
    if facts.cause == LATE_EFFECT:
        return None
    if facts.order is not None and facts.order.status in C.in_flight_states:
        return Why(
            "outcome_unknown",
            "Nobody knows yet whether it happened. Settle that first: then this can be closed.",
        )
    return None


def not_wished_already(facts: Facts) -> Why | None:
    flying = facts.order is not None and facts.order.status in C.in_flight_states
    if facts.cancel_wished and flying:
        return Why(
            "cancel_requested", "That is wished already: it ends as soon as it is settled what has happened."
        )
    return None


def not_mine(facts: Facts) -> Why | None:
    if facts.mine and facts.packet != PacketStatus.OPEN:
        return Why("already_yours", "It is yours already.")
    return None


def is_mine(facts: Facts) -> Why | None:
    return None if facts.mine else Why("not_yours", "You have not taken it.")


def is_closed(facts: Facts) -> Why | None:
    if facts.packet in PacketStatus.open_states:
        return Why("packet_open", "The cause is asked for when the case closes.")
    return Why("cause_known", "Its cause is known.") if facts.cause_said else None


def may_be_undone(facts: Facts) -> Why | None:
    return _refusal(why_not_undo(facts.effect))


def may_be_completed(facts: Facts) -> Why | None:
    return _refusal(why_not_rest(facts.effect))


def _refusal(refused: Refused | None) -> Why | None:
    """The action behind the choice refuses by the same rule."""
    return Why(refused.code, refused.message) if refused is not None else None


def ended(facts: Facts) -> Why | None:
    if facts.packet in PacketStatus.open_states:
        return Why("packet_open", "What is learned from a case is said when it has closed.")
    return None


def unmarked(lesson: str) -> Rule:
    """Each case is marked once as each of them: a list of cases that wait to be worked into code names none twice."""

    def rule(facts: Facts) -> Why | None:
        return Why("already_marked", "It is marked so already.") if lesson in facts.lessons else None

    return rule


def _order(facts: Facts) -> OrderFacts:
    assert facts.order is not None, "a rule about an order stands behind `in_doubt`"
    return facts.order


# -- the choices --------------------------------------------------------------------------------------------------

_OPEN: Final = first(may_repair, still_open)
TAKE: Final[Rule] = first(_OPEN, not_mine)
GIVE_BACK: Final[Rule] = first(_OPEN, is_mine)
ROUTE: Final[Rule] = _OPEN
LOOK_UP: Final[Rule] = first(_OPEN, in_doubt, provider_can_tell, not_asked_already)
LOOK_AT_RECORD: Final[Rule] = first(_OPEN, rests_on_a_record)
HAPPENED: Final[Rule] = first(_OPEN, in_doubt, not_own_side)
DID_NOT_HAPPEN: Final[Rule] = first(_OPEN, in_doubt, not_own_side, settled_by_time)
SEND_AGAIN: Final[Rule] = first(
    _OPEN, in_doubt, key_is_known, settled_by_time, not_cancelling, may_be_sent, not_asked_already
)
SUPPLY: Final[Rule] = first(_OPEN, run_goes, not_cancelling, asks_for_data)
ASK_AGAIN: Final[Rule] = first(
    _OPEN, run_goes, waits_for_a_person, not_cancelling, ended_without_a_no, not_happened_late
)
CORRECT: Final[Rule] = first(
    _OPEN,
    run_goes,
    waits_for_a_person,
    not_cancelling,
    ended_without_effect,
    not_happened_late,
    something_editable,
)
CANCEL: Final[Rule] = first(_OPEN, run_goes, not_wished_already)
CLOSE: Final[Rule] = first(_OPEN, nothing_in_flight)
UNDO: Final[Rule] = first(may_repair, may_be_undone)
REST: Final[Rule] = first(may_repair, may_be_completed)
COMPENSATE: Final[Rule] = first(_OPEN, UNDO)
COMPLETE: Final[Rule] = first(_OPEN, REST)
TO_FIXTURE: Final[Rule] = first(may_repair, ended, unmarked("to_fixture"))
TO_RULE: Final[Rule] = first(may_repair, ended, unmarked("to_rule"))
TO_RUNBOOK: Final[Rule] = first(may_repair, ended, unmarked("to_runbook"))
NOTE_CAUSE: Final[Rule] = first(may_repair, is_closed)
