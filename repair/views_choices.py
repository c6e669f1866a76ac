"""One choice for one case: what it would do, the form it needs, and doing it."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from access.auth import person_of
from access.models import Membership
from access.web import role_required
from common.clock import db_clock
from common.errors import InvalidInput, NotFound, Refused
from common.web import http_methods
from repair.choices.acting import choice_named, choose, not_offered, refuse, why_refused
from repair.choices.case import REPAIRERS, Case, Seen, load
from repair.choices.declared import Choice, Typed
from repair.choices.dry import title_of_order
from repair.choices.forms import ChoiceForm
from repair.tables import cause_words
from workflows.screens.words import step_words, title_of


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def choice(request: HttpRequest, packet_id: UUID, choice: str) -> HttpResponse:
    """The dry run and the form; with POST it is done, or shown once more with what was typed. A GET writes nothing."""
    membership = membership_of(request)
    try:
        chosen = choice_named(choice)
        case = load(membership.tenant_id, packet_id, membership, db_clock())
        return _post(request, case, chosen) if request.method == "POST" else _get(request, case, chosen)
    except NotFound as missing:
        raise Http404 from missing


def _get(request: HttpRequest, case: Case, chosen: Choice) -> HttpResponse:
    why = chosen.rule(case.facts)
    if why is not None:
        return page(request, case, chosen, refusal=not_offered(chosen, why))
    return page(request, case, chosen, chosen.make_form(case))


def _post(request: HttpRequest, case: Case, chosen: Choice) -> HttpResponse:
    """What is not offered, and what was seen otherwise, is refused before anything that was typed is looked at."""
    seen, by = Seen.parse(request.POST.get("seen", "")), person_of(request)
    refusal = why_refused(case, chosen, seen)
    if refusal is not None or seen is None:
        return page(request, case, chosen, refusal=refuse(case, chosen, refusal, by=by, clock=db_clock))
    form = chosen.make_form(case, request.POST)
    if not form.is_valid():
        return page(request, case, chosen, form)
    if chosen.preview and request.POST.get("decision") != "do":
        return page(request, case, chosen, form, typed=form.typed())
    try:
        told = choose(
            tenant_id=case.tenant_id, packet_id=case.packet.pk, choice=chosen, seen=seen, typed=form.typed(),
            membership=case.membership, by=by, clock=db_clock,
        )  # fmt: skip
    except NotFound:
        raise
    except Refused as refused:
        return _refused(request, case, chosen, form, refused)
    messages.info(request, told, "act")
    return redirect("repair:packet", case.packet.pk)


def _refused(
    request: HttpRequest, case: Case, chosen: Choice, form: ChoiceForm, refused: Refused
) -> HttpResponse:
    """What was typed stays. The case is read anew, because trying has moved it, or somebody else has."""
    anew = load(case.tenant_id, case.packet.pk, case.membership, db_clock())
    if isinstance(refused, InvalidInput):
        form.tell(refused.details)
    keep = chosen.rule(anew.facts) is None
    return page(request, anew, chosen, form if keep else None, refusal=refused)


def page(
    request: HttpRequest, case: Case, chosen: Choice, form: ChoiceForm | None = None, *, typed: Typed | None = None,
    refusal: Refused | None = None,
) -> HttpResponse:  # fmt: skip
    """``form`` is none where the choice is not offered; ``typed``: what is shown once more before it is done."""
    dry = None
    if form is not None:
        try:
            dry = chosen.dry_run(case, typed)
        except Refused as refused:
            refusal, typed = refused, None
            form.tell(refused.details)
            dry = chosen.dry_run(case, None)
    status = refusal.http_status if refusal else 422 if form is not None and form.errors else 200
    context: dict[str, Any] = {
        "case": case, "choice": chosen, "form": form, "dry": dry, "refusal": refusal, "seen": case.seen.text,
        "cause": cause_words(case.packet.cause), "title": title_of(case.run.workflow), "about": title_of_order(case),
        "step": step_words(case.packet.step), "now": case.now, "sure": chosen.preview and typed is not None,
        "question": case.question if chosen.code == "supply" else "",
    }  # fmt: skip
    return render(request, "repair/choice.html", context, status=status)


def membership_of(request: HttpRequest) -> Membership:
    membership: Membership = request.membership  # type: ignore[attr-defined]
    return membership
