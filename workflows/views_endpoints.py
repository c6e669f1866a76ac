"""Endpoints for signed webhooks: pages for admins beside those of people and automations, read by auditors."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from access.forms_agents import Rotate
from access.forms_people import Why
from access.screens.asking import (
    Asked,
    Once,
    actor_of,
    carry_out,
    do_and_say,
    is_sure,
    made_from,
    may_change,
    or_404,
    proven,
    reader_of,
    reads,
    show_once,
    writes,
)
from access.screens.people import by_word
from common.clock import db_clock
from workflows.actions.endpoints import create_endpoint, deactivate_endpoint, rotate_secret
from workflows.forms_endpoints import NewEndpoint
from workflows.models import Delivery, Endpoint
from workflows.tables_endpoints import EndpointTable

TAB = "endpoints"


@reads
def endpoints(request: HttpRequest) -> HttpResponse:
    """All of them, by name, with what waits or is quarantined."""
    waiting = Count("deliveries", filter=Q(deliveries__outcome=None))
    quarantined = Count("deliveries", filter=Q(deliveries__outcome="quarantined"))
    mine = Endpoint.objects.filter(tenant_id=reader_of(request).tenant_id).select_related("agent")
    counted = mine.annotate(waiting=waiting, quarantined=quarantined)
    listed = by_word(counted, "name", request.GET, reverse("endpoints:endpoints"))
    context = {"listed": listed, "table": EndpointTable(listed.rows), "may_change": may_change(request)}
    return render(request, "workflows/endpoints/list.html", context)


@writes
@proven("endpoints:new")
def new(request: HttpRequest) -> HttpResponse:
    """A new endpoint; its secret is in the answer, and nowhere else."""
    form = NewEndpoint(request.POST or None, tenant_id=reader_of(request).tenant_id)
    made, status = made_from(request, form, lambda: _create(request, form))
    if made is not None:
        return _show(request, *made)
    return render(request, "workflows/endpoints/new.html", {"form": form}, status=status)


def _create(request: HttpRequest, form: NewEndpoint) -> tuple[str, Endpoint]:
    said = form.cleaned_data
    return create_endpoint(
        agent=said["agent"], name=said["name"], workflow=said["workflow"], system=said["system"],
        names=form.names(), input_member=said["input_member"], by=actor_of(request), clock=db_clock,
    )  # fmt: skip


@reads
def endpoint(request: HttpRequest, endpoint_id: UUID) -> HttpResponse:
    """One endpoint: its address, how it is signed, and what was last quarantined."""
    found = _endpoint(request, endpoint_id)
    stopped = Delivery.objects.filter(tenant_id=found.tenant_id, endpoint=found, outcome="quarantined")
    context: dict[str, Any] = {
        "endpoint": found, "address": _address(found), "may_change": may_change(request),
        "stopped": list(stopped.defer("body").order_by("-received_at")[:20]),
        "history": f"{reverse('audit:history')}?subject={found.pk}",
    }  # fmt: skip
    return render(request, "workflows/endpoints/endpoint.html", context)


@writes
@proven("endpoints:endpoint")
def rotate(request: HttpRequest, endpoint_id: UUID) -> HttpResponse:
    """A new secret; the old one counts for a while longer."""
    found = _endpoint(request, endpoint_id)
    form = Rotate(request.POST if is_sure(request) else None)
    form.fields["hours"].label = "The old secret ends"
    asked = Asked(
        title=found.name, sentence=f"A new secret for {found.name}?",
        points=["It is shown once. Until the old one ends, the sender may sign with either."],
        button="Make the new secret", back=_page(found), form=form, tab=TAB, harmless=True,
    )  # fmt: skip
    return carry_out(
        request, asked,
        lambda: rotate_secret(
            endpoint=found, overlap=form.overlap, by=actor_of(request), clock=db_clock
        ),
        lambda secret: _show(request, secret, found),
    )  # fmt: skip


@writes
@proven("endpoints:endpoint")
def deactivate(request: HttpRequest, endpoint_id: UUID) -> HttpResponse:
    """Take nothing more there, for good."""
    found = _endpoint(request, endpoint_id)
    form = Why(request.POST if is_sure(request) else None)
    asked = Asked(
        title=found.name, sentence=f"Take nothing more at {found.name}?",
        points=["Its address answers like one that never was, and its secrets are erased.", "It never comes back."],
        button="Deactivate", back=_page(found), form=form, tab=TAB,
    )  # fmt: skip
    return do_and_say(
        request, asked, "Deactivated.",
        lambda why: deactivate_endpoint(endpoint=found, by=actor_of(request), clock=db_clock, reason=why),
    )  # fmt: skip


def _endpoint(request: HttpRequest, endpoint_id: UUID) -> Endpoint:
    mine = Endpoint.objects.filter(tenant_id=reader_of(request).tenant_id, pk=endpoint_id)
    found: Endpoint = or_404(mine.select_related("agent").first())
    return found


def _address(found: Endpoint) -> str:
    return f"{settings.PLACET_BASE_URL}/api/v1/hooks/{found.address}"


def _page(found: Endpoint) -> str:
    return reverse("endpoints:endpoint", args=[found.pk])


def _show(request: HttpRequest, secret: str, found: Endpoint) -> HttpResponse:
    once = Once(
        title=f"The secret of {found.name}", label="Secret", text=secret,
        says=(f"The sender signs with it, and delivers to {_address(found)}.",),
        back=_page(found), back_word="To the endpoint", tab=TAB,
    )  # fmt: skip
    return show_once(request, once)
