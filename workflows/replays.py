"""Replays, to read: how one was asked for, whom it shares keys and counts with, and what speaks against acting anew."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals.enums import ProposalStatus
from approvals.models import Proposal, Rejection
from workflows.classify import Meaning
from workflows.enums import CommandStatus, Effect, RunKind, SettledBy, Testimony
from workflows.enums_replays import Effects
from workflows.models import Attempt, Attestation, Command, Run, SourceEvent
from workflows.models.replays import Replay

HANDLED_OUTSIDE: Final = "handled_outside"
"""The corrected outcome of a run that somebody saw to in another way."""
DRY_RUN: Final = "dry_run"
NOT_REPEATED: Final = "effect_not_repeated"
"""Outcomes of replays: nothing was to be done, or what was done before is not done again."""


def replay_of(run: Run) -> Replay | None:
    """How this run was asked for, if it is a replay."""
    return Replay.objects.filter(tenant_id=run.tenant_id, run=run).first() if is_replay(run) else None


def is_replay(run: Run) -> bool:
    return run.kind == RunKind.REPLAY


def is_dry(run: Run) -> bool:
    """Whether nothing may ever come of its steps: also of a replay that nobody asked for in the ordinary way."""
    if not is_replay(run):
        return False
    found = replay_of(run)
    return found is None or found.effects == Effects.DRY


def family_of(run: Run) -> QuerySet[Run]:
    """The original and its replays: they share keys and counts."""
    mine = Q(pk=run.identity) | Q(original_id=run.identity)
    return Run.objects.filter(mine, tenant_id=run.tenant_id, kind__in=(RunKind.ORIGINAL, RunKind.REPLAY))


# -- what speaks against acting anew ----------------------------------------------------------------------------

WHY: Final = {
    "happened": "It has happened: what was done is not done again.",
    "outside": "Somebody saw to it in another way, so it is not done again.",
    "late": "A late answer says that it happened after all, so it is not done again.",
    "in_doubt": "Nobody knows yet whether it happened. Settle that first.",
    "under_way": "It is on its way: approved, or being done.",
    "asked": "People are asked about it already. Decide there, or withdraw it first.",
    "newer_event": "A newer event of the same record has come since: what it was about is no longer what is.",
    "rejected": "A person has said no to exactly this. It takes something new to ask again.",
}


@dataclass(frozen=True, slots=True)
class InTheWay:
    """Why a step of a replay is not done anew, and what says so."""

    why: str
    command: Command | None = None
    proposal: Proposal | None = None

    @property
    def words(self) -> str:
        return WHY[self.why]


def orders_about(run: Run, step: str, business_key: str = "") -> QuerySet[Command]:
    """Every order that this step ever had, in the original and its replays, and every one for the very same thing."""
    same = Q(run__in=family_of(run), step__key=step)
    if business_key:
        same |= Q(business_key=business_key)
    return Command.objects.filter(same, tenant_id=run.tenant_id)


def questions_about(run: Run, step: str, business_key: str = "") -> QuerySet[Proposal]:
    """The same of what people were asked."""
    same = Q(run_id__in=family_of(run).values("pk"), step=step)
    if business_key:
        same |= Q(business_key=business_key, status__in=ProposalStatus.live_states)
    return Proposal.objects.filter(same, tenant_id=run.tenant_id)


def in_the_way(
    run: Run, step: str, *, business_key: str = "", material: str = "", besides: UUID | None = None
) -> InTheWay | None:
    """What speaks against doing this step of a replay; None where its effect surely never happened.

    True until commit only for who has locked what it reads (`workflows.actions.replaying.lock_effects`).
    ``besides``: the proposal that it is asked for, or that it takes the place of.
    """
    confirmed = Attempt.objects.filter(command=OuterRef("pk"), late_evidence__meaning=Meaning.CONFIRMED.value)
    denied = Attestation.objects.filter(
        command=OuterRef("pk"), says=Testimony.DID_NOT_HAPPEN, replaced_at__isnull=True
    )
    orders = (
        orders_about(run, step, business_key)
        .annotate(late=Exists(confirmed), denied=Exists(denied))
        .exclude(proposal__in=_of(besides))
    )
    found = [(why, order) for order in orders.order_by("created_at", "pk") if (why := _why(order))]
    for reason in ("happened", "outside", "late", "in_doubt", "under_way"):
        order = next((order for why, order in found if why == reason), None)
        if order is not None:
            return InTheWay(reason, command=order)
    if family_of(run).filter(corrected_outcome=HANDLED_OUTSIDE).exists():
        return InTheWay("outside")
    return _asked(run, step, business_key, besides) or _said_no(run, step, material) or _newer(run)


def _of(proposal: UUID | None) -> list[UUID]:
    return [proposal] if proposal is not None else []


def _why(order: Command) -> str:
    if order.effect in (Effect.HAPPENED, Effect.PARTIAL):
        return "happened"
    by_a_person = order.status == CommandStatus.CANCELLED and order.settled_by == SettledBy.PERSON
    if by_a_person and not order.denied:  # type: ignore[attr-defined]
        return "outside"
    if order.late:  # type: ignore[attr-defined]
        return "late"
    if order.effect == Effect.UNKNOWN:
        return "in_doubt"
    return "under_way" if order.status in CommandStatus.live_states else ""


def _asked(run: Run, step: str, business_key: str, besides: UUID | None) -> InTheWay | None:
    live = questions_about(run, step, business_key).filter(status__in=ProposalStatus.live_states)
    rows = (
        live.exclude(pk__in=_of(besides))
        .only("status", "mode", "run_id", "tenant_id")
        .order_by("created_at", "pk")
    )
    found = next((row for row in rows if row.is_live), None)
    return InTheWay("asked", proposal=found) if found is not None else None


def _said_no(run: Run, step: str, material: str) -> InTheWay | None:
    """A no to exactly this holds for its replays, however long it is remembered for others, until somebody lifts it."""
    if not material:
        return None
    rejected = questions_about(run, step).filter(status=ProposalStatus.REJECTED, material_digest=material)
    lifted = Rejection.objects.filter(proposal=OuterRef("pk"), lifted_at__isnull=False)
    found = rejected.exclude(Exists(lifted)).order_by("-created_at").first()
    return InTheWay("rejected", proposal=found) if found is not None else None


def _newer(run: Run) -> InTheWay | None:
    original = SourceEvent.objects.filter(
        tenant_id=run.tenant_id, run_id=run.identity, sequence__isnull=False
    )
    event = original.exclude(record="").order_by("-sequence").first()
    if event is None:
        return None
    newer = SourceEvent.objects.filter(
        tenant_id=run.tenant_id, workflow=event.workflow, system=event.system, record=event.record,
        sequence__gt=event.sequence,
    )  # fmt: skip
    return InTheWay("newer_event") if newer.exists() else None
