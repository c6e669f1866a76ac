"""The queue of waiting proposals: one set of conditions decides what it holds, its counts and its order."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Case, CharField, Count, F, Min, Q, QuerySet, Subquery, Value, When
from django.db.models.lookups import GreaterThan
from django.http import QueryDict
from django.urls import reverse

from access.models import Membership
from access.selectors import Standing
from approvals.asked import asked_by, standing_of
from approvals.enums import ProposalStatus
from approvals.models import PENDING, Decision, Proposal
from approvals.screens.alike import cursor_behind, kinds_page, rows_of_kinds
from approvals.screens.claims import holders
from approvals.screens.orders import ALIKE, ORDERS, URGENCY
from approvals.screens.queue_rows import Looker, QueueGroup, QueueRow, grouped, rows_of
from common import spans

PAGE_SIZE: Final = 25
UNSHOWN: Final = ("contract", "view", "volatile", "policy", "consequence", "reason", "affected", "end_words")
"""What no row of the list shows, and most of a proposal's bytes."""
SOON: Final = timedelta(hours=1)
VIEWS: Final = {
    "": "All", "mine": "For you", "groups": "Your groups", "unclaimed": "Unclaimed", "soon": "Expiring",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tab:
    """One view of the queue, with how many proposals it holds."""

    word: str
    href: str
    count: int
    current: bool


@dataclass(frozen=True, slots=True)
class Sort:
    """One order of the queue, to be chosen."""

    name: str
    word: str
    current: bool


@dataclass(frozen=True, slots=True)
class Facets:
    """What was counted of the queue, in one pass: each view's number, what else there is to choose, and the oldest."""

    counts: Mapping[str, int]
    in_all: int
    soon: int
    oldest: datetime | None
    workflows: frozenset[str]
    operations: frozenset[str]
    alike: Mapping[str, int]
    """Of the shapes that were asked for, how many proposals of the list have each."""


@dataclass(frozen=True, slots=True)
class QueueScreen:
    """The whole list: rows in groups, counts, and the addresses of its other pages."""

    groups: tuple[QueueGroup, ...]
    tabs: tuple[Tab, ...]
    sorts: tuple[Sort, ...]
    view: str
    by_kind: bool
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
    alone: str
    together: str
    """Where each proposal is a row, and where what is alike is one; empty where that is so already."""

    start: str
    arrivals: str
    kinds: str
    """The address of the list without a kind, to which ``alike=`` is added."""
    everything: str = field(default_factory=lambda: reverse("approvals:queue"))

    @property
    def opens(self) -> UUID | None:
        """The proposal that the pane shows first."""
        return next((row.id for row in self.rows if not row.many), None)

    @property
    def rows(self) -> tuple[QueueRow, ...]:
        return tuple(row for group in self.groups for row in group.rows)


def waiting(tenant_id: UUID, now: datetime) -> QuerySet[Proposal]:
    """What waits for a decision at ``now``: pending, and still in time, whether or not the sweep has run."""
    return Proposal.objects.filter(_in_time(now), tenant_id=tenant_id, status=ProposalStatus.PENDING)


def counted(tenant_id: UUID, now: datetime) -> QuerySet[Proposal]:
    """The same as `waiting`, for reads of all of it: by the index that holds what they ask for."""
    return Proposal.objects.filter(PENDING, _in_time(now), tenant_id=tenant_id)


def _in_time(now: datetime) -> GreaterThan:
    """The planner takes *pending* and *in time* for two chances, and expects one row where there are hundreds: it would
    sort all of them for each page. It has no opinion about a sum.
    """
    return GreaterThan(F("decide_by") + Value(timedelta(0)), Value(now))


def waiting_count(tenant_id: UUID, now: datetime) -> int:
    """How many proposals wait, for the navigation: the same number as the list's *All*."""
    return waiting(tenant_id, now).count()


def decidable_by(membership: Membership, standing: Standing | None = None) -> Q:
    """The proposals that this person may still decide, as one condition: `check_can_decide` for the database.

    ``standing``: what was read of them already.
    """
    standing = standing or standing_of(membership)
    if standing is None:
        return Q(pk__in=[])
    others = Q() if standing.break_glass else ~Q(excluded_users__overlap=sorted(standing.accounts))
    return asked_by(standing) & others & _but(voted_on(standing, membership.tenant_id))


def _of_groups(groups: Collection[UUID]) -> Q:
    """Asked of one of these, from the beginning or since it was widened to them."""
    return Q(group_id__in=groups) | Q(also_groups__overlap=sorted(groups)) if groups else Q(pk__in=[])


def _but(ids: Collection[UUID]) -> Q:
    return ~Q(pk__in=list(ids)) if ids else Q()


def voted_on(standing: Standing, tenant_id: UUID) -> list[UUID]:
    """The waiting proposals on which this person has a standing vote, under any of their accounts.

    No vote on what waits is older than the oldest that waits: so a reviewer may have any number of earlier ones.
    """
    oldest = (
        Proposal.objects.filter(PENDING, tenant_id=tenant_id)
        .order_by("created_at", "id")
        .values("created_at")
    )
    votes = Decision.objects.filter(
        user_id__in=standing.accounts, replaced_at__isnull=True, at__gte=Subquery(oldest[:1]),
        proposal__status=ProposalStatus.PENDING,
    )  # fmt: skip
    return list(votes.order_by().values_list("proposal_id", flat=True))


def conditions_of(membership: Membership, held: Collection[UUID], now: datetime) -> dict[str, Q]:
    """What each view holds. ``held``: what somebody reads at this moment."""
    standing = standing_of(membership)
    return {
        "": Q(),
        "mine": decidable_by(membership, standing),
        "groups": _of_groups(standing.group_ids if standing else ()),
        "unclaimed": _but(held),
        "soon": Q(decide_by__lte=now + SOON),
    }


def queue_screen(*, filters: Any, membership: Membership, query: QueryDict, now: datetime) -> QueueScreen:
    """Shape the waiting proposals that ``filters`` (a `QueueFilter` over `waiting`) let through.

    ``query`` holds the view, the filters, the order and the place to go on from; what cannot be understood is
    ignored, which shows the first page. Counts, groups and rows come from the same conditions.
    """
    view = query.get("view", "") if query.get("view", "") in VIEWS else ""
    order = ORDERS.get(query.get("sort", ""), URGENCY)
    held = holders(membership.tenant_id, membership.user_id, now)
    conditions, looker = conditions_of(membership, held.keys(), now), Looker(membership, held, now)
    every = counted(membership.tenant_id, now)
    listed = filters.qs.filter(conditions[view]).defer(*UNSHOWN)
    kinds, after = query.get("by", "") == "alike" and not filters.asked("alike"), query.get("after", "")
    page, more = ([], False) if kinds else order.page(listed, after=after, size=PAGE_SIZE)
    facets = facets_of(filters, every, conditions, view, {proposal.shape for proposal in page} - {""})
    filters.offer(facets.workflows, facets.operations)
    if kinds:
        rows, behind = _kinds(listed, filters.filter_queryset(every).filter(conditions[view]), after, looker)
    else:
        rows, behind = rows_of(page, facets.alike, looker), order.cursor_of(page[-1]) if more else ""
    in_all = waiting_count(membership.tenant_id, now) if filters.is_searched else facets.in_all
    return QueueScreen(
        groups=grouped(rows, ALIKE if kinds else order, now),
        tabs=tuple(Tab(word, address(query, view=key), facets.counts[key], key == view) for key, word in VIEWS.items()),
        sorts=tuple(Sort(one.name, one.word, one is order) for one in ORDERS.values()),
        view=view, by_kind=kinds, total=facets.counts[view], all=in_all, soon=facets.soon,
        oldest=spans.span((now - facets.oldest).total_seconds()) if facets.oldest else "",
        says=_says(rows, facets.counts[view], "alike" if kinds else order.name),
        here=address(query, view=view, after=query.get("after", "")),
        first=address(query, view=view) if query.get("after") else "",
        more=address(query, view=view, after=behind) if behind else "",
        alone=address(query, view=view, by="", alike="") if kinds or filters.asked("alike") else "",
        together=address(query, view=view, by="alike") if not kinds and not filters.asked("alike") else "",
        filtered=filters.is_active, unfiltered=address(QueryDict(), view=view), beside=f"{in_all} wait in all.",
        start=address(query, view=view),
        arrivals=reverse("approvals:arrivals") + "?" + _parameters(query, view=view, since=now.isoformat()),
        kinds=_to_be_continued(address(query, view=view, by="", alike="")),
    )  # fmt: skip


def _kinds(listed: Any, whole: Any, after: str, looker: Looker) -> tuple[list[QueueRow], str]:
    """A page of kinds, and the place behind its last one; empty where none follow."""
    page, more = kinds_page(whole, after, PAGE_SIZE)
    return rows_of_kinds(page, listed, looker), cursor_behind(page[-1]) if more else ""


def _to_be_continued(path: str) -> str:
    return path + ("&" if "?" in path else "?")


def _says(rows: Sequence[QueueRow], total: int, order: str) -> str:
    shown = sum(row.alike if row.many else 1 for row in rows)
    kinds = f" as {len(rows)} kind{'' if len(rows) == 1 else 's'}" if order == "alike" else ""
    return f"{shown} of {total} shown{kinds}, {SAYS[order]}"


SAYS: Final = {
    "urgency": "the most urgent first", "time": "the least time first", "risk": "the highest risk first",
    "amount": "the largest amount first", "age": "the oldest first", "alike": "the least time first",
}  # fmt: skip


def _count(view: str) -> str:
    return f"count_{view or 'all'}"


def facets_of(
    filters: Any, every: QuerySet[Proposal], conditions: Mapping[str, Q], view: str, shapes: Collection[str] = ()
) -> Facets:  # fmt: skip
    """Count everything that the page says in one pass over what waits.

    The pass is made by workflow, operation and risk, which are few: so the same pass says what there is to choose. And
    by those of the ``shapes``, which are as few as the rows of a page, to say of each row how many are alike.
    """
    counted = {
        f"count_{name or 'all'}": Count("pk", filter=condition or None)
        for name, condition in conditions.items()
    }
    found = list(
        filters.searched(every).order_by().values("workflow", "operation", "risk", kind=_one_of(shapes)).annotate(
            **counted, soon_here=Count("pk", filter=(conditions[view] & conditions["soon"]) or None),
            oldest=Min("created_at", filter=conditions[view] or None),
        )
    )  # fmt: skip
    fitting = [facet for facet in found if filters.fits(facet)]
    alike: Counter[str] = Counter()
    for facet in fitting:
        alike[facet["kind"]] += facet[_count(view)]
    return Facets(
        counts={name: sum(facet[_count(name)] for facet in fitting) for name in conditions},
        in_all=sum(facet["count_all"] for facet in found),
        soon=sum(facet["soon_here"] for facet in fitting),
        oldest=min((facet["oldest"] for facet in fitting if facet["oldest"]), default=None),
        workflows=frozenset(facet["workflow"] for facet in found),
        operations=frozenset(facet["operation"] for facet in found),
        alike=alike,
    )


def _one_of(shapes: Collection[str]) -> Case | Value:
    """A row's shape where it is one of these, else nothing."""
    nothing = Value("", output_field=CharField())
    return Case(When(shape__in=sorted(shapes), then=F("shape")), default=nothing) if shapes else nothing


def arrived(
    *, filters: Any, membership: Membership, query: QueryDict, since: datetime, now: datetime
) -> tuple[int, str]:
    """How many of the list that ``query`` asks for were made after ``since``, and the address of its beginning."""
    view = query.get("view", "") if query.get("view", "") in VIEWS else ""
    held = holders(membership.tenant_id, membership.user_id, now)
    listed = filters.qs.filter(conditions_of(membership, held.keys(), now)[view])
    return listed.filter(created_at__gt=since).count(), address(query, since="")


def address(query: QueryDict, **changed: str) -> str:
    """The queue's address with these parameters; the place of a page is only kept where it is named."""
    text = _parameters(query, **changed)
    return reverse("approvals:queue") + (f"?{text}" if text else "")


def _parameters(query: QueryDict, **changed: str) -> str:
    wanted = query.copy()
    wanted.pop("after", None)
    for name, value in changed.items():
        wanted[name] = value
    kept = QueryDict(mutable=True)
    for name, values in wanted.lists():
        kept.setlist(name, [value for value in values if value])
    return kept.urlencode()


def next_waiting(proposal: Proposal, membership: Membership, now: datetime) -> UUID | None:
    """The next proposal for this person behind ``proposal`` in the queue, or else from its start."""
    mine = waiting(proposal.tenant_id, now).filter(decidable_by(membership)).exclude(pk=proposal.pk)
    ordered = URGENCY.sorted(mine).values_list("pk", flat=True)
    here = URGENCY.keyed(Proposal.objects.filter(pk=proposal.pk)).first()
    behind = URGENCY.behind(URGENCY.place_of(here)) if here is not None else Q()
    found: UUID | None = ordered.filter(behind).first() or ordered.first()
    return found
