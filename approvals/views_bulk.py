"""Deciding what is alike and of low risk in one list. Works as a plain form; a GET changes nothing."""

from dataclasses import replace
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from access.enums import Role
from access.web import role_required
from approvals.actions import UnknownDecision
from approvals.actions_bulk import Result, Wanted, check_list, chosen_of, decide_listed
from approvals.alike import listed_in
from approvals.enums import DecisionKind, ReasonCode
from approvals.forms import REASON_LIMIT
from approvals.models import Proposal
from approvals.refusals import ReasonRequired
from approvals.screens.bulk import BulkScreen, bulk_screen, offered_among, told_of
from approvals.views import actor_of, proposal_of, reader_of
from common.clock import db_clock
from common.errors import Refused
from common.web import http_methods

KINDS = ((DecisionKind.APPROVE, "Approve"), (DecisionKind.REJECT, "Reject"))


class BulkForm(forms.Form):
    """What is said about all that is ticked; what is ticked is checked against the list by itself."""

    decision = forms.ChoiceField(choices=KINDS)
    reason_code = forms.ChoiceField(choices=ReasonCode.choices, required=False)
    reject_reason = forms.CharField(max_length=REASON_LIMIT, required=False)


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(Role.REVIEWER)
@never_cache
def alike(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """What is like this proposal, and what became of those that were ticked; the others stay as they were."""
    like = proposal_of(request, proposal_id)
    if request.method != "POST":
        return _page(request, like)
    try:
        results = _decide(request, like)
    except Refused as refusal:
        return _page(request, like, refusal=refusal)
    rows = Proposal.objects.filter(tenant_id=like.tenant_id).in_bulk(
        [result.proposal_id for result in results]
    )
    screen = bulk_screen(like, reader_of(request))
    told = tuple(told_of(result, rows.get(result.proposal_id)) for result in results)
    return _render(request, replace(screen, results=told))


def _decide(request: HttpRequest, like: Proposal) -> list[Result]:
    form = BulkForm(request.POST)
    items = listed_in(request.POST.getlist("item"))
    by = actor_of(request)
    digest = check_list(items, request.POST.get("list", ""), user_id=by.user_id)
    if not form.is_valid():
        raise UnknownDecision
    chosen = chosen_of(items, set(request.POST.getlist("chosen")))
    said = form.cleaned_data
    reject = said["decision"] == DecisionKind.REJECT
    if reject and not (said["reason_code"] or said["reject_reason"].strip()):
        raise ReasonRequired
    wanted = Wanted(
        kind=said["decision"], list_digest=digest,
        reason_code=said["reason_code"] if reject else "", reason=said["reject_reason"] if reject else "",
    )  # fmt: skip
    offered = offered_among(like, [item.proposal_id for item in chosen])
    return decide_listed(
        tenant_id=like.tenant_id, chosen=chosen, offered=offered, wanted=wanted, by=by, clock=db_clock
    )


def _page(request: HttpRequest, like: Proposal, *, refusal: Refused | None = None) -> HttpResponse:
    """The list as it stands now, after a refusal with all that was ticked and written."""
    ticked = frozenset(request.POST.getlist("chosen"))
    screen = bulk_screen(like, reader_of(request), ticked=ticked)
    return _render(request, screen, refusal=refusal)


def _render(request: HttpRequest, screen: BulkScreen, *, refusal: Refused | None = None) -> HttpResponse:
    typed = request.POST if refusal else {}
    context = {
        "page": screen,
        "refusal": refusal,
        "reason_codes": ReasonCode.choices,
        "reason_code": typed.get("reason_code", ""),
        "reject_reason": typed.get("reject_reason", "")[:REASON_LIMIT],
    }
    return render(request, "approvals/alike.html", context, status=refusal.http_status if refusal else 200)
