"""Reads about freezes and open circuits: which there are, what they hold, and what the history proves about them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Count, Q, QuerySet

from approvals.models import Proposal
from audit.models import Event, Head
from audit.selectors import Filters, events
from audit.verify import Verdict, verify
from common.errors import NotFound
from workflows.enums import CommandStatus, HoldReason, HoldStatus
from workflows.models import Command, Definition, Hold

NOT_SENT_YET: Final = (
    CommandStatus.READY,
    CommandStatus.CLAIMED,
    CommandStatus.RETRY_WAIT,
    CommandStatus.HELD,
)
SHOWN: Final = 200
"""Holds that one page lists as being in force; there are never that many."""
RECOMPUTED: Final = 2000
"""Links of the chain that the page of one freeze recomputes at most; the whole chain is checked daily."""


# -- which there are --------------------------------------------------------------------------------------------


def holds_of(tenant_id: UUID) -> QuerySet[Hold]:
    """The tenant's own, and those of the whole installation."""
    return Hold.objects.filter(Q(tenant_id=tenant_id) | Q(tenant__isnull=True))


def get_hold(tenant_id: UUID, hold_id: UUID) -> Hold:
    """Raises NotFound, for another tenant's hold too."""
    hold = holds_of(tenant_id).filter(pk=hold_id).first()
    if hold is None:
        raise NotFound()
    return hold


def live_holds(tenant_id: UUID) -> list[Hold]:
    """What holds now or is being lifted, freezes first, newest first."""
    rows = holds_of(tenant_id).exclude(status=HoldStatus.LIFTED).order_by("-placed_at", "-id")[:SHOWN]
    return sorted(rows, key=lambda hold: hold.reason != HoldReason.FREEZE)


def freezes_in_force(tenant_id: UUID) -> list[Hold]:
    """The freezes that hold something of the tenant now, the widest first; for the banner of every page: one query."""
    rows = holds_of(tenant_id).filter(reason=HoldReason.FREEZE, status__in=HoldStatus.holding_states)
    return sorted(rows.order_by("placed_at", "id")[:SHOWN], key=narrowness)


def narrowness(hold: Hold) -> int:
    """How many parts a scope names: none is the whole installation, one the whole of a tenant."""
    parts = (hold.tenant_id, hold.workflow, hold.workflow_version, hold.operation, hold.target, hold.runs)
    return sum(part not in (None, "") for part in parts)


def freezes_over(tenant_id: UUID, proposal_id: UUID) -> list[Hold]:
    """The freezes that would hold this proposal's action back. One query where nothing is frozen."""
    freezes = freezes_in_force(tenant_id)
    proposal = Proposal.objects.filter(tenant_id=tenant_id, pk=proposal_id).first() if freezes else None
    return [hold for hold in freezes if proposal is not None and _covers(hold, proposal)]


def _covers(hold: Hold, proposal: Proposal) -> bool:
    return (
        hold.operation in ("", proposal.operation)
        and hold.target in ("", proposal.target)
        and hold.workflow in ("", proposal.workflow)
        and hold.workflow_version in (None, proposal.workflow_version)
        and (hold.runs is None or proposal.run_id in hold.runs)
    )


def installed_versions() -> list[tuple[str, int]]:
    """Every version of a workflow that was ever installed: what an older one proposed may still be on its way."""
    rows = Definition.objects.filter(kind="workflow").order_by("name", "-version")
    return list(rows.values_list("name", "version"))


# -- what they hold ---------------------------------------------------------------------------------------------


def commands_within(hold: Hold, tenant_id: UUID) -> QuerySet[Command]:
    """The tenant's commands within the scope, whatever became of the hold: the rule of `workflows.scope.matches`."""
    wanted = {
        "operation": hold.operation, "provider": hold.provider, "target": hold.target,
        "proposal__workflow": hold.workflow, "proposal__workflow_version": hold.workflow_version,
        "run_id__in": hold.runs,
    }  # fmt: skip
    named = {name: value for name, value in wanted.items() if value not in ("", None)}
    return Command.objects.filter(tenant_id=tenant_id, **named)


def on_their_way(hold: Hold, tenant_id: UUID) -> tuple[int, int]:
    """Within the scope: how many are approved and not sent, and how many are sent and not settled."""
    live = commands_within(hold, tenant_id).filter(status__in=CommandStatus.live_states)
    counts = live.aggregate(
        waiting=Count("pk", filter=Q(status__in=NOT_SENT_YET)),
        in_flight=Count("pk", filter=Q(status__in=CommandStatus.in_flight_states)),
    )
    return counts["waiting"], counts["in_flight"]


