"""What of an action is compared with earlier ones: accounts, addresses, hosts, names and amounts.

They are kept as fingerprints under the tenant's key, which can be compared and not be guessed; an amount of money is
kept as a number where everybody who may open the proposal sees it anyway. Pure: rows are made here and saved by whoever
makes the proposal.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Final
from uuid import UUID

from approvals.models import Proposal, Trait
from approvals.paging import host_of
from approvals.viewmodels import ViewField
from common.digests import tenant_hmac
from common.disclosure import is_open
from common.display import unveil
from common.fields import NONE_TEXT, MoneyType, PersonType
from common.hosts import fronts_of, likeness
from common.textlinks import links_in

HOST: Final = "host"
ADDRESS: Final = "address"
ACCOUNT: Final = "account"
NAME: Final = "name"
AMOUNT: Final = "amount"
ACCOUNTS: Final = frozenset({"account", "iban"})
_NAMES: Final = frozenset({"text", "identifier", "file"})
_SHORT: Final = 80
MOST: Final = 200
"""So many traits of one proposal are kept and compared. Hosts and accounts come first."""
_EACH: Final = MOST // 5
"""Of each kind so many come before the others, that a flood of accounts does not hide a host."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One comparable value of a field. ``shown`` is for sentences; ``open`` says that it may stand in one."""

    kind: str
    value: str
    shown: str
    field: ViewField
    amount: Decimal | None = None
    currency: str = ""
    known_as: str = ""
    """What people know it by, where that is not the value itself: a person's name, while the id is what counts."""

    @property
    def open(self) -> bool:
        return is_open(self.field.data_class)

    @property
    def place(self) -> str:
        """Which field it is, whichever item of a list: ``/items/*/price``."""
        return re.sub(r"/[0-9]+(?=/|$)", "/*", self.field.pointer)

    @property
    def alike(self) -> str:
        return "" if self.kind == AMOUNT else likeness(self.known_as or self.value)


def all_seen_in(fields: Iterable[ViewField]) -> tuple[Seen, ...]:
    """The comparable values of a view's fields, each once: accounts and hosts first, the rarest of each before others.

    Of nine thousand recipients the one whose host nobody else has is the one to compare.
    """
    order = (ACCOUNT, HOST, AMOUNT, ADDRESS, NAME)
    named: Counter[tuple[str, str, str]] = Counter()
    found: dict[tuple[str, str, str], Seen] = {}
    for field in fields:
        for seen in _of_field(field):
            key = (seen.kind, seen.value, seen.place)
            named[key] += 1
            found.setdefault(key, seen)
    rare_first = sorted(found.items(), key=lambda item: (order.index(item[1].kind), named[item[0]]))
    of_kind: Counter[str] = Counter()
    ranked: list[tuple[bool, int, Seen]] = []
    for _, seen in rare_first:
        ranked.append((of_kind[seen.kind] >= _EACH, len(ranked), seen))
        of_kind[seen.kind] += 1
    return tuple(seen for _, _, seen in sorted(ranked, key=lambda item: item[:2]))


def hosts_in_front(seen: Iterable[Seen]) -> tuple[Seen, ...]:
    """What the hosts among the values begin with, as hosts of their own: to ask which of these are known."""
    fronts = (
        replace(one, value=front, shown=front)
        for one in seen
        if one.kind == HOST
        for front in fronts_of(one.value)
    )
    return tuple(islice(fronts, MOST))


def seen_in(fields: Iterable[ViewField]) -> tuple[Seen, ...]:
    """The first `MOST` of them: so many are kept, and compared with those of earlier actions."""
    return all_seen_in(fields)[:MOST]


def _of_field(field: ViewField) -> Iterator[Seen]:
    text = field.text
    if not text or text == NONE_TEXT or field.data_class == "secret":
        return
    if host := host_of(field):
        yield Seen(HOST, host, host, field)
    if field.type == "email":
        yield Seen(ADDRESS, text.lower(), text, field)
    elif field.type in ACCOUNTS:
        yield Seen(ACCOUNT, re.sub(r"\s", "", text).upper(), text, field)
    elif field.type == MoneyType.name and field.covers:
        amount, currency = MoneyType().parse_both(text)
        yield Seen(AMOUNT, text, text, field, Decimal(amount), currency)
    elif field.type == PersonType.name:
        yield Seen(NAME, unveil(text), text, field, known_as=unveil(text.partition(" ")[2]))
    elif field.type in _NAMES:
        yield from _of_text(field, text)


def _of_text(field: ViewField, text: str) -> Iterator[Seen]:
    for link in links_in(unveil(text)) if field.type == "text" else ():
        if link.host:
            yield Seen(HOST, link.host, link.host, field)
    if field.lines == 1 and len(text) <= _SHORT:
        yield Seen(NAME, unveil(text), text, field)


def fingerprint(tenant_id: UUID, kind: str, value: str) -> str:
    return tenant_hmac(tenant_id, f"trait.{kind}", value.encode())


def trait_rows(proposal: Proposal, seen: Sequence[Seen]) -> list[Trait]:
    """The rows by which later proposals are compared with this one."""
    return [
        Trait(
            tenant_id=proposal.tenant_id, proposal=proposal, operation=proposal.operation, target=proposal.target,
            kind=one.kind, place=one.place[:200],
            fingerprint="" if one.kind == AMOUNT else fingerprint(proposal.tenant_id, one.kind, one.value),
            likeness=fingerprint(proposal.tenant_id, one.kind, one.alike) if one.alike else "",
            amount=one.amount, currency=one.currency,
        )
        for one in seen
        if one.kind != AMOUNT or one.open
    ]  # fmt: skip
