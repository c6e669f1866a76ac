"""The list of what is alike and of low risk: each proposal whole, with what is the same in all of them said once."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, F, Func, IntegerField, OuterRef, QuerySet
from django.urls import reverse

from access.models import Membership
from approvals.actions_bulk import Result, seal_list
from approvals.alike import LOW_RISK, MOST, Line, Listed, fits, lines_of, same_in_all, shape_of
from approvals.enums import DecisionResult
from approvals.models import Claim, Proposal, Question, Rejection
from approvals.refusals import Uninspectable
from approvals.screens.bar import RESULTS
from approvals.screens.queue import decidable_by, waiting
from approvals.screens.slip import Reader, receipt_for
from approvals.shown import view_of
from approvals.viewmodels import MAIN, ViewDocument
from common.content_errors import ContentErased
from common.disclosure import Recipient, disclosed, hides
from common.sealed import prefetch_keys
from common.states_ui import Tone

_LOOKED_AT: Final = 2 * MOST
"""So many rows are read to fill one list: some may not fit in it."""
_LARGEST_VIEW: Final = 40_000
"""Bytes of a stored view document; a larger one never fits in a row, and is not read."""


@dataclass(frozen=True, slots=True)
class Item:
    """One proposal of the list. ``differs``: what is not the same in all."""

    proposal: Proposal
    view: ViewDocument
    differs: tuple[Line, ...]
    listed: Listed
    ticked: bool

    @property
    def href(self) -> str:
        return reverse("approvals:proposal", args=[self.proposal.pk])


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one that was decided, in words."""

    href: str
    headline: str
    tone: Tone
    icon: str
    says: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class BulkScreen:
    """The whole page. ``like``: the proposal that the others are like; ``why_not`` it stands in no list, if so."""

    like: Proposal
    now: datetime
    items: tuple[Item, ...] = ()
    same: tuple[Line, ...] = ()
    seal: str = ""
    more: bool = False
    why_not: str = ""
    alike: int = 0
    """How many of this kind wait, as the queue counts them."""
    others: str = ""
    """Why some of them do not stand here, in one sentence; empty where all do."""
    results: tuple[Told, ...] = ()

    @property
    def done(self) -> int:
        return sum(not told.code for told in self.results)


def of_this_kind(like: Proposal) -> QuerySet[Proposal]:
    """What is alike, by what never changes about a proposal; in whichever state it is."""
    rows = Proposal.objects.filter(tenant_id=like.tenant_id)
    return rows.filter(shape=like.shape) if like.shape else rows.filter(pk=like.pk)


def offered_among(like: Proposal, ids: list[str]) -> set[UUID]:
    """Which of these may be decided in a list with ``like``: the kind, and the whole of it fits in a row."""
    wanted = _view(like)
    if wanted is None or _why_not(like, wanted):
        return set()
    rows = list(_small(of_this_kind(like)).filter(pk__in=ids))
    prefetch_keys(rows)
    shape = shape_of(like, wanted)
    return {row.pk for row in rows if _is_listed(row, _view(row), shape)}


def bulk_screen(like: Proposal, reader: Reader, *, ticked: frozenset[str] = frozenset()) -> BulkScreen:
    """The list for one reader. Nothing is ticked in it but what they had ticked before."""
    wanted = _view(like)
    if wanted is None or (why := _why_not(like, wanted)):
        return BulkScreen(like, reader.now, why_not=why if wanted else ODD)
    all_alike = waiting(like.tenant_id, reader.now).filter(pk__in=of_this_kind(like).values("pk"))
    decidable = all_alike.filter(decidable_by(reader.membership))
    free = _free(decidable, reader.membership, reader.now)
    rows = list(_small(free).order_by("decide_by", "pk")[: _LOOKED_AT + 1])
    prefetch_keys(rows)
    shape = shape_of(like, wanted)
    views = [(row, view) for row in rows if (view := _view(row)) and _is_listed(row, view, shape)]
    shown = [pair for pair in views[:MOST] if _all_disclosed(pair[1], reader.recipient)]
    same = same_in_all(view for _, view in shown)
    items = tuple(_item(row, view, same, reader, ticked) for row, view in shown)
    lines = lines_of(shown[0][1]) if shown else ()
    return BulkScreen(
        like, reader.now, items,
        same=tuple(_for(line, reader.recipient) for line, is_same in zip(lines, same, strict=True) if is_same),
        seal=seal_list((item.listed for item in items), user_id=reader.user_id, at=reader.now),
        more=len(views) > MOST or len(rows) > _LOOKED_AT,
        **_numbers(all_alike.count(), decidable.count(), free.count(), len(rows) - len(views)),
    )  # fmt: skip


