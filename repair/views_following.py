"""Take an effect back, or propose its rest, from the page of its run: what it would do, then who is asked."""

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
from common.errors import NotFound, Refused
from common.web import http_methods
from repair.choices.case import REPAIRERS
from repair.choices.declared import Choice
from repair.choices.forms import WhyForm
from repair.choices.undoing import dry_of, propose
from repair.following import BY_KIND, about
from workflows.actions.compensating import Following, effect_named, facts_of
from workflows.effects import EffectOf
from workflows.following import AnotherEffect
from workflows.screens.words import title_of
from workflows.selectors import get_run

REMAINS = "The run itself stays as it ended, or goes on as it does."


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def follow(request: HttpRequest, run_id: UUID, kind: str, key: str) -> HttpResponse:
    """The dry run and the form; with POST it is shown once more as it would be judged, then proposed. A GET reads
    nothing outside and writes nothing.
    """
    if kind not in BY_KIND:
        raise Http404
    following, choice = BY_KIND[kind]
    try:
        effect = effect_named(get_run(membership_of(request).tenant_id, run_id), key)
    except NotFound as missing:
        raise Http404 from missing
    refusal = following.why_not(facts_of(effect))
    if refusal is not None:
        return _page(request, effect, following, choice, refusal=refusal)
    if request.method != "POST":
        return _page(request, effect, following, choice, form=WhyForm())
    return _post(request, effect, following, choice)


def _post(request: HttpRequest, effect: EffectOf, following: Following, choice: Choice) -> HttpResponse:
    form = WhyForm(request.POST)
    if request.POST.get("effect", effect.what) != effect.what:
        return _page(request, effect, following, choice, refusal=AnotherEffect())
    if not form.is_valid() or request.POST.get("decision") != "do":
        return _page(request, effect, following, choice, form=form, sure=form.is_valid())
    by = person_of(request)
    try:
        told = propose(following, effect, form.cleaned_data, by, db_clock)
    except NotFound as missing:
        raise Http404 from missing
    except Refused as refused:
        return _page(request, effect, following, choice, form=form, refusal=refused)
    messages.info(request, told, "act")
    return redirect("workflows:run", effect.run.pk)


def _page(
    request: HttpRequest, effect: EffectOf, following: Following, choice: Choice, *, form: WhyForm | None = None,
    sure: bool = False, refusal: Refused | None = None,
) -> HttpResponse:  # fmt: skip
    dry = None
    if form is not None and following.why_not(facts_of(effect)) is None:
        try:
            dry = dry_of(following, effect, form.cleaned_data if sure else None, REMAINS)
        except Refused as refused:
            refusal, sure = refused, False
            dry = dry_of(following, effect, None, REMAINS)
    status = refusal.http_status if refusal else 422 if form is not None and form.errors else 200
    context: dict[str, Any] = {
        "run": effect.run, "choice": choice, "form": form if dry is not None else None, "dry": dry, "refusal": refusal,
        "sure": sure, "title": title_of(effect.run.workflow), "about": about(effect),
        "effect": effect.what,
    }  # fmt: skip
    return render(request, "repair/follow.html", context, status=status)


def membership_of(request: HttpRequest) -> Membership:
    membership: Membership = request.membership  # type: ignore[attr-defined]
    return membership