def held_by(tenant_id: UUID, hold: Hold) -> QuerySet[Command]:
    return Command.objects.filter(tenant_id=tenant_id, hold=hold, status=CommandStatus.HELD)


def held_counts(tenant_id: UUID, holds: Collection[Hold]) -> Mapping[UUID, int]:
    """How many commands of the tenant each of these holds back now."""
    held = Command.objects.filter(tenant_id=tenant_id, hold__in=holds, status=CommandStatus.HELD)
    return dict(held.order_by().values_list("hold").annotate(Count("pk")))


def target_is_known(tenant_id: UUID, target: str) -> bool:
    return Proposal.objects.filter(tenant_id=tenant_id, target=target).exists()


_FATES: Final = """
    WITH held AS (
        SELECT subject_id, max(at) AS at FROM audit_event
        WHERE tenant_id = %(tenant)s AND at >= %(since)s AND kind = 'command.held' AND body->>'hold' = %(hold)s
        GROUP BY subject_id
    )
    SELECT coalesce(next.kind, 'command.held'), coalesce(c.void_reason, ''), count(*)
    FROM held LEFT JOIN LATERAL (
        SELECT e.kind FROM audit_event e
        WHERE e.tenant_id = %(tenant)s AND e.subject_id = held.subject_id AND e.at > held.at ORDER BY e.at, e.id LIMIT 1
    ) next ON true LEFT JOIN workflows_command c ON c.id = held.subject_id AND next.kind = 'command.void'
    GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
"""


def fates(tenant_id: UUID, hold: Hold) -> list[tuple[str, str, int]]:
    """What became of the commands that it held, by the history: (kind of the event after, reason of a void, count).

    *command.held* stands for those that it holds still, or that something else holds since.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FATES, {"tenant": tenant_id, "since": hold.placed_at, "hold": str(hold.pk)})
        return [(kind, reason, count) for kind, reason, count in cursor.fetchall()]


# -- what the history proves ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentProof:
    """What the history says was newly sent within the scope from the drain on, and how far that is chained."""

    since: datetime
    until: datetime
    is_over: bool
    """Whether ``until`` is the lift; otherwise it is the present."""
    newly_sent: int
    first_seq: int | None
    """The place of the *drained* event in this tenant's chain; None while unsealed, and for the installation's."""
    last_seq: int | None
    """The place of the *lifting* event, likewise."""
    sealed: int
    links: int
    """How many of the newest links were recomputed just now."""
    verdict: Verdict

    @property
    def holds(self) -> bool:
        return self.newly_sent == 0 and self.verdict.holds


def sent_proof(tenant_id: UUID, hold: Hold, now: datetime) -> SentProof | None:
    """Count *sent* in the history between drain and lift. None before the drain, and for circuits, which try calls."""
    if hold.drained_at is None or hold.reason != HoldReason.FREEZE:
        return None
    until = hold.lifted_at or now
    sent = Event.objects.filter(
        tenant_id=tenant_id, kind="command.sent", at__gte=hold.drained_at, at__lt=until,
        subject_id__in=commands_within(hold, tenant_id).values("pk"),
    )  # fmt: skip
    places = _places(tenant_id, hold)
    sealed = Head.objects.filter(tenant_id=tenant_id).values_list("seq", flat=True).first() or 0
    links = min(
        RECOMPUTED, sealed, sealed - places["hold.drained"] + 1 if "hold.drained" in places else RECOMPUTED
    )
    return SentProof(
        since=hold.drained_at, until=until, is_over=hold.lifted_at is not None, newly_sent=sent.count(),
        first_seq=places.get("hold.drained"), last_seq=places.get("hold.lifting"), sealed=sealed, links=links,
        verdict=verify(tenant_id, last=links),
    )  # fmt: skip


def _places(tenant_id: UUID, hold: Hold) -> dict[str, int]:
    """The places of the hold's own events in the chain, by kind; of the last one where a kind came twice."""
    found = events(tenant_id, Filters(subject_type="hold", subject_id=hold.pk)).order_by("at", "id")
    return {event.kind: event.seq for event in found if event.seq is not None}  # type: ignore[attr-defined]
