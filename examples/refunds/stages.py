"""The stages of refund-triage up to the proposal. Each reads, and says what happened; none changes anything."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from examples.refunds import classifier, messages
from examples.refunds.eligibility import AmountNeeded, Not, eligible
from examples.refunds.evidence import gathered
from examples.refunds.normalizing import (
    Money,
    amounts_mentioned,
    deceptions_in,
    money_of,
    order_number,
    orders_mentioned,
)
from examples.refunds.schemas import RefundRequest
from examples.refunds.source import read_customer, read_order
from examples.refunds.suggestions import checked, gives_orders
from workflows.authoring import (
    Done,
    Fail,
    Finish,
    Malformed,
    NotAllowed,
    Propose,
    StageContext,
    ToPerson,
    WaitForData,
)

FRESH_FOR = timedelta(minutes=10)
ANSWER_WITHIN = timedelta(days=3)
_TEXT = {"type": "string", "minLength": 1, "maxLength": 64}
ORDER_SCHEMA = {
    "type": "object", "properties": {"order_id": _TEXT}, "required": ["order_id"], "additionalProperties": False,
}  # fmt: skip
AMOUNT_SCHEMA = {
    "type": "object", "properties": {"amount": _TEXT}, "required": ["amount"], "additionalProperties": False,
}  # fmt: skip


def intake(ctx: StageContext) -> Done | WaitForData | Fail:
    """Which order, and may this customer ask about it?"""
    request: RefundRequest = ctx.input
    wanted = ctx.data.get("order_id") or request.order_id or _only_mention(request.message)
    if not wanted:
        question = "Which order is it about? Please give the number from the order confirmation."
        return WaitForData(question, ORDER_SCHEMA, ANSWER_WITHIN)
    number = order_number(str(wanted))
    order = read_order(ctx.site, number)
    if order is None:
        return Fail("unknown_order")
    if order.customer != request.customer_id:
        raise NotAllowed("not_your_order")
    customer = read_customer(ctx.site, order.customer)
    if customer is None or not customer.is_active:
        raise NotAllowed("customer_blocked")
    return Done({"order": number}, notes=(f"read:order:{number}", f"read:customer:{order.customer}"))


def _only_mention(message: str) -> str:
    mentioned = orders_mentioned(message)
    return mentioned.pop() if len(mentioned) == 1 else ""


def normalize(ctx: StageContext) -> Done | ToPerson:
    """Claims as amounts in their currency's scale, and what is odd about the text."""
    request: RefundRequest = ctx.input
    order = ctx.results["intake"]["order"]
    if orders_mentioned(request.message) - {order}:
        return ToPerson("contradictory_orders", kept={"order": order})
    stated = [Money(Decimal(claim.amount), claim.currency) for claim in request.claimed_amounts]
    claims = dict.fromkeys([*stated, *amounts_mentioned(request.message)])
    return Done({
        "order": order, "customer": request.customer_id,
        "claims": [{"amount": str(claim.amount), "currency": claim.currency} for claim in claims],
        "deceptions": deceptions_in(request.message), "gives_orders": gives_orders(request.message),
    })  # fmt: skip


def retrieve(ctx: StageContext) -> Done | Fail:
    """The order with its payment and earlier refunds. The trace keeps the query and the version, not the content."""
    number = ctx.results["intake"]["order"]
    order = read_order(ctx.site, number)
    if order is None:
        return Fail("unknown_order")
    if order.customer != ctx.input.customer_id:
        raise NotAllowed("not_your_order")
    notes = (
        f"read:order:{number}@{order.etag}",
        f"read:refunds:{len(order.refunds)}",
        "read:policy:refund-policy",
    )
    return Done({"order": order.figures(), "seen_at": ctx.now.isoformat()}, notes=notes)


