"""What is kept of runs, and what would go if they were erased: for the page of those who answer for the data."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q

from approvals.models import Evidence, Proposal
from audit.finding import as_uuid
from common.display import visible
from common.models import ContentKey
from workflows import legal_holds
from workflows.actions.erasing import family, follows, is_in_use
from workflows.models import Delivery, Document, LegalHold, Run

MOST: Final = 50
"""Runs that one look finds; one erasure takes as many."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One run: what it holds, and whether it may go. ``places``: where a word was found in it."""

    run: Run
    state: str
    """``erased``, ``held``, ``in_use``, or empty: it may be erased."""
    counts: Mapping[tuple[str, str], int]
    follows: int
    own_hold: bool
    targets: Collection[str]
    """What was proposed about: by that people know a run."""
    places: Collection[str] = field(default=())

    @property
    def says(self) -> str:
        """What would go, in words."""
        words = [f"{count} {name[count != 1]}" for name, count in self.counts.items()]
        more = f"; with {self.follows} runs that follow it" if self.follows else ""
        return (", ".join(words) or "nothing but its own words") + more


def runs_about(tenant_id: UUID, words: str) -> list[Run]:
    """The runs that an id, a target, or a record or event of a source means, as it stands there; newest first."""
    words = words.strip()
    if not words:
        return []
    ident = as_uuid(words)
    targets = Q(target__iexact=words) | Q(target__iendswith=f":{words}")
    named = Proposal.objects.filter(targets, tenant_id=tenant_id).values("run_id")
    asked = Q(source_record=words) | Q(source_event_id=words) | Q(pk__in=named)
    if ident is not None:
        asked |= Q(pk=ident) | Q(original_id=ident)
    return list(Run.objects.filter(asked, tenant_id=tenant_id).order_by("-id")[: MOST + 1])


def runs_named(tenant_id: UUID, ids: Collection[UUID]) -> list[Run]:
    return list(Run.objects.filter(tenant_id=tenant_id, pk__in=ids).order_by("-id")[: MOST + 1])


def kept(runs: Collection[Run], places: Mapping[UUID, Collection[str]]) -> list[Kept]:
    """One row for each, with a few reads."""
    by_tenant = {run.tenant_id for run in runs}
    if not by_tenant:
        return []
    (tenant_id,) = by_tenant
    ids = [run.pk for run in runs]
    keys = {row.run_id: row for row in ContentKey.objects.filter(tenant_id=tenant_id, run_id__in=ids)}
    counts, targets = _counts(tenant_id, ids), _targets(tenant_id, ids)
    with transaction.atomic():  # the hooks that say what is in use want one
        return [
            _row(run, keys.get(run.pk), counts[run.pk], targets[run.pk], places.get(run.pk, ()))
            for run in runs
        ]


def _row(
    run: Run, key: ContentKey | None, counts: Mapping[tuple[str, str], int], targets: Collection[str],
    places: Collection[str],
) -> Kept:  # fmt: skip
    after = follows(run.tenant_id, run.pk)
    if key is not None and key.erased_at is not None:
        state = "erased"
    elif legal_holds.held_since(run.tenant_id, family(run.tenant_id, run)) is not None:
        state = "held"
    else:
        state = "in_use" if is_in_use(run) else ""
    own = key is not None and key.held_at is not None
    return Kept(run, state, counts, len(after), own, targets, tuple(sorted(places)))


def _counts(tenant_id: UUID, ids: Collection[UUID]) -> dict[UUID, Counter[tuple[str, str]]]:
    found: dict[UUID, Counter[tuple[str, str]]] = {pk: Counter() for pk in ids}
    pieces = Evidence.objects.filter(proposal__run_id__in=ids, content__isnull=False)
    bodies = Delivery.objects.filter(run_id__in=ids, body__isnull=False)
    kinds: tuple[tuple[tuple[str, str], Any, str], ...] = (
        (("document", "documents"), Document.objects.filter(run_id__in=ids), "run_id"),
        (
            ("version of a proposal", "versions of a proposal"),
            Proposal.objects.filter(run_id__in=ids),
            "run_id",
        ),
        (("piece of evidence", "pieces of evidence"), pieces, "proposal__run_id"),
        (("webhook", "webhooks"), bodies, "run_id"),
    )
    for name, rows, run in kinds:
        counted = rows.filter(tenant_id=tenant_id).order_by().values_list(run).annotate(n=Count("pk"))
        for run_id, count in counted:
            found[run_id][name] = count
    return found


def _targets(tenant_id: UUID, ids: Collection[UUID]) -> dict[UUID, list[str]]:
    found: dict[UUID, list[str]] = {pk: [] for pk in ids}
    rows = Proposal.objects.filter(tenant_id=tenant_id, run_id__in=ids).order_by("run_id", "target")
    for run_id, target in rows.values_list("run_id", "target").distinct():
        found[run_id].append(visible(target))
    return found


def holds_in_force(tenant_id: UUID) -> list[LegalHold]:
    return list(
        LegalHold.objects.filter(tenant_id=tenant_id, lifted_at=None).order_by("-placed_at", "-id")[:MOST]
    )


def runs_held(tenant_id: UUID) -> list[ContentKey]:
    """Those that have a hold of their own, newest first."""
    held = ContentKey.objects.filter(tenant_id=tenant_id, held_at__isnull=False)
    return list(held.order_by("-held_at", "-id")[:MOST])
