"""What a refund's proposal rests on, each piece with its source and the moment it was read."""

import json
from datetime import datetime, timedelta
from typing import Any

from examples.refunds.policy import RefundPolicy
from workflows.authoring import DataClass, EvidencePiece, StageContext

FRESH_FOR = timedelta(minutes=10)


def gathered(ctx: StageContext) -> tuple[EvidencePiece, ...]:
    """The message, the order, what the classifier made of it, and the rules that were applied."""
    due, suggestion = ctx.results["policy"], ctx.results["analyse"]
    read_at = datetime.fromisoformat(due["seen_at"])
    order = due["order"]
    return (
        EvidencePiece(
            "message", "What the requester wrote", ctx.input.message.encode(), ctx.now, source="intake",
            ref=f"run:{ctx.run_id}", data_class=DataClass.PERSONAL,
        ),
        EvidencePiece(
            "record", f"Order {order['id']} with its payment and refunds", _pretty(order), read_at,
            source="refund provider", ref=f"order:{order['id']}@{order['etag']}", fresh_for=FRESH_FOR,
        ),
        EvidencePiece(
            "classification", "What the classifier made of the message", _pretty(suggestion), ctx.now,
            source="rule-based classifier", data_class=DataClass.PERSONAL,
        ),
        EvidencePiece(
            "policy", f"Policy {RefundPolicy.name}, version {RefundPolicy.version}", _limits(order["currency"]),
            ctx.now, source="refund policy", ref=f"{RefundPolicy.name}@{RefundPolicy.version}",
        ),
    )  # fmt: skip


def _pretty(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).encode()


def _limits(currency: str) -> bytes:
    small, large = RefundPolicy.small.get(currency, "0"), RefundPolicy.large.get(currency, "0")
    return (
        f"Never more than what was paid and not yet refunded.\nUp to {currency} {small}, first refund of the order: "
        f"small.\nUp to {currency} {large}: one person of the refund desk.\nAbove: two people of finance."
    ).encode()
