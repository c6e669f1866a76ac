"""The queue as kinds of proposals: what is alike is one row, which stands for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Case, CharField, Count, F, Max, Min, Sum, When
from django.db.models.functions import Cast

from approvals.models import Proposal
from approvals.screens.orders import ALIKE
from approvals.screens.queue_rows import Looker, QueueRow, amount_text, queue_row, votes_on

_KIND = Case(When(shape="", then=Cast("id", CharField())), default=F("shape"))
"""What is alike has one; a proposal without a shape is alike to none."""


def kinds_page(listed: Any, after: str, size: int) -> tuple[list[dict[str, Any]], bool]:
    """A page of kinds, and whether more follow. A kind's place is that of its first proposal to run out of time."""
    kinds = listed.order_by().values(kind=_KIND).annotate(
        first_by=Min("decide_by"), number=Count("pk"), together=Sum("amount"), amounts=Count("amount"),
        currency=Min("amount_currency"), other_currency=Max("amount_currency"),
    )  # fmt: skip
    place = ALIKE.read_cursor(after) if after else None
    ordered = kinds.order_by("first_by", "kind")
    found = list((ordered.filter(ALIKE.behind(place)) if place else ordered)[: size + 1])
    return found[:size], len(found) > size


def cursor_behind(kind: Mapping[str, Any]) -> str:
    """The place of a kind in the list of kinds."""
    return ALIKE.cursor_at((kind["first_by"], kind["kind"]))


def rows_of_kinds(kinds: Sequence[Mapping[str, Any]], listed: Any, looker: Looker) -> list[QueueRow]:
    """Each kind as the row of its first proposal, with the number and the sum of all: two statements.

    A kind's first proposal is one of those that run out of time when the kinds do: few, and found by an index.
    """
    times, names = {kind["first_by"] for kind in kinds}, [kind["kind"] for kind in kinds]
    rows = listed.filter(decide_by__in=times).annotate(kind=_KIND).filter(kind__in=names)
    firsts = rows.order_by("kind", "decide_by", "id").distinct("kind")
    first: dict[str, Proposal] = {proposal.kind: proposal for proposal in firsts}
    votes = votes_on([proposal.pk for proposal in first.values()])
    found = []
    for kind in kinds:
        proposal = first.get(kind["kind"])
        if proposal is not None:  # else it was decided between the two statements
            row = queue_row(proposal, votes.get(proposal.pk, []), 1, looker)
            found.append(_for_all(row, kind) if kind["number"] > 1 else row)
    return found


def _for_all(row: QueueRow, kind: Mapping[str, Any]) -> QueueRow:
    one_currency = kind["currency"] == kind["other_currency"] and kind["amounts"] == kind["number"]
    amount = amount_text(kind["together"], kind["currency"]) if one_currency else ""
    return replace(row, alike=kind["number"], amount=amount, many=True)
