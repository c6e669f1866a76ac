"""The kill switch as pages: what is frozen, freezing, one freeze with its proof, lifting it, asking again.

Reading changes nothing. Freezing takes two steps: the first only says in words what would stop.
"""

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from access.auth import person_of
from access.policies import can_role
from access.web import role_required
from audit.actors import Actor
from common.clock import db_clock
from common.display import visible
from common.errors import NotFound, Refused
from common.web import http_methods
from workflows.actions.asking_again import ASKERS, AskedAgain, ask_again, ask_again_all
from workflows.actions.freezing import FREEZERS, AlreadyLifted, freeze, lift
from workflows.forms_holds import FreezeForm, LiftForm
from workflows.models import Hold
from workflows.screens.confirm import confirmation
from workflows.screens.hold import now_screen, rest_screen
from workflows.screens.holds import hold_list, scope_words
from workflows.selectors_holds import freezes_over, get_hold
from workflows.views import ANY_ROLE, asks_for, membership_of

MAY_FREEZE: Final = "Operators, workflow owners and admins may freeze."


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*ANY_ROLE)
@never_cache
def holds(request: HttpRequest) -> HttpResponse:
    """What holds now and what held before; for those who may, the form to freeze, and its answer."""
    return _freeze(request) if request.method == "POST" else _list_page(request, FreezeForm())


@role_required(*FREEZERS)
def _freeze(request: HttpRequest) -> HttpResponse:
    """Without ``decision=freeze`` only the words are shown that say what will stop; nothing is written then."""
    membership, form = membership_of(request), FreezeForm(request.POST)
    if not form.is_valid() or request.POST.get("decision") == "change":
        return _list_page(request, form, status=422 if form.errors else 200)
    scope = form.scope_of(membership.tenant_id)
    if request.POST.get("decision") != "freeze":
        says, why = confirmation(scope, membership.tenant), visible(form.cleaned_data["why"])
        return render(request, "workflows/holds/confirm.html", {"form": form, "says": says, "why": why})
    try:
        hold = freeze(scope=scope, why=form.cleaned_data["why"], by=_person(request), clock=db_clock)
    except Refused as refusal:
        form.add_error(None, refusal.message)
        return _list_page(request, form, status=refusal.http_status)
    drained = (
        "nothing is newly sent from now on"
        if hold.drained_at
        else "somebody who is about to send is waited for"
    )
    messages.info(request, f"Frozen: {scope_words(hold)}; {drained}.", "held")
    return redirect("workflows:hold", hold.pk)


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def hold(request: HttpRequest, hold_id: UUID) -> HttpResponse:
    """One freeze or circuit. Its fragment asks again by itself, and is told 204 while nothing has changed."""
    found, membership = _hold_of(request, hold_id), membership_of(request)
    if asks_for(request, "hold-now"):
        return _now_fragment(request, found)
    if asks_for(request, "hold-rest"):
        now = db_clock()
        rest = rest_screen(found, membership, request.GET, now)
        return render(request, "workflows/holds/includes/rest.html", {"rest": rest, "now": now})
    return _hold_page(request, found, LiftForm())


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*FREEZERS)
@never_cache
def lift_now(request: HttpRequest, hold_id: UUID) -> HttpResponse:
    """Lift it. A second submit finds it lifted already, and leads to the same page; so does this address alone."""
    found, form = _hold_of(request, hold_id), LiftForm(request.POST)
    if request.method != "POST":
        return redirect("workflows:hold", found.pk)
    if not form.is_valid():
        return _hold_page(request, found, form, status=422)
    tenant_id, why = membership_of(request).tenant_id, form.cleaned_data["why"]
    try:
        lift(hold_id=found.pk, tenant_id=tenant_id, why=why, by=_person(request), clock=db_clock)
    except AlreadyLifted:
        messages.info(request, "It was lifted already.", "mute")
    except Refused as refusal:
        form.add_error(None, refusal.message)
        return _hold_page(request, found, form, status=refusal.http_status)
    return redirect("workflows:hold", found.pk)


