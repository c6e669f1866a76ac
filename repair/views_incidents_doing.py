"""What people do about an incident, as forms: each is one action, and what it refuses is said on the same page."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from access.auth import person_of
from access.web import role_required
from common.clock import db_clock
from common.errors import NotFound, Refused
from common.web import http_methods
from repair.choices.case import REPAIRERS
from repair.enums import IncidentStatus, Mark
from repair.incidents.acting import close, contain, describe, join_now, mark, note
from repair.incidents.forms import CloseForm, DescribeForm, FreezeForm, MarkForm, WordsForm
from repair.incidents.freezing import THE_RUNS, freeze_incident, freezes_of, offers
from repair.incidents.report import unfinished
from repair.incidents.traces import traces_of
from repair.models_incidents import Incident
from repair.views import membership_of
from repair.views_incidents import contain_form, incident_of, incident_page


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def describe_it(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """What is thought and changed, whose it is, and the runs that stand for the others."""
    found = incident_of(request, incident_id)
    form = DescribeForm(found, request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return _describe_page(request, found, form)
    try:
        describe(
            **_about(request, found), seen=seen_of(request), texts=form.texts(),
            owner=UUID(form.cleaned_data["owner"]), traces=form.traces(),
        )  # fmt: skip
    except Refused as refusal:
        form.add_error(None, refusal.message)
        return _describe_page(request, found, form, refusal.http_status)
    return redirect("repair:incident", found.pk)


def _describe_page(
    request: HttpRequest, found: Incident, form: DescribeForm, status: int = 422
) -> HttpResponse:
    context = {
        "incident": found,
        "form": form,
        "seen": _seen_text(request, found),
        "traces": traces_of(found),
    }
    code = status if form.errors else 200
    return render(request, "repair/incidents/describe.html", context, status=code)


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def freeze_it(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """The ways to freeze, each with what else it stops; nothing is frozen before one is chosen and said why."""
    found, membership = incident_of(request, incident_id), membership_of(request)
    if found.status == IncidentStatus.CLOSED:
        return redirect("repair:incident", found.pk)
    ways = offers(found, membership)
    form = FreezeForm([offer.code for offer in ways], request.POST if request.method == "POST" else None)
    context: dict[str, Any] = {"incident": found, "form": form, "offers": ways, "runs": THE_RUNS}
    if request.method != "POST" or not form.is_valid():
        return render(request, "repair/incidents/freeze.html", context, status=422 if form.errors else 200)
    try:
        hold = freeze_incident(
            **_about(request, found), way=form.cleaned_data["way"], why=form.cleaned_data["why"]
        )
    except Refused as refusal:
        form.add_error(None, refusal.message)
        return render(request, "repair/incidents/freeze.html", context, status=refusal.http_status)
    messages.info(request, "Frozen. This is what was in flight, and what the history proves.", "held")
    return redirect("workflows:hold", hold.pk)


@http_methods(read=(), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def mark_runs(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """Say of the ticked runs what was found. What is refused keeps what was typed."""
    found, form = incident_of(request, incident_id), MarkForm(request.POST)
    form.fields["words"].required = False
    rows = form.rows()
    if not rows:
        form.add_error(None, "Tick the runs that you mean.")
    if not form.is_valid():
        return incident_page(request, found, status=422, mark_form=form)
    try:
        done = mark(
            **_about(request, found), rows=rows, mark=Mark(form.cleaned_data["mark"]), words=form.cleaned_data["words"]
        )  # fmt: skip
    except Refused as refusal:
        form.add_error(None, refusal.message)
        return incident_page(request, found, status=refusal.http_status, mark_form=form)
    left = len(rows) - len(done)
    messages.info(
        request, f"{len(done)} marked.{f' {left} had been marked meanwhile.' if left else ''}", "act"
    )
    return redirect(_back(request, found))


def _back(request: HttpRequest, found: Incident) -> str:
    query = request.GET.urlencode()
    return f"/repair/incidents/{found.pk}/{'?' if query else ''}{query}"


@http_methods(read=(), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def look_again(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """Look now for what fits and is not in it yet; by itself that is done once a minute."""
    found = incident_of(request, incident_id)
    try:
        joined = join_now(**_about(request, found))
    except Refused as refusal:
        return incident_page(request, found, status=refusal.http_status, refusal=refusal)
    messages.info(request, f"{joined} joined." if joined else "Nothing new fits.", "act")
    return redirect("repair:incident", found.pk)


@http_methods(read=(), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def add_a_note(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """Add to what is written down."""
    return _with_words(request, incident_id, WordsForm(request.POST), "note_form", lambda about, words: note(
        **about, words=words))  # fmt: skip


@http_methods(read=(), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def contain_it(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """The harm is stopped: from now on nothing joins."""
    seen = seen_of(request)
    return _with_words(request, incident_id, contain_form(request.POST), "contain_form", lambda about, words: contain(
        **about, words=words, seen=seen))  # fmt: skip


def _with_words(
    request: HttpRequest, incident_id: UUID, form: WordsForm, name: str, act: Callable[[dict[str, Any], str], None]
) -> HttpResponse:  # fmt: skip
    found = incident_of(request, incident_id)
    if not form.is_valid():
        return incident_page(request, found, status=422, **{name: form})
    try:
        act(_about(request, found), form.cleaned_data["words"])
    except NotFound:
        raise
    except Refused as refusal:
        form.add_error(None, refusal.message)
        return incident_page(request, found, status=refusal.http_status, **{name: form})
    return redirect("repair:incident", found.pk)


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def close_it(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """What is unfinished, and the cause."""
    found = incident_of(request, incident_id)
    form = CloseForm(found.tenant_id, request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return _close_page(request, found, form)
    try:
        close(
            **_about(request, found), seen=seen_of(request), cause=form.cleaned_data["cause"],
            words=form.cleaned_data["words"],
        )  # fmt: skip
    except Refused as refusal:
        form.add_error(None, refusal.message)
        return _close_page(request, found, form, refusal.http_status)
    return redirect("repair:incident", found.pk)


def _close_page(request: HttpRequest, found: Incident, form: CloseForm, status: int = 422) -> HttpResponse:
    context = {
        "incident": found, "form": form, "seen": _seen_text(request, found),
        "unfinished": unfinished(found, freezes_of(found)), "live": found.status in IncidentStatus.live_states,
    }  # fmt: skip
    return render(request, "repair/incidents/close.html", context, status=status if form.errors else 200)


# -- parts --------------------------------------------------------------------------------------------------------


def seen_of(request: HttpRequest) -> int:
    """The state that the form was made of; none that exists, where it names none."""
    digits = request.POST.get("seen", "")[:9]
    return int(digits) if digits.isascii() and digits.isdigit() else -1


def _seen_text(request: HttpRequest, found: Incident) -> str:
    """What was seen first stays what was seen, until the page is opened anew."""
    return request.POST.get("seen", "")[:9] if request.method == "POST" else str(found.state_version)


def _about(request: HttpRequest, found: Incident) -> dict[str, Any]:
    return {
        "tenant_id": found.tenant_id, "incident_id": found.pk, "by": person_of(request), "clock": db_clock,
    }  # fmt: skip
