"""The queue of waiting proposals: one query decides what it holds, its counts and its order."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.urls import reverse

from access.enums import Role
from access.models import Membership
from approvals.enums import DecisionKind, ProposalStatus
from approvals.models import Decision, Proposal
from common import spans

PAGE_SIZE: Final = 25
SOON: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
VIEWS: Final = {"": "All", "mine": "For you", "soon": "Expiring"}


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One waiting proposal as a row. ``mine`` says why this person does not decide it, or is empty."""

    id: UUID
    href: str
    summary: str
    operation: str
    workflow: str
    age: str
    warnings: int
    votes: int
    needed: int
    version: int
    mode: str
    mine: str
    decide_by: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True)
class QueueGroup:
    """Rows whose time runs out in the same stretch."""

    word: str
    rows: tuple[QueueRow, ...]


@dataclass(frozen=True, slots=True)
class Tab:
    """One view of the queue, with how many proposals it holds."""

    word: str
    href: str
    count: int
    current: bool


@dataclass(frozen=True, slots=True)
class QueueScreen:
    """The whole list: rows in groups, counts, and the addresses of its other pages."""

    groups: tuple[QueueGroup, ...]
    tabs: tuple[Tab, ...]
    view: str
    total: int
    all: int
    soon: int
    oldest: str
    says: str
    here: str
    first: str
    more: str
    filtered: bool
    unfiltered: str
    beside: str

    @property
    def rows(self) -> tuple[QueueRow, ...]:
        return tuple(row for group in self.groups for row in group.rows)


def waiting(tenant_id: UUID, now: datetime) -> QuerySet[Proposal]:
    """What waits for a decision at ``now``: pending, and still in time, whether or not the sweep has run."""
    return Proposal.objects.filter(tenant_id=tenant_id, status=ProposalStatus.PENDING, decide_by__gt=now)


def waiting_count(tenant_id: UUID, now: datetime) -> int:
    """How many proposals wait, for the navigation: the same number as the list's *All*."""
    return waiting(tenant_id, now).count()


def decidable_by(membership: Membership) -> Q:
    """The proposals that this person may still decide, as one condition for the database."""
    if not membership.has_role(Role.REVIEWER):
        return Q(pk__in=[])
    groups = membership.groups.values_list("id", flat=True)
    asked = Q(group__isnull=True) | Q(group_id__in=list(groups))
    return asked & ~Q(excluded_users__contains=[membership.user_id]) & ~voted_by(membership.user_id)


def voted_by(user_id: UUID) -> Q:
    """The proposals on which this person has a standing vote."""
    votes = Decision.objects.filter(proposal_id=OuterRef("pk"), user_id=user_id, replaced_at__isnull=True)
    return Q(Exists(votes))


def queue_screen(
    *, rows: QuerySet[Proposal], membership: Membership, query: QueryDict, filtered: bool, now: datetime
) -> QueueScreen:
    """Shape the filtered ``rows`` (a subset of :func:`waiting`) into the list that ``query`` asks for.

    ``query`` holds the view, the filters and the place to go on from; what cannot be understood is ignored,
    which shows the first page. Counts, groups and rows come from the same conditions.
    """
    view = query.get("view", "") if query.get("view", "") in VIEWS else ""
    conditions = {"": Q(), "mine": decidable_by(membership), "soon": Q(decide_by__lte=now + SOON)}
    counts = rows.aggregate(
        count_all=Count("pk"),
        count_mine=Count("pk", filter=conditions["mine"]),
        count_soon=Count("pk", filter=conditions["soon"]),
        oldest=Min("created_at", filter=conditions[view] or None),
    )
    totals = {"": counts["count_all"], "mine": counts["count_mine"], "soon": counts["count_soon"]}
    listed = rows.filter(conditions[view])
    page, more = one_page(listed, query.get("after", ""), membership.user_id)
    shown = [queue_row(proposal, membership, now) for proposal in page]
    in_all = waiting_count(membership.tenant_id, now) if filtered else totals[""]
    return QueueScreen(
        groups=grouped(shown, now),
        tabs=tuple(
            Tab(word, address(query, view=key), totals[key], key == view) for key, word in VIEWS.items()
        ),
        view=view,
        total=totals[view],
        all=in_all,
        soon=listed.filter(conditions["soon"]).count() if view else totals["soon"],
        oldest=spans.span((now - counts["oldest"]).total_seconds()) if counts["oldest"] else "",
        says=f"{len(shown)} of {totals[view]} shown, the most urgent first",
        here=address(query, view=view, after=query.get("after", "")),
        first=address(query, view=view) if query.get("after") else "",
        more=address(query, view=view, after=cursor_of(page[-1])) if more else "",
        filtered=filtered,
        unfiltered=address(QueryDict(), view=view),
        beside=f"{in_all} wait in all.",
    )


