"""How telling does: pages for admins under People, read by auditors."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from access.enums import Role
from access.forms_people import Why
from access.screens.asking import (
    Asked,
    Once,
    View,
    actor_of,
    ask,
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
from access.web import role_required
from common.clock import db_clock
from common.errors import Refused
from common.web import http_methods
from notify.actions import testing
from notify.actions.anchoring import send_now
from notify.actions.destinations import (
    Room,
    deactivate_destination,
    register_address,
    register_destination,
    send_again,
)
from notify.forms import NewAddress, NewDestination
from notify.models import Destination, Dispatch
from notify.screens.telling import leaves_by, state_of, why
from notify.selectors import destinations, given_up, mails_of
from notify.tables import DestinationTable, FailureTable

TAB = "telling"
MOST_LISTED = 50
MOST_OF_ONE = 20


def acts(view: View) -> View:
    """A button of admins: by POST alone."""
    return http_methods(read=(), write=("POST",))(role_required(Role.ADMIN)(never_cache(view)))


@reads
def channels(request: HttpRequest) -> HttpResponse:
    """Mail, and the destinations by name."""
    tenant_id = reader_of(request).tenant_id
    listed = by_word(destinations(tenant_id), "name", request.GET, reverse("telling:channels"))
    leaves, how = leaves_by()
    context = {
        "listed": listed, "table": DestinationTable(listed.rows), "may_change": may_change(request),
        "mails": mails_of(tenant_id), "leaves": leaves, "how": how, "address": reader_of(request).user.email,
    }  # fmt: skip
    return render(request, "notify/channels.html", context)


@reads
def failures(request: HttpRequest) -> HttpResponse:
    """What was given up, with its reason."""
    found = list(given_up(reader_of(request).tenant_id)[: MOST_LISTED + 1])
    for row in found:
        row.may_change = may_change(request)  # type: ignore[attr-defined]
    context = {
        "rows": found[:MOST_LISTED], "table": FailureTable(found[:MOST_LISTED]), "more": len(found) > MOST_LISTED,
    }  # fmt: skip
    return render(request, "notify/failures.html", context)


@writes
def again(request: HttpRequest, dispatch_id: UUID) -> HttpResponse:
    """Try anew what was given up."""
    tenant_id = reader_of(request).tenant_id
    rows = Dispatch.objects.filter(tenant_id=tenant_id, pk=dispatch_id).select_related("message")
    row: Dispatch = or_404(rows.first())
    asked = Asked(
        title="Send again", sentence=f"Send this again: {row.message.lead}?",
        points=["It is tried as if it were new, unless it need not be told any more.", f"Before: {why(row.problem)}"],
        button="Send again", back=reverse("telling:failures"), tab=TAB, harmless=True,
    )  # fmt: skip
    if not is_sure(request):
        return ask(request, asked)
    try:
        send_again(tenant_id=tenant_id, dispatch_id=dispatch_id, by=actor_of(request), clock=db_clock)
    except Refused as refusal:
        return ask(request, asked, refusal=refusal.message, status=refusal.http_status)
    messages.info(request, "It is sent again in a moment.", "ok")
    return redirect("telling:failures")


@acts
def send_test_mail(request: HttpRequest) -> HttpResponse:
    """A mail to whoever asks for it."""
    reader = reader_of(request)
    testing.test_mail(
        tenant_id=reader.tenant_id, user_id=reader.user_id, by=actor_of(request), clock=db_clock
    )
    messages.info(request, "A test is on its way to you. What fails stands under What was given up.", "ok")
    return redirect("telling:channels")


@writes
@proven("telling:new")
def new(request: HttpRequest) -> HttpResponse:
    """A new destination; its secret, where it is signed, is in the answer and nowhere else."""
    form = NewDestination(request.POST or None, tenant_id=reader_of(request).tenant_id)
    made, status = made_from(request, form, lambda: _register(request, form))
    if made is not None:
        secret, row = made
        return _show(request, secret, row) if secret else redirect("telling:destination", row.pk)
    return render(request, "notify/new.html", {"form": form}, status=status)


def _register(request: HttpRequest, form: NewDestination) -> tuple[str, Destination]:
    room = Room(
        **{name: form.cleaned_data[name] for name in ("name", "url", "group", "kinds", "style", "signed")}
    )
    tenant_id = reader_of(request).tenant_id
    return register_destination(tenant_id=tenant_id, room=room, by=actor_of(request), clock=db_clock)


@writes
@proven("telling:new_address")
def new_address(request: HttpRequest) -> HttpResponse:
    """Somebody to whom checkpoints of the history are mailed."""
    form = NewAddress(request.POST or None)
    made, status = made_from(request, form, lambda: _register_address(request, form))
    if made is not None:
        return redirect("telling:destination", made.pk)
    return render(request, "notify/new_address.html", {"form": form}, status=status)


def _register_address(request: HttpRequest, form: NewAddress) -> Destination:
    said, tenant_id = form.cleaned_data, reader_of(request).tenant_id
    return register_address(
        tenant_id=tenant_id, name=said["name"], address=said["address"], by=actor_of(request), clock=db_clock
    )


@acts
def send_checkpoint(request: HttpRequest) -> HttpResponse:
    """The newest checkpoint of the history, to everybody who keeps them."""
    try:
        sent = send_now(tenant_id=reader_of(request).tenant_id, by=actor_of(request), clock=db_clock)
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
    else:
        many = "1 receiver" if sent == 1 else f"{sent} receivers"
        messages.info(request, f"The newest checkpoint is on its way to {many}.", "ok")
    return redirect("audit:history")


def _show(request: HttpRequest, secret: str, row: Destination) -> HttpResponse:
    once = Once(
        title=f"The secret of {row.name}", label="Secret", text=secret, back=_page(row), back_word="To the destination",
        says=(f"Calls to {row.host} are signed with it.",), tab=TAB,
    )  # fmt: skip
    return show_once(request, once)


@reads
def destination(request: HttpRequest, destination_id: UUID) -> HttpResponse:
    """One destination: how it does, and what was sent there last."""
    row = _destination(request, destination_id)
    sent = row.dispatches.select_related("message").order_by("-created_at", "-id")[:MOST_OF_ONE]
    context: dict[str, Any] = {
        "row": row, "sent": [(one, state_of(one)) for one in sent], "may_change": may_change(request),
        "history": f"{reverse('audit:history')}?subject={row.pk}", "signed": row.sealed_secret is not None,
    }  # fmt: skip
    return render(request, "notify/destination.html", context)


@acts
def send_test(request: HttpRequest, destination_id: UUID) -> HttpResponse:
    """A message to this destination."""
    row = _destination(request, destination_id)
    if row.deactivated_at is None:
        testing.test_destination(destination=row, by=actor_of(request), clock=db_clock)
        messages.info(request, "A test is on its way. What came of it stands here in a moment.", "ok")
    return redirect(_page(row))


@writes
@proven("telling:destination")
def deactivate(request: HttpRequest, destination_id: UUID) -> HttpResponse:
    """Send nothing there any more, for good."""
    row = _destination(request, destination_id)
    form = Why(request.POST if is_sure(request) else None)
    asked = Asked(
        title=row.name, sentence=f"Send nothing to {row.name} any more?",
        points=["What waits for it goes to its people by mail. Address and secret are erased.", "It never comes back."],
        button="Deactivate", back=_page(row), form=form, tab=TAB,
    )  # fmt: skip
    return do_and_say(
        request, asked, "Deactivated.",
        lambda why: deactivate_destination(destination=row, by=actor_of(request), clock=db_clock, reason=why),
    )  # fmt: skip


def _destination(request: HttpRequest, pk: UUID) -> Destination:
    found: Destination = or_404(
        Destination.objects.filter(tenant_id=reader_of(request).tenant_id, pk=pk).first()
    )
    return found


def _page(row: Destination) -> str:
    return reverse("telling:destination", args=[row.pk])
