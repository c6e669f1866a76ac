"""Pages of what is too long for one: cut so that no sign, line end or letter with its marks is torn apart.

Also what a reader of single pages would not see by turning them: sums, and how often which host is named.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from approvals.viewmodels import ViewField
from common.fields import MoneyType, money_text

PAGE_CHARACTERS: Final = 8_000
PAGE_LINES: Final = 200
PAGE_ROWS: Final = 200
MANY_ROWS: Final = 50
"""A list with more values than this stands in parts of its own."""
_SIGN: Final = 12
_NAMED_HOSTS: Final = 8


def cuts_of(shown: str) -> tuple[int, ...]:
    """Where the pages of a shown text end; empty where one page holds it."""
    ends: list[int] = []
    while not ends or ends[-1] < len(shown):
        ends.append(_end_of_page(shown, ends[-1] if ends else 0))
    return tuple(ends) if len(ends) > 1 else ()


def _end_of_page(shown: str, start: int) -> int:
    limit = min(start + PAGE_CHARACTERS, _after_lines(shown, start))
    if limit >= len(shown):
        return len(shown)
    for sign in ("\n", " "):
        if (at := shown.rfind(sign, start + PAGE_CHARACTERS // 2, limit)) >= 0:
            return at + 1
    return _whole(shown, limit, start)


def _after_lines(shown: str, start: int) -> int:
    at = start
    for _ in range(PAGE_LINES):
        at = shown.find("\n", at) + 1
        if not at:
            return len(shown)
    return at


def _whole(shown: str, at: int, start: int) -> int:
    """The nearest place before `at` that tears nothing apart."""
    opened = shown.rfind("⟦", at - _SIGN, at)
    if opened >= 0 and "⟧" not in shown[opened:at]:
        at = opened
    if shown[at - 1] == "↵":
        at -= 1
    while at > start + 1 and unicodedata.category(shown[at]).startswith("M"):
        at -= 1
    return at


def pages_of(fields: Sequence[ViewField]) -> list[int]:
    """For the rows of a long list, the number of the page (from 1) that each stands on."""
    page, rows, characters, numbers = 1, 0, 0, []
    for field in fields:
        size = len(field.text or "")
        if rows and (rows >= PAGE_ROWS or characters + size > PAGE_CHARACTERS):
            page, rows, characters = page + 1, 0, 0
        rows, characters = rows + 1, characters + size
        numbers.append(page)
    return numbers


def notes_on_list(count: int, fields: Sequence[ViewField]) -> tuple[str, ...]:
    """What the values are together: how many, how many of them differ, what they sum up to, whose hosts they name."""
    texts = [field.text for field in fields]
    differ = len(set(texts))
    rows = f"{count:,} values" if count == len(fields) else f"{count:,} values in {len(fields):,} rows"
    said = [f"{rows}, {differ:,} of them different" if differ < len(texts) else f"{rows}, all different"]
    return (*said, *_sums(fields), *_hosts(fields))


def _sums(fields: Iterable[ViewField]) -> list[str]:
    sums: dict[tuple[str, str], Decimal] = {}
    for field in fields:
        if field.type == MoneyType.name and field.covers and field.text:
            amount, currency = MoneyType().parse_both(field.text)
            name = field.label.rpartition(" › ")[2] if " › " in field.label else "all together"
            sums[name, currency] = sums.get((name, currency), Decimal(0)) + Decimal(amount)
    return [f"{name}: {money_text(total, currency)}" for (name, currency), total in sums.items()]


def _hosts(fields: Iterable[ViewField]) -> list[str]:
    """The hosts with how often each is named, the rarest first: one among nine thousand is the one to see."""
    named = Counter(host for field in fields if (host := host_of(field)))
    if not named:
        return []
    rarest = sorted(named.items(), key=lambda item: (item[1], item[0]))
    shown = ", ".join(f"{host} {times:,}" for host, times in rarest[:_NAMED_HOSTS])
    more = f", and {len(named) - _NAMED_HOSTS:,} more" if len(named) > _NAMED_HOSTS else ""
    return [f"{len(named):,} host{'' if len(named) == 1 else 's'}: {shown}{more}"]


def host_of(field: ViewField) -> str:
    """The host that a link or a mail address names, as it is shown in bold; empty for anything else."""
    if field.type not in ("url", "email", "host"):
        return ""
    return field.around_strong[1].rpartition("://")[2].partition(":")[0]
