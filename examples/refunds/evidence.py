"""What a refund's proposal rests on, each piece with its source and the moment it was read."""

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
            "record", f"Order {order['id']} with its payment and refunds", _lines(order).encode(), read_at,
            source="refund provider", ref=f"order:{order['id']}@{order['etag']}", fresh_for=FRESH_FOR,
        ),
        EvidencePiece(
            "classification", "What the classifier made of the message", _lines(suggestion).encode(), ctx.now,
            source="rule-based classifier", data_class=DataClass.PERSONAL,
        ),
        EvidencePiece(
            "policy", f"Policy {RefundPolicy.name}, version {RefundPolicy.version}", _limits(order["currency"]),
            ctx.now, source="refund policy", ref=f"{RefundPolicy.name}@{RefundPolicy.version}",
        ),
    )  # fmt: skip


def _lines(value: Any, indent: str = "") -> str:
    """What was read, a line each, as a person reads it: no braces, no quotes."""
    return "\n".join(_line(name, part, indent) for name, part in value.items())


def _line(name: str, part: Any, indent: str) -> str:
    label = f"{indent}{name.replace('_', ' ').capitalize()}:"
    if isinstance(part, dict) and part:
        return f"{label}\n{_lines(part, indent + '  ')}"
    if isinstance(part, list) and part:
        return "\n".join([label, *(_item(item, indent + "  ") for item in part)])
    return f"{label} {'none' if part in (None, '', [], {}) else part}"


def _item(item: Any, indent: str) -> str:
    if isinstance(item, dict):
        return f"{indent}- " + ", ".join(f"{name.replace('_', ' ')} {part}" for name, part in item.items())
    return f"{indent}- {item}"


def _limits(currency: str) -> bytes:
    small, large = RefundPolicy.small.get(currency, "0"), RefundPolicy.large.get(currency, "0")
    return (
        f"Never more than what was paid and not yet refunded.\nUp to {currency} {small}, first refund of the order: "
        f"small.\nUp to {currency} {large}: one person of the refund desk.\nAbove: two people of finance."
    ).encode()