def analyse(ctx: StageContext) -> Done | ToPerson:
    """What the message is about. The classifier suggests; what it returned is checked before anything believes it."""
    model, message, order = classifier.installed(), ctx.input.message, ctx.results["intake"]["order"]
    found = checked(model.classify(message, order=order), message=message, order=order)
    suggestion = found.model_dump(mode="json")
    if ctx.results["normalize"]["deceptions"]:
        return ToPerson(
            "deceptive_text", kept=suggestion | {"oddities": ctx.results["normalize"]["deceptions"]}
        )
    if ctx.results["normalize"]["gives_orders"]:
        return ToPerson("instructions_in_message", kept=suggestion)
    notes = (f"classifier:{model.name}@{model.version}",)
    return Done(suggestion, confidence=found.confidence, notes=notes)


def policy(ctx: StageContext) -> Done | Finish | ToPerson | WaitForData:
    """Whether anything is due, and how much: by code, from figures that are fresh."""
    suggestion = ctx.results["analyse"]
    if suggestion["category"] != "refund":
        return Finish(f"about_{suggestion['detail']}")
    order, seen_at = _fresh_order(ctx)
    reason = suggestion["detail"]
    answer = eligible(order, reason, _claims(ctx, order["currency"]), ctx.now)
    if isinstance(answer, AmountNeeded):
        question = f"How much too much were you charged, in {answer.currency}? Please give the amount only."
        return WaitForData(question, AMOUNT_SCHEMA, ANSWER_WITHIN)
    if isinstance(answer, Not):
        return Finish(answer.case) if answer.ends else ToPerson(answer.case, kept={"order": order["id"]})
    amount, currency = str(answer.money.amount), answer.money.currency
    return Done({
        "amount": amount, "currency": currency, "reason": reason, "order": order, "seen_at": seen_at.isoformat(),
        "message": messages.with_the_refund(reason, amount, currency, order["id"]),
    }, notes=(f"rule:eligible:{reason}", f"read:order:{order['id']}@{order['etag']}"))  # fmt: skip


def _fresh_order(ctx: StageContext) -> tuple[Mapping[str, Any], datetime]:
    """The retrieved figures, read again where the case has waited too long since."""
    kept = ctx.results["retrieve"]
    seen_at = datetime.fromisoformat(kept["seen_at"])
    if ctx.now - seen_at <= FRESH_FOR:
        return kept["order"], seen_at
    order = read_order(ctx.site, kept["order"]["id"])
    if order is None or order.customer != ctx.input.customer_id:
        raise NotAllowed("not_your_order")
    return order.figures(), ctx.now


def _claims(ctx: StageContext, currency: str) -> list[Money]:
    """What the requester claims; the answer to our own question counts instead of what was said before."""
    answered = ctx.data.get("amount")
    if answered is not None:
        bare = str(answered).upper().replace(currency, "").strip()
        money = money_of(bare, currency)
        if money is None or not bare[:1].isdigit():
            raise Malformed("odd_amount", {"amount": str(answered)})
        return [money]
    claims = ctx.results["normalize"]["claims"]
    return [Money(Decimal(claim["amount"]), claim["currency"]) for claim in claims]


def refund(ctx: StageContext) -> Propose:
    """Ask for the refund. The operation reads the order once more and may still refuse."""
    due, suggestion = ctx.results["policy"], ctx.results["analyse"]
    arguments = {
        "order": due["order"]["id"], "amount": due["amount"], "currency": due["currency"], "reason": due["reason"],
        "receipt_to": ctx.input.requester_email, "message": due["message"],
        "note": f"Classified as {suggestion['detail']} with confidence {suggestion['confidence']}.",
    }  # fmt: skip
    reason = f"{messages.WHY[due['reason']]} The amount was computed from the payment."
    return Propose("refunds.issue", arguments, reason, gathered(ctx))


def confirm(ctx: StageContext) -> Done:
    """The answer to the requester: stored as the run's message. Mailing it would be a side effect of its own."""
    done = ctx.results.get("refund")
    if done is None:
        return Done({"message": messages.DECLINED})
    if done.get("in_part"):
        return Done({"message": messages.IN_PART})
    due, answer = ctx.results["policy"], done["answer"]
    amount, currency = answer.get("amount", due["amount"]), answer.get("currency", due["currency"])
    return Done({"message": messages.confirmation(amount, currency, due["order"]["id"], done["reference"])})
