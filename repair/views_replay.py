"""Replays: the form with what it would do, what the page of a run says of them, and two runs beside each other."""

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from access.auth import person_of
from access.enums import Role
from access.models import Membership
from access.web import role_required
from audit.finding import as_uuid
from common.clock import db_clock
from common.errors import NotFound, Refused
from common.web import http_methods
from repair.replay.acting import REPLAYERS, replay_run
from repair.replay.forms import ReplayForm
from repair.replay.rules import CannotReplay, plan_of
from repair.replay.screens import comparison_screen, plan_lines, replays_of
from workflows.models import Run
from workflows.screens.words import title_of
from workflows.selectors import get_run
from workflows.selectors_contents import runs_about

ANY_ROLE: Final = tuple(Role)


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*REPLAYERS)
@never_cache
def replay(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """What a replay would do, and the form; with POST it is made, or shown once more with what was typed."""
    found = _run_of(request, run_id)
    if request.method != "POST":
        return _page(request, found, ReplayForm())
    form = ReplayForm(request.POST)
    looks = request.POST.get("decision") != "do"
    if not form.is_valid() or looks:
        return _page(request, found, form, looks=looks)
    by = person_of(request)
    try:
        made = replay_run(
            tenant_id=found.tenant_id, run_id=found.pk, asked=form.asked(), by=by, clock=db_clock
        )
    except NotFound as missing:
        raise Http404 from missing
    except Refused as refused:
        return _page(request, found, form, refusal=refused)
    messages.info(request, "The replay is made, and runs by itself.", "act")
    return redirect("workflows:run", made.pk)


def _page(
    request: HttpRequest, found: Run, form: ReplayForm, *, refusal: Refused | None = None, looks: bool = False
) -> HttpResponse:
    """``looks``: it is only asked what would be done, so nothing is missing yet."""
    if looks:
        form.errors.pop("reason", None)
    lines: tuple[Any, ...] = ()
    asked = form.asked()
    try:
        lines = plan_lines(plan_of(found, asked))
    except CannotReplay as refused:
        refusal = refusal or refused
    status = (
        refusal.http_status
        if refusal and request.method == "POST" and not looks
        else 422
        if form.errors
        else 200
    )
    context = {
        "run": found, "title": title_of(found.workflow), "form": form, "lines": lines, "refusal": refusal,
        "gone": refusal.details.get("gone", ()) if refusal else (), "asked": asked,
    }  # fmt: skip
    return render(request, "repair/replay/replay.html", context, status=status)


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def replays(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """What the page of a run says of replays, as a fragment that it includes by this address."""
    found = replays_of(_run_of(request, run_id), membership_of(request))
    return render(request, "repair/replay/of_run.html", {"of": found})


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def compare(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """This run beside ``with``, an id or the newest run of an order; of a replay else its original."""
    right = _run_of(request, run_id)
    left = _run_of(request, _other(request, right))
    return render(
        request, "repair/replay/compare.html", {"it": comparison_screen(left, right, membership_of(request))}
    )


def _other(request: HttpRequest, run: Run) -> UUID:
    named = request.GET.get("with", "")
    if not named:
        return run.identity
    ident = as_uuid(named)
    if ident is not None:
        return ident
    about = runs_about(run.tenant_id, named[:200].replace("\0", ""))
    found = next((one.pk for one in about if one.pk != run.pk), None)
    if found is None:
        raise Http404
    return found


def _run_of(request: HttpRequest, run_id: UUID) -> Run:
    """Of this person's tenant; 404 for missing ones and for those of others alike."""
    try:
        return get_run(membership_of(request).tenant_id, run_id)
    except NotFound as missing:
        raise Http404 from missing


def membership_of(request: HttpRequest) -> Membership:
    membership: Membership = request.membership  # type: ignore[attr-defined]
    return membership