def one_page(listed: QuerySet[Proposal], after: str, user_id: UUID) -> tuple[list[Proposal], bool]:
    """One page in the order of decide-by, behind the row that ``after`` names; and whether more follow."""
    place = cursor_place(after)
    if place is not None:
        at, pk = place
        listed = listed.filter(Q(decide_by__gt=at) | Q(decide_by=at, pk__gt=pk))
    votes = Count(
        "decisions", filter=Q(decisions__kind=DecisionKind.APPROVE, decisions__replaced_at__isnull=True)
    )
    found = listed.annotate(votes=votes, voted=voted_by(user_id)).defer("contract", "view", "volatile")
    rows: list[Proposal] = list(found.order_by("decide_by", "pk")[: PAGE_SIZE + 1])
    return rows[:PAGE_SIZE], len(rows) > PAGE_SIZE


def cursor_of(proposal: Proposal) -> str:
    """The place of a row in the order of the queue, for the address of the next page."""
    return f"{proposal.decide_by.astimezone(UTC).isoformat()}~{proposal.pk}"


def cursor_place(text: str) -> tuple[datetime, UUID] | None:
    """The place that :func:`cursor_of` wrote, or None for anything else."""
    at, _, pk = text.partition("~")
    time = cursor_time(at)
    try:
        return None if time is None else (time, UUID(pk))
    except ValueError:
        return None


def cursor_time(text: str) -> datetime | None:
    """An aware instant as an address of ours carries it, or None for anything else."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None


def queue_row(proposal: Proposal, membership: Membership, now: datetime) -> QueueRow:
    """Shape one proposal, annotated by :func:`one_page`, into a row."""
    return QueueRow(
        id=proposal.pk,
        href=reverse("approvals:proposal", args=[proposal.pk]),
        summary=proposal.summary,
        operation=proposal.operation,
        workflow=proposal.workflow,
        age=spans.span((now - proposal.created_at).total_seconds()),
        warnings=proposal.warning_count,
        votes=proposal.votes,  # type: ignore[attr-defined]
        needed=proposal.needed,
        version=proposal.version,
        mode=proposal.mode,
        mine=not_for_you(proposal, membership.user_id),
        decide_by=proposal.decide_by,
        created_at=proposal.created_at,
    )


def not_for_you(proposal: Proposal, user_id: UUID) -> str:
    """Why this person does not decide a row, as far as the row itself shows it."""
    if user_id in proposal.excluded_users:
        return "Your own"
    return "You voted" if proposal.voted else ""  # type: ignore[attr-defined]


def grouped(rows: list[QueueRow], now: datetime) -> tuple[QueueGroup, ...]:
    """Cut ordered rows where their time runs out: within the hour, within a day, later."""
    stretches: dict[str, list[QueueRow]] = {"Within the hour": [], "Within a day": [], "Later": []}
    for row in rows:
        left = row.decide_by - now
        word = "Within the hour" if left <= SOON else "Within a day" if left <= DAY else "Later"
        stretches[word].append(row)
    return tuple(QueueGroup(word, tuple(found)) for word, found in stretches.items() if found)


def address(query: QueryDict, **changed: str) -> str:
    """The queue's address with these parameters; the place of a page is only kept where it is named."""
    wanted = query.copy()
    wanted.pop("after", None)
    for name, value in changed.items():
        wanted[name] = value
    kept = QueryDict(mutable=True)
    for name, values in wanted.lists():
        kept.setlist(name, [value for value in values if value])
    text = kept.urlencode()
    return reverse("approvals:queue") + (f"?{text}" if text else "")


def next_waiting(proposal: Proposal, membership: Membership, now: datetime) -> UUID | None:
    """The next proposal for this person behind ``proposal`` in the queue, or else from its start."""
    mine = waiting(proposal.tenant_id, now).filter(decidable_by(membership)).exclude(pk=proposal.pk)
    behind = Q(decide_by__gt=proposal.decide_by) | Q(decide_by=proposal.decide_by, pk__gt=proposal.pk)
    ordered = mine.order_by("decide_by", "pk").values_list("pk", flat=True)
    return ordered.filter(behind).first() or ordered.first()
