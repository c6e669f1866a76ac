"""What the requester reads: static sentences with amounts and numbers put in by code. No model writes here."""

from workflows.authoring import money_text

WHY = {
    "refund_missing": "The refund you were waiting for had not been made.",
    "charged_twice": "You were charged more than once.",
    "damaged": "Your order arrived damaged.",
    "not_received": "Your order did not arrive.",
    "unwanted": "You asked to return your order.",
    "overcharged": "You were charged more than agreed.",
}
DECLINED = (
    "We looked at your request and cannot refund this order. You can answer this message to explain more."
)

IN_PART = "A part of your refund is on its way. A person is looking at the rest, and you hear from us again."


def with_the_refund(reason: str, amount: str, currency: str, order: str) -> str:
    """The text that goes out with the refund; it is part of what is approved."""
    return f"{WHY[reason]} We have refunded {money_text(amount, currency)} for your order {order}."


def confirmation(amount: str, currency: str, order: str, reference: str) -> str:
    """The final answer, once the provider has confirmed."""
    return (
        f"We have refunded {money_text(amount, currency)} for your order {order} to the card it was paid with. "
        f"It takes up to five working days to appear. Reference: {reference}."
    )
