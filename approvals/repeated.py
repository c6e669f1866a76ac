"""What only shows where many values stand together: the same one twice, and one amount far above the others. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from statistics import median
from typing import Final

from approvals.viewmodels import ViewField, ViewWarning
from common.disclosure import is_open
from common.fields import SCALES, MoneyType, money_text

TIMES_MIDDLE: Final = 10
_ENOUGH: Final = 8
_WHO: Final = frozenset({"email", "account", "iban", "person", "url", "host", "identifier", "file"})
"""What is written, paid or done to: one that stands twice may get it twice."""
_NAMED: Final = 3


def list_warnings(fields: Sequence[ViewField]) -> Iterator[ViewWarning]:
    """Values that stand in a list more than once, and amounts that its others are nowhere near."""
    lists: dict[str, list[ViewField]] = {}
    for row in fields:
        if any(isinstance(step, int) for step in row.path) and row.text:
            lists.setdefault(re.sub(r"/[0-9]+(?=/|$)", "/*", row.pointer), []).append(row)
    for rows in lists.values():
        if isinstance(rows[0].path[-1], int) and rows[0].type in _WHO:
            yield from _twice(rows)
        elif rows[0].type == MoneyType.name and rows[0].covers:
            yield from _far_above(rows)


def _twice(rows: Sequence[ViewField]) -> Iterator[ViewWarning]:
    times = Counter(_spelled(row) for row in rows)
    again = [row for row in {_spelled(row): row for row in rows}.values() if times[_spelled(row)] > 1]
    if not again:
        return
    says = f"{len(again):,} of the values {'stands' if len(again) == 1 else 'stand'} here more than once"
    if is_open(again[0].data_class):
        few = ", ".join(f"{row.text} {times[_spelled(row)]} times" for row in again[:_NAMED])
        says += f": {few}{' and more' if len(again) > _NAMED else ''}"
    yield _warning("value_repeated", again[0], f"{says}.")


def _spelled(row: ViewField) -> str:
    """What counts as the same: case is none of a mail address, as far as anybody delivers mail."""
    text = row.text or ""
    return text.casefold() if row.type == "email" else text


def _far_above(rows: Sequence[ViewField]) -> Iterator[ViewWarning]:
    by_currency: dict[str, list[tuple[Decimal, ViewField]]] = {}
    for row in rows:
        amount, currency = MoneyType().parse_both(row.text or "")
        by_currency.setdefault(currency, []).append((Decimal(amount), row))
    for currency, amounts in by_currency.items():
        middle = median(amount for amount, _ in amounts)
        most, row = max(amounts, key=lambda pair: pair[0])
        if len(amounts) >= _ENOUGH and middle > 0 and most >= TIMES_MIDDLE * middle:
            yield _warning("amount_stands_out", row, _stands_out(row, amounts, middle, currency))


def _stands_out(
    row: ViewField, amounts: Iterable[tuple[Decimal, ViewField]], middle: Decimal, currency: str
) -> str:
    many = sum(amount >= TIMES_MIDDLE * middle for amount, _ in amounts)
    others = f" {many:,} are that much above it." if many > 1 else ""
    if not is_open(row.data_class):
        return f"{row.label} is far above the others.{others}"
    shown = money_text(f"{middle:.{SCALES.get(currency, 2)}f}", currency)
    return f"{row.label} is {row.text}; the middle one of the list is {shown}.{others}"


def _warning(code: str, row: ViewField, sentence: str) -> ViewWarning:
    return ViewWarning(code=code, pointer=row.pointer, label=row.label, sentence=sentence, acknowledge=True)