@http_methods(read=(), write=("POST",))
@role_required(*ASKERS)
@never_cache
def ask_again_here(request: HttpRequest, hold_id: UUID) -> HttpResponse:
    """Ask again about one action that lapsed under it (``run`` and ``step``), or about all of them (neither)."""
    found = _hold_of(request, hold_id)
    if "run" in request.POST:
        _ask_one(request)
    else:
        asked = ask_again_all(
            tenant_id=membership_of(request).tenant_id, hold_id=found.pk, by=_person(request), clock=db_clock
        )
        messages.info(request, _asked_words(asked), "bad" if asked.refused and not asked.proposals else "act")
    return redirect("workflows:hold", found.pk)


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def over(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """Whether a proposal's action would be held, as a fragment that the page of the proposal includes by address."""
    freezes = freezes_over(request.tenant.pk, proposal_id)  # type: ignore[attr-defined]
    if not freezes:
        return HttpResponse(status=204)
    context = {"hold": freezes[0], "scope": scope_words(freezes[0])}
    return render(request, "workflows/holds/includes/over.html", context)


# -- parts ------------------------------------------------------------------------------------------------------


def _list_page(request: HttpRequest, form: FreezeForm, status: int = 200) -> HttpResponse:
    membership = membership_of(request)
    context: dict[str, Any] = {
        "holds": hold_list(membership.tenant_id, request.GET), "form": form, "now": db_clock(),
        "may_freeze": can_role(membership, *FREEZERS), "who_may": MAY_FREEZE,
    }  # fmt: skip
    return render(request, "workflows/holds/list.html", context, status=status)


def _hold_page(request: HttpRequest, found: Hold, form: LiftForm, status: int = 200) -> HttpResponse:
    membership, now = membership_of(request), db_clock()
    context = {
        "hold": now_screen(found, membership), "rest": rest_screen(found, membership, request.GET, now), "form": form,
        "now": now,
    }  # fmt: skip
    return render(request, "workflows/holds/hold.html", context, status=status)


def _now_fragment(request: HttpRequest, found: Hold) -> HttpResponse:
    screen, seen = now_screen(found, membership_of(request)), request.GET.get("version", "")
    if seen == screen.version:
        return HttpResponse(status=204)
    response = render(request, "workflows/holds/includes/now.html", {"hold": screen, "now": db_clock()})
    if not seen.startswith(f"{screen.phase}-"):
        response["HX-Trigger"] = "hold-moved"  # proof and lists are read again
    return response


def _hold_of(request: HttpRequest, hold_id: UUID) -> Hold:
    """This organisation's or the installation's; 404 for missing ones and for those of others alike."""
    try:
        return get_hold(membership_of(request).tenant_id, hold_id)
    except NotFound as missing:
        raise Http404 from missing


def _person(request: HttpRequest) -> Actor:
    return person_of(request)


def _ask_one(request: HttpRequest) -> None:
    try:
        run_id = UUID(request.POST["run"])
    except ValueError as error:
        raise Http404 from error
    tenant_id, step = membership_of(request).tenant_id, request.POST.get("step", "")
    try:
        ask_again(tenant_id=tenant_id, run_id=run_id, step=step, by=_person(request), clock=db_clock)
    except NotFound as missing:
        raise Http404 from missing
    except Refused as refusal:
        messages.info(request, f"Not asked again. {refusal.message}", "bad")
    else:
        messages.info(request, "Asked again. A new version waits for a decision.", "act")


def _asked_words(asked: AskedAgain) -> str:
    parts = [f"Asked again about {len(asked.proposals)}."]
    if asked.refused:
        parts.append(f"{len(asked.refused)} could not be: {asked.refused[0].message}")
    if asked.left:
        parts.append(f"{asked.left} are left for another time.")
    return " ".join(parts)
