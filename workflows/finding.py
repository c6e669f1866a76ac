"""Finding runs by what a person types: an id or its beginning, an order or another target, a source event."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.urls import reverse

from approvals.models import Proposal
from audit.finding import as_uuid, hex_digits, id_range
from audit.through import Named
from workflows.models import Endpoint, Run

MOST: int = 200


def run_condition(tenant_id: UUID, text: str) -> Q:
    """The runs that ``text`` speaks of. Always a condition inside one tenant's runs."""
    words = " ".join(text.split())[:200]
    whole = as_uuid(words)
    if whole is not None:
        named = _of_proposals(tenant_id, Q(pk=whole))
        return Q(pk=whole) | Q(original_id=whole) | Q(commands__pk=whole) | Q(source_event_id=words) | named
    found = Q(source_event_id__istartswith=words) | Q(source_record__iexact=words)
    found |= _of_proposals(tenant_id, Q(target__iexact=words) | Q(target__iendswith=f":{words}"))
    digits = hex_digits(words)
    if digits:
        found |= _by_digits(tenant_id, digits)
    return found


def runs_named(tenant_id: UUID, text: str) -> set[UUID]:
    """The ids of the runs that a word belongs to, at most `MOST`: the history searches through it."""
    runs = Run.objects.filter(run_condition(tenant_id, text), tenant_id=tenant_id)
    return set(runs.order_by("-created_at").values_list("pk", flat=True)[:MOST])


def runs_doing(tenant_id: UUID, operation: str, target: str) -> Any:
    """The ids of the runs in which this operation was proposed, or something on this target: both exactly as named."""
    asked = {"operation": operation, "target": target}
    wanted = {name: value for name, value in asked.items() if value}
    return Proposal.objects.filter(tenant_id=tenant_id, **wanted).values("run_id")


def endpoint_names(tenant_id: UUID, idents: Collection[UUID]) -> Mapping[UUID, Named]:
    """For the history: what came by a webhook names the endpoint at which it came."""
    rows = Endpoint.objects.filter(tenant_id=tenant_id, pk__in=idents).select_related("agent")
    return {
        row.pk: Named(row.name, str(row.agent), reverse("endpoints:endpoint", args=[row.pk])) for row in rows
    }


def endpoints_named(tenant_id: UUID, text: str) -> list[UUID]:
    """The endpoint with this name, or with this id."""
    ident = as_uuid(text)
    named = Q(pk=ident) if ident else Q(name=text)
    return list(Endpoint.objects.filter(named, tenant_id=tenant_id).values_list("pk", flat=True))


def _of_proposals(tenant_id: UUID, condition: Q) -> Q:
    return Q(pk__in=Proposal.objects.filter(condition, tenant_id=tenant_id).values("run_id"))


def _by_digits(tenant_id: UUID, digits: str) -> Q:
    found = _of_proposals(tenant_id, Q(digest__startswith=digits))
    return found | Q(pk__range=id_range(digits)) if len(digits) <= 32 else found
