"""Rows of the queue as they are shown: what each says, and the headings between them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from typing import Final
from uuid import UUID

from django.urls import reverse
from django.utils.http import urlencode

from access.models import Membership
from approvals.enums import DecisionKind, Mode
from approvals.models import Decision, Proposal
from approvals.screens.claims import Holder
from common import spans
from common.fields import SCALES, money_text
from common.keyset import Order
from common.states_ui import Tone, state_ui

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
RISK_WORDS: Final = {3: "High risk", 2: "Medium risk", 1: "Low risk"}


@dataclass(frozen=True, slots=True)
class Mark:
    """A small remark of a row: never said by its tone alone."""

    tone: Tone
    icon: str
    words: str
    name: str = ""
    """The class by which a script finds it, where it changes while the page is open."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One waiting proposal as a row, in the words of the page: a template only puts them in their places.

    ``alike``: how many proposals of the list are alike, this one among them, and ``kind`` as a parameter of an address
    shows them; with ``many`` the row stands for all. ``tone`` and ``filled`` (in percent) are of the time ``left``.
    """

    id: UUID
    href: str
    summary: str
    operation: str
    workflow: str
    age: str
    risk: int
    amount: str
    marks: tuple[Mark, ...]
    holder: Holder | None
    decide_by: datetime
    left: str
    tone: Tone
    filled: int
    alike: int
    kind: str
    many: bool = False

    @property
    def risk_word(self) -> str:
        return risk_word(self.risk)


def risk_word(risk: int) -> str:
    return RISK_WORDS.get(risk, f"Risk {risk}")


@dataclass(frozen=True, slots=True)
class QueueGroup:
    """Rows that follow each other under one heading."""

    word: str
    rows: tuple[QueueRow, ...]


@dataclass(frozen=True, slots=True)
class Looker:
    """For whom and for when rows are made, and what is held at that moment."""

    membership: Membership
    held: Mapping[UUID, Holder]
    now: datetime


def rows_of(page: Sequence[Proposal], alike: Mapping[str, int], looker: Looker) -> list[QueueRow]:
    """A page of a list as rows: one statement, however many. ``alike``: how many of the list have which shape."""
    votes = votes_on([proposal.pk for proposal in page])
    return [
        queue_row(proposal, votes.get(proposal.pk, []), alike.get(proposal.shape, 1), looker)
        for proposal in page
    ]


def votes_on(ids: Sequence[UUID]) -> dict[UUID, list[Decision]]:
    """The standing votes on these proposals."""
    found: dict[UUID, list[Decision]] = {}
    rows = Decision.objects.filter(proposal_id__in=ids, replaced_at__isnull=True)
    for vote in rows.only("proposal_id", "kind", "user_id") if ids else ():
        found.setdefault(vote.proposal_id, []).append(vote)
    return found


def queue_row(proposal: Proposal, votes: Sequence[Decision], alike: int, looker: Looker) -> QueueRow:
    """Shape one proposal into a row."""
    now = looker.now
    left = (proposal.decide_by - now).total_seconds()
    return QueueRow(
        id=proposal.pk, href=reverse("approvals:proposal", args=[proposal.pk]), summary=proposal.summary,
        operation=proposal.operation, workflow=proposal.workflow,
        age=spans.span((now - proposal.created_at).total_seconds()), risk=proposal.risk,
        amount=amount_text(proposal.amount, proposal.amount_currency),
        marks=tuple(_marks(proposal, votes, not_for_you(proposal, looker.membership, votes))),
        holder=looker.held.get(proposal.pk),
        decide_by=proposal.decide_by, left=spans.left(left), tone=spans.urgency(left),
        filled=spans.share(proposal.created_at, proposal.decide_by, now),
        alike=alike, kind=urlencode({"alike": proposal.shape}),
    )  # fmt: skip


def _marks(proposal: Proposal, votes: Sequence[Decision], mine: str) -> Iterator[Mark]:
    if proposal.risk > 1:
        yield Mark("bad" if proposal.risk > 2 else "wait", "flag", risk_word(proposal.risk))
    if proposal.warning_count:
        yield Mark(
            "bad", "warn", f"{proposal.warning_count} warning{'' if proposal.warning_count == 1 else 's'}"
        )
    if proposal.unmanned:
        yield Mark("bad", "users", "Too few there in time")
    if proposal.needed > 1:
        given = sum(vote.kind == DecisionKind.APPROVE for vote in votes)
        yield Mark("act" if given else "mute", "users", f"{given} of {proposal.needed}", "given")
    if proposal.version > 1:
        yield Mark("act", "layers", f"Version {proposal.version}")
    if proposal.mode != Mode.LIVE:
        yield Mark("mute", "eye", state_ui("mode", proposal.mode).word)
    if mine:
        yield Mark("mute", "lock", mine)


def amount_text(amount: Decimal | None, currency: str) -> str:
    """An amount as lists show it, with the digits of its currency; empty where it is not money."""
    if amount is None:
        return ""
    return money_text(f"{amount:.{SCALES.get(currency, 2)}f}", currency).strip()


def not_for_you(proposal: Proposal, membership: Membership, votes: Sequence[Decision]) -> str:
    """Why this person does not decide a row, as far as the row itself shows it."""
    if not membership.accounts.isdisjoint(proposal.excluded_users):
        return "Your own"
    return "You voted" if any(vote.user_id in membership.accounts for vote in votes) else ""


def grouped(rows: Sequence[QueueRow], order: Order, now: datetime) -> tuple[QueueGroup, ...]:
    """Cut ordered rows where the heading of their order changes. No row changes its place."""
    heading = HEADINGS[order.name]
    cut = groupby(rows, key=lambda row: heading(row, now))
    return tuple(QueueGroup(word, tuple(found)) for word, found in cut)


def _by_hours(row: QueueRow, now: datetime) -> str:
    """By whole hours of the clock, as *urgency* sorts: each row has at most the time that its heading says."""
    ends = row.decide_by.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + HOUR
    left = ends - now
    return "Within two hours" if left <= 2 * HOUR else "Within a day" if left <= DAY else "Later"


def _by_time(row: QueueRow, now: datetime) -> str:
    left = row.decide_by - now
    return "Within the hour" if left <= HOUR else "Within a day" if left <= DAY else "Later"


HEADINGS: Final[dict[str, Callable[[QueueRow, datetime], str]]] = {
    "urgency": _by_hours,
    "time": _by_time,
    "alike": _by_time,
    "risk": lambda row, now: row.risk_word,
    "amount": lambda row, now: "Money" if row.amount else "No amount of money",
    "age": lambda row, now: "Waiting",
}
