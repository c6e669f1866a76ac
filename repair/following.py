"""What may follow the effects of a run, and what people proposed after them, for the page of that run."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.urls import reverse

from access.models import Membership
from access.policies import can_role
from common.display import visible
from common.errors import NotFound
from repair.choices.case import REPAIRERS
from repair.choices.declared import Choice
from repair.choices.undoing import COMPENSATE, COMPLETE
from workflows.actions.compensating import RESTING, UNDOING, Following, facts_of, operation_of
from workflows.effects import EffectOf, effects_of, family, followers
from workflows.enums import RunKind
from workflows.following import NoCounterAction
from workflows.models import Run
from workflows.screens.words import step_words
from workflows.selectors import get_run
from workflows.tables import outcome_words

WAYS: Final[tuple[tuple[Following, Choice], ...]] = ((UNDOING, COMPENSATE), (RESTING, COMPLETE))
BY_KIND: Final = {following.kind.value: (following, choice) for following, choice in WAYS}


@dataclass(frozen=True, slots=True)
class Way:
    """One thing that may be proposed after an effect, or why it may not."""

    title: str
    about: str
    href: str
    why_not: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Follower:
    """A run that followed an effect, or whose effect this one follows."""

    title: str
    href: str
    status: str
    outcome: str
    at: datetime


@dataclass(frozen=True, slots=True)
class AfterEffects:
    ways: tuple[Way, ...]
    followers: tuple[Follower, ...]


def after_effects(run_id: UUID, membership: Membership) -> AfterEffects:
    """Ways only for who may take them; what was proposed is everybody's. Nothing for a run that is not here."""
    try:
        run = get_run(membership.tenant_id, run_id)
    except NotFound:
        return AfterEffects((), ())
    ways = tuple(_ways(run)) if can_role(membership, *REPAIRERS) else ()
    return AfterEffects(ways, tuple(_follower(row) for row in _relatives(run)))


def _ways(run: Run) -> list[Way]:
    """For each effect. That an operation declares no counter-action at all is said in packets, and not here."""
    found = []
    for effect in effects_of(run):
        facts = facts_of(effect)
        for following, choice in WAYS:
            refusal = following.why_not(facts)
            if refusal is None or (following is UNDOING and refusal.code != NoCounterAction.code):
                why = (refusal.message, refusal.code) if refusal is not None else ("", "")
                found.append(Way(choice.title, about(effect), href(following, effect), *why))
    return found


def href(following: Following, effect: EffectOf) -> str:
    return reverse("repair:follow", args=[effect.run.pk, following.kind.value, effect.key])


def about(effect: EffectOf) -> str:
    operation = operation_of(effect)
    name = operation.title if operation is not None else effect.command.operation
    second = ", the second of two" if effect.key != effect.command.step.key else ""
    return f"“{name}” on {visible(effect.command.target)}{second}"


def _relatives(run: Run) -> list[Run]:
    """What followed; of what follows itself, the first run and its other followers."""
    if not run.is_follow_up:
        return followers(run)
    first = Run.objects.filter(family(run), tenant_id=run.tenant_id).exclude(kind__in=RunKind.follow_ups)
    return [*first.order_by("created_at", "id"), *(row for row in followers(run) if row.pk != run.pk)]


def _follower(run: Run) -> Follower:
    keys = ", ".join(step_words(step.key) for step in run.steps.all())
    title = (
        f"{RunKind(run.kind).label}: {keys}"
        if run.is_follow_up
        else f"The first run ({RunKind(run.kind).label.lower()})"
    )
    return Follower(
        title, reverse("workflows:run", args=[run.pk]), run.status, outcome_words(run) if run.outcome else "",
        run.created_at,
    )  # fmt: skip
