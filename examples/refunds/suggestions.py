"""What a classifier returned, before anything believes it: schema, meaning, authority.

A refused suggestion is kept as it was and a person looks; it is never repaired into something plausible.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from workflows.authoring import Malformed

Reason = Literal[
    "refund_missing", "charged_twice", "damaged", "not_received", "unwanted", "overcharged",
]  # fmt: skip
Topic = Literal["security", "cards", "cash", "top_ups", "transfers", "account", "exchange", "payments"]
Quote = Annotated[str, StringConstraints(min_length=1, max_length=200)]

_ORDERS = re.compile(
    r"(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|rule|polic|prompt|above|previous|limit)"
    r"|\byou are now\b|\bsystem\s*(?:prompt|:|message)|</?(?:system|assistant|instructions?)>|\bdeveloper mode\b"
    r"|\b(?:approve|refund|pay)\b.{0,40}\bwithout\b.{0,30}\b(?:review|approval|asking|a human|a person|check)"
    r"|\b(?:do not|don't|never)\b.{0,20}\b(?:ask|tell|involve|show)\b.{0,20}\b(?:human|person|reviewer|anyone)"
    r"|\bas an? (?:ai|language model)\b|\badmin(?:istrator)? override\b",
    re.IGNORECASE | re.DOTALL,
)


class Suggestion(BaseModel):
    """The narrow form. An unknown category or topic, a value out of range or a further field is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    category: Literal["refund", "other_topic", "unclear"]
    detail: Reason | Topic | Literal[""]
    confidence: Annotated[Decimal, Field(ge=0, le=1, max_digits=4, decimal_places=3)]
    quotes: Annotated[tuple[Quote, ...], Field(max_length=5)]
    order: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z-]{0,31}$")] | None = None

    @model_validator(mode="after")
    def _detail_fits(self) -> Self:
        reasons, topics = Reason.__args__, Topic.__args__  # type: ignore[attr-defined]
        allowed = {"refund": reasons, "other_topic": topics, "unclear": ("",)}[self.category]
        if self.detail not in allowed:
            raise ValueError("the detail does not belong to the category")
        return self


def checked(raw: Mapping[str, Any], *, message: str, order: str) -> Suggestion:
    """The suggestion, once it has passed all three checks. Raises Malformed with what was refused, as it was."""
    suggestion = _parsed(raw)
    if suggestion.category != "unclear" and not suggestion.quotes:
        raise Malformed("missing_evidence", _kept(raw))
    if any(quote not in message for quote in suggestion.quotes):
        raise Malformed("invented_evidence", _kept(raw))
    if suggestion.order not in (None, order):
        # It may speak about the order of this run and of no other, whoever asked it to.
        raise Malformed("beyond_this_case", _kept(raw))
    return suggestion


def _parsed(raw: Mapping[str, Any]) -> Suggestion:
    try:
        return Suggestion.model_validate(dict(raw))
    except ValidationError as error:
        problems = [
            {"path": "/".join(map(str, problem["loc"])), "code": problem["type"]}
            for problem in error.errors()
        ]
        raise Malformed("refused_suggestion", _kept(raw) | {"errors": problems}) from None


def _kept(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What came back, with numbers as texts so that nothing of it is rounded away."""
    return {"suggestion": {str(key): _plain(value) for key, value in raw.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool | str) else str(value)


def gives_orders(message: str) -> bool:
    """Whether the message speaks to a machine rather than to a shop. It stays data either way; a person reads it."""
    return _ORDERS.search(message) is not None
