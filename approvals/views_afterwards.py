"""Looking at automatic actions afterwards: the list, one of them, and what a person says about it."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from access.web import role_required
from approvals import sampling
from approvals.forms_afterwards import SayForm
from approvals.models import Sample
from approvals.refusals import DecisionRefused
from approvals.screens.afterwards import afterwards_screen
from approvals.screens.proposal import proposal_screen
from approvals.views import actor_of, membership_of, reader_of
from common.clock import db_clock
from common.display import visible
from common.errors import Refused
from common.web import http_methods


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def afterwards(request: HttpRequest) -> HttpResponse:
    """What was done by itself and waits for a look, and what adds up."""
    screen = afterwards_screen(membership_of(request), request.GET, db_clock())
    return render(request, "approvals/afterwards.html", {"screen": screen})


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def sample(request: HttpRequest, sample_id: UUID) -> HttpResponse:
    """One automatic action as it was proposed, with what came of it."""
    return _page(request, _found(request, sample_id), SayForm())


@http_methods(read=(), write=("POST",))
@role_required()
@never_cache
def say(request: HttpRequest, sample_id: UUID) -> HttpResponse:
    """Record one person's word. Whoever comes second is told who was first, and keeps what they typed."""
    found, form, refusal = _found(request, sample_id), SayForm(request.POST), None
    if form.is_valid():
        try:
            sampling.say(
                tenant_id=found.tenant_id, sample_id=found.pk, verdict=form.cleaned_data["verdict"],
                words=form.cleaned_data["words"], by=actor_of(request), clock=db_clock,
            )  # fmt: skip
        except Refused as refused:
            refusal = refused
        else:
            messages.info(request, "Noted. Nothing of what was done has changed.", "ok")
            return redirect("approvals:afterwards")
    status = refusal.http_status if refusal else 422
    return _page(request, _found(request, sample_id), form, refusal=refusal, status=status)


def _found(request: HttpRequest, sample_id: UUID) -> Sample:
    """A sample whose action was done; 404 for all others, and for those of other organisations alike."""
    done = Sample.objects.filter(
        tenant_id=membership_of(request).tenant_id, proposal__command__status="confirmed"
    )
    found = done.select_related("proposal", "proposal__group", "proposal__supersedes", "user").filter(
        pk=sample_id
    )
    sample_ = found.first()
    if sample_ is None:
        raise Http404
    return sample_


def _page(
    request: HttpRequest, found: Sample, form: SayForm, *, refusal: Refused | None = None, status: int = 200
) -> HttpResponse:
    reader, closed = reader_of(request), ""
    try:
        sampling.check_may_say(found, actor_of(request))
    except DecisionRefused as why:
        closed = why.message
    context = {
        "sample": found, "page": proposal_screen(found.proposal, reader), "form": form, "closed": closed,
        "refusal": refusal, "by": visible(str(found.user)) if found.user else "",
        "words": visible(found.words or "") if reader.sees_personal else "",
    }  # fmt: skip
    return render(request, "approvals/sample.html", context, status=status)