def _item(
    row: Proposal, view: ViewDocument, same: tuple[bool, ...], reader: Reader, ticked: frozenset[str]
) -> Item:
    lines = zip(lines_of(view), same, strict=True)
    receipt = receipt_for(row, MAIN, reader)
    return Item(
        proposal=row,
        view=view,
        differs=tuple(_for(line, reader.recipient) for line, is_same in lines if not is_same),
        listed=Listed(str(row.pk), row.digest, row.view_digest, receipt),
        ticked=str(row.pk) in ticked,
    )


def _for(line: Line, to: Recipient) -> Line:
    """As the proposal's page shows it: fields whole, what stands beside them by its class."""
    text = line.text if line.section == "field" else disclosed(line.text, line.data_class, to)
    return replace(line, text=text)


def _all_disclosed(view: ViewDocument, to: Recipient) -> bool:
    """Who is not shown all of it decides nothing on it."""
    return not any(hides(line.data_class, to) for line in lines_of(view) if line.section == "field")


def _free(rows: QuerySet[Proposal], membership: Membership, now: datetime) -> QuerySet[Proposal]:
    """Those that nobody else is reading, asking about, or has refused before on the same target."""
    claimed = Claim.objects.filter(proposal_id=OuterRef("pk"), until__gt=now).exclude(
        user_id=membership.user_id
    )
    asked = Question.objects.filter(proposal_id=OuterRef("pk"), answer__isnull=True)
    refused = Rejection.objects.filter(
        tenant_id=OuterRef("tenant_id"), operation=OuterRef("operation"), target=OuterRef("target"),
        until__gt=now, lifted_at__isnull=True,
    )  # fmt: skip
    return rows.exclude(Exists(claimed)).exclude(Exists(asked)).exclude(Exists(refused))


def _numbers(alike: int, decidable: int, free: int, long: int) -> dict[str, Any]:
    """How many wait as the queue counts them, and where those are that do not stand in the list."""
    others = [
        (alike - decidable, "not for you to decide"),
        (decidable - free, "held by somebody, asked about, or like one that was rejected"),
        (long, "too long for a row"),
    ]
    told = ", ".join(f"{number} {why}" for number, why in others if number > 0)
    return {"alike": alike, "others": f"Not here: {told}." if told else ""}


def _small(rows: QuerySet[Proposal]) -> QuerySet[Proposal]:
    size = Func(F("view"), function="octet_length", output_field=IntegerField())
    return rows.annotate(view_size=size).filter(view_size__lte=_LARGEST_VIEW).defer("contract", "volatile")


def _view(row: Proposal) -> ViewDocument | None:
    try:
        return view_of(row)
    except (Uninspectable, ContentErased):
        return None


def _is_listed(row: Proposal, view: ViewDocument | None, shape: str) -> bool:
    """By what the row is and shows now: the stored shape, by which it was found, is bound by nobody."""
    return view is not None and fits(view) and shape_of(row, view) == shape


ODD: Final = "It has something to look at that a list has no room for."


def _why_not(like: Proposal, view: ViewDocument) -> str:
    """Why a proposal is decided on its own page, in one sentence; empty where a list may hold it."""
    if like.risk > LOW_RISK:
        return "What it would do is not of low risk."
    if like.needed != 1:
        return "It asks for two people."
    if like.supersedes_id:
        return "It is a newer version: its page shows the difference to the earlier one."
    return ODD if like.warning_count or not fits(view) else ""


def told_of(result: Result, row: Proposal | None) -> Told:
    """One result in words. The same titles as on the proposal's own page."""
    href = reverse("approvals:proposal", args=[result.proposal_id])
    name = row.summary if row else str(result.proposal_id)
    if result.refusal is not None:
        return Told(href, name, "wait", "warn", result.refusal.message, result.refusal.code)
    tone, icon, says = RESULTS[DecisionResult(result.became)]
    return Told(href, name, tone, icon, says)
