"""The exception table: every foreseen case with its end, what the requester is told, who owns it and what is left."""

from typing import Literal

from workflows.authoring import ExceptionCase

DESK, OPERATORS = "Refund desk", "Operators"

_NOT_FOUND = "We found no such order among yours. Please check the number and write to us again."
_SOMEONE_READS = "Thank you. A colleague of the refund desk reads your message and answers you."


def _answered(case: str, tell: str, outcome: str = "answered_elsewhere") -> ExceptionCase:
    return ExceptionCase(case, "completed", outcome, tell, DESK)


def _person(case: str, tell: str = _SOMEONE_READS, owner: str = DESK) -> ExceptionCase:
    return ExceptionCase(
        case, "manual_repair", "waiting_for_person", tell, owner,
        clean_up="answer the requester, or propose the refund by hand",
    )  # fmt: skip


def _ended(
    case: str,
    outcome: str,
    tell: str,
    state: Literal["completed", "failed"] = "completed",
    *,
    again: bool = False,
) -> ExceptionCase:
    return ExceptionCase(case, state, outcome, tell, DESK, may_submit_new=again)


ABOUT = (
    _answered("about_security", "If your card or phone is lost or stolen, or you see a payment that is not yours: "
              "block the card now in the app under Cards, and call the number on its back at any hour. The refund desk "
              "cannot block cards."),
    _answered("about_cards", "This is about your card. You find delivery, activation, PIN and replacement in the app "
              "under Cards; the card team answers there."),
    _answered("about_cash", "This is about cash. Withdrawals settle within a few days; if cash did not come out or the "
              "amount is wrong, report it in the app under the withdrawal itself."),
    _answered("about_top_ups", "This is about adding money. You find limits, fees and pending top-ups in the app under "
              "Add money; the payments team answers there."),
    _answered("about_transfers", "This is about a transfer. You find its state and what to do in the app under the "
              "transfer itself; the payments team answers there."),
    _answered("about_account", "This is about your account. You find identity checks, personal details and closing the "
              "account in the app under Profile; the account team answers there."),
    _answered("about_exchange", "This is about currencies. You find those we support and today's rates in the app "
              "under Exchange."),
    _answered("about_payments", "This is about a payment. You find its state in the app under the payment itself; a "
              "payment that was sent back returns within a few days."),
)  # fmt: skip

ENDS = (
    _ended("already_refunded", "already_refunded", "This order was already refunded in full. The money takes up to "
           "five working days to appear on your statement."),
    _ended("refund_on_its_way", "already_refunded", "A refund of this order was already made. It takes up to five "
           "working days to appear on your statement."),
    _ended("not_paid", "no_action", "Nothing was paid for this order, so there is nothing to refund."),
    _ended("unknown_order", "not_found", _NOT_FOUND, "failed", again=True),
    # The same words: whoever asks about somebody else's order must not learn that it exists.
    _ended("not_your_order", "not_found", _NOT_FOUND, "failed", again=True),
)  # fmt: skip

PERSONS = (
    _person("low_confidence"),
    _person("odd_order_id", "Thank you. We could not read your order number; a colleague looks at it."),
    _person("odd_amount", "Thank you. We could not read the amount; a colleague looks at it."),
    _person("contradictory_orders"),
    _person(
        "contradictory_amounts",
        "Thank you. You name more than one amount; a colleague checks which one is due.",
    ),
    _person(
        "other_currency", "Thank you. You name another currency than the payment's; a colleague checks it."
    ),
    _person(
        "claims_too_much", "Thank you. You name more than is left of the payment; a colleague checks it."
    ),
    _person("outside_window", "Thank you. The order is more than a year old; a specialist looks at it."),
    _person("deceptive_text"),
    _person("instructions_in_message"),
    _person(
        "customer_blocked", "Thank you. A colleague has to look at your account first and then answers you."
    ),
    _person("refused_suggestion"),
    _person("missing_evidence"),
    _person("invented_evidence"),
    _person("beyond_this_case"),
    _person("invalid_arguments"),
    _person("currency_mismatch"),
    _person("above_paid"),
    _person("nothing_to_refund"),
    _person("approval_expired", "Thank you. Your refund was not decided in time; it is asked again."),
    _person(
        "credential_refused",
        "Thank you. We cannot reach the order system at present; we are on it.",
        OPERATORS,
    ),
    _person(
        "source_down", "Thank you. The order system does not answer at present; we are on it.", OPERATORS
    ),
    _person("rate_limited", "Thank you. The order system is busy at present; we are on it.", OPERATORS),
)

TABLE = (*ABOUT, *ENDS, *PERSONS)
