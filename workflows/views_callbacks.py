"""Where runs call back: pages for admins beside the endpoints for webhooks, read by auditors."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
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
from workflows.actions.callbacks import deactivate_callback, register_callback, rotate_callback_secret
from workflows.actions.sending_again import AT_ONCE, given_up, send_given_up_again
from workflows.enums import CallStatus
from workflows.forms_callbacks import NewCallback
from workflows.models import CallbackCall, CallbackEndpoint
from workflows.screens.called import call_lines
from workflows.tables_callbacks import CallbackTable

TAB = "endpoints"
MOST_CALLS = 20


@reads
def callbacks(request: HttpRequest) -> HttpResponse:
    """All of them, by name, with what waits or was given up."""
    waiting = Count("calls", filter=Q(calls__status=CallStatus.PENDING))
    dead = Count("calls", filter=Q(calls__status=CallStatus.DEAD))
    mine = CallbackEndpoint.objects.filter(tenant_id=reader_of(request).tenant_id)
    listed = by_word(
        mine.annotate(waiting=waiting, dead=dead), "name", request.GET, reverse("endpoints:callbacks")
    )
    context = {"listed": listed, "table": CallbackTable(listed.rows), "may_change": may_change(request)}
    return render(request, "workflows/callbacks/list.html", context)


@writes
@proven("endpoints:new_callback")
def new(request: HttpRequest) -> HttpResponse:
    """A new destination; its secret is in the answer, and nowhere else."""
    form = NewCallback(request.POST or None)
    made, status = made_from(request, form, lambda: _register(request, form))
    if made is not None:
        return _show(request, *made)
    return render(request, "workflows/callbacks/new.html", {"form": form}, status=status)


def _register(request: HttpRequest, form: NewCallback) -> tuple[str, CallbackEndpoint]:
    said = form.cleaned_data
    return register_callback(
        tenant_id=reader_of(request).tenant_id, name=said["name"], url=said["url"], by=actor_of(request),
        clock=db_clock,
    )  # fmt: skip


@reads
def callback(request: HttpRequest, callback_endpoint_id: UUID) -> HttpResponse:
    """One destination: how it does, and what waits or was given up."""
    found = _callback(request, callback_endpoint_id)
    calls = CallbackCall.objects.filter(tenant_id=found.tenant_id, endpoint=found)
    open_ones = calls.filter(status__in=(CallStatus.PENDING, CallStatus.DEAD)).order_by("-created_at", "-id")
    context: dict[str, Any] = {
        "endpoint": found, "may_change": may_change(request), "calls": call_lines(list(open_ones[:MOST_CALLS])),
        "sendable": given_up(found).count(), "secrets": found.secrets.filter(sealed__isnull=False).count(),
        "history": f"{reverse('audit:history')}?subject={found.pk}",
    }  # fmt: skip
    return render(request, "workflows/callbacks/callback.html", context)


@writes
@proven("endpoints:callback")
def rotate(request: HttpRequest, callback_endpoint_id: UUID) -> HttpResponse:
    """A new secret; calls are signed with the old one too for a while longer."""
    found = _callback(request, callback_endpoint_id)
    form = Rotate(request.POST if is_sure(request) else None)
    form.fields["hours"].label = "The old secret ends"
    asked = Asked(
        title=found.name, sentence=f"A new secret for {found.name}?",
        points=["It is shown once. Until the old one ends, each call carries a signature of both."],
        button="Make the new secret", back=_page(found), form=form, tab=TAB, harmless=True,
    )  # fmt: skip
    return carry_out(
        request, asked,
        lambda: rotate_callback_secret(
            endpoint=found, overlap=form.overlap, by=actor_of(request), clock=db_clock
        ),
        lambda secret: _show(request, secret, found),
    )  # fmt: skip


@writes
@proven("endpoints:callback")
def send_again(request: HttpRequest, callback_endpoint_id: UUID) -> HttpResponse:
    """What was given up, once more: its receiver is well again."""
    found = _callback(request, callback_endpoint_id)
    asked = Asked(
        title=found.name, sentence=f"Send again to {found.name} what was given up?",
        points=[
            f"Calls that can be sent again: {given_up(found).count()}. At most {AT_ONCE} go at a time, oldest first.",
            "Each is the same call with the same id, and tells the state of its run as it is then.",
            "Of a run that has told of a newer state since, nothing older is sent.",
        ],
        button="Send again", back=_page(found), tab=TAB, harmless=True,
    )  # fmt: skip
    return carry_out(
        request, asked,
        lambda: send_given_up_again(endpoint=found, by=actor_of(request), clock=db_clock),
        lambda count: _sent_again(request, found, count),
    )  # fmt: skip


def _sent_again(request: HttpRequest, found: CallbackEndpoint, count: int) -> HttpResponse:
    messages.info(request, f"Calls that are sent again: {count}.", "ok" if count else "wait")
    return redirect("endpoints:callback", found.pk)


@writes
@proven("endpoints:callback")
def deactivate(request: HttpRequest, callback_endpoint_id: UUID) -> HttpResponse:
    """Call nobody there any more, for good."""
    found = _callback(request, callback_endpoint_id)
    form = Why(request.POST if is_sure(request) else None)
    asked = Asked(
        title=found.name, sentence=f"Call {found.name} back no more?",
        points=["What still waits is given up, and its secrets are erased. Runs go on.", "It never comes back."],
        button="Deactivate", back=_page(found), form=form, tab=TAB,
    )  # fmt: skip
    return do_and_say(
        request, asked, "Deactivated.",
        lambda why: deactivate_callback(endpoint=found, by=actor_of(request), clock=db_clock, reason=why),
    )  # fmt: skip


def _callback(request: HttpRequest, pk: UUID) -> CallbackEndpoint:
    mine = CallbackEndpoint.objects.filter(tenant_id=reader_of(request).tenant_id, pk=pk)
    found: CallbackEndpoint = or_404(mine.first())
    return found


def _page(found: CallbackEndpoint) -> str:
    return reverse("endpoints:callback", args=[found.pk])


def _show(request: HttpRequest, secret: str, found: CallbackEndpoint) -> HttpResponse:
    once = Once(
        title=f"The secret of {found.name}", label="Secret", text=secret,
        says=(f"Calls to {found.url} are signed with it.",), back=_page(found), back_word="To the callback", tab=TAB,
    )  # fmt: skip
    return show_once(request, once)
