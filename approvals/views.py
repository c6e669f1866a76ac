"""The review desk: one proposal, its folded parts, and the decision. The queue is in `approvals.views_queue`.

Each view reads, or makes one call of the domain, and answers with a page or with the fragment that htmx asked
for. A GET changes nothing. Opening a folded part is a POST, to carry what was typed, and changes nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django_htmx.http import trigger_client_event

from access.auth import person_of
from access.models import Membership
from access.sessions import confirmed_for, spend_proof
from access.web import role_required
from approvals import actions, kept
from approvals.actions import DecisionOutcome, UnknownDecision
from approvals.forms import DecisionForm, Typed, answer_in, submission_of, typed_in
from approvals.models import Proposal
from approvals.policies import check_can_decide, check_is_open
from approvals.refusals import ReauthRequired
from approvals.screens.bar import RESULTS, Bar, bar_for
from approvals.screens.checks import check_rows, what_is_left
from approvals.screens.proposal import ProposalScreen, proposal_screen, readable_view
from approvals.screens.queue import waiting_count
from approvals.screens.slip import Reader, slip_of
from approvals.screens.standing import Notice
from approvals.signing import must_be_signed, question
from audit.actors import Actor
from common import away
from common.away import AWAY
from common.clock import db_clock
from common.errors import Refused
from common.problems import Unavailable
from common.web import http_methods

PANE, PEOPLE = "pane", "people"
T = TypeVar("T")


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def proposal(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """One proposal: as a page of its own, or in the pane beside the queue; or, after a vote of others, who is asked."""
    row = proposal_of(request, proposal_id)
    if swaps_into(request, PEOPLE):
        context = {"page": proposal_screen(row, reader_of(request))}
        return render(request, "approvals/includes/voted.html", context)
    typed = kept.typed_for(request, row)
    whole = not swaps_into(request, PANE)
    return proposal_page(request, row, reader_of(request, typed), whole=whole, typed=typed)


@http_methods(read=("POST",))
@role_required()
@never_cache
def open_part(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """Open a folded part, or a page of one: its text with its receipt, or without script the page with it open.

    Without ``open``: what still keeps Approve closed, after a tick.
    What was typed and ticked so far comes along and is shown again; nothing is recorded.
    """
    row = proposal_of(request, proposal_id)
    typed, asked = typed_in(request.POST), request.POST.get("open", "")
    view = readable_view(row)
    if asked and not view.fields_of_part(asked):
        raise Http404
    reader = reader_of(request, typed, asked)
    if not request.htmx:  # type: ignore[attr-defined]
        return proposal_page(request, row, reader, typed=typed)
    slip = slip_of(row, view, reader)
    left = what_is_left(slip, check_rows(view, typed.acknowledged))
    context = {"page": slip, "slip": slip, "left": left, "block": slip.block_of(asked) if asked else None}
    template = "approvals/includes/opened.html" if asked else "approvals/includes/left.html"
    return render(request, template, context)


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def bar(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """The bar, when something happened since the page was made; 204 while the page is still right."""
    row = proposal_of(request, proposal_id)
    screen = proposal_screen(row, reader_of(request))
    if screen.is_open and request.GET.get("version") == str(row.state_version):
        return HttpResponse(status=204)
    return bar_fragment(request, screen, bar_for(screen, actor_of(request)))


@http_methods(read=(), write=("POST",))
@role_required()
@never_cache
def decide(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """Record a decision. A refusal has its own words and status, and keeps what was typed."""
    row = proposal_of(request, proposal_id)
    typed, form = typed_in(request.POST), DecisionForm(request.POST)
    by = actor_of(request)

    def record() -> DecisionOutcome:
        if not form.is_valid():
            raise UnknownDecision
        signature = answer_in(form.cleaned_data["signature"], host_of(request))
        submission = replace(
            submission_of(form, typed), confirmed=confirmed_for(request), signature=signature
        )
        return actions.decide(
            tenant_id=row.tenant_id, proposal_id=row.pk, submission=submission, by=by, clock=db_clock
        )

    outcome = attempted(record)
    if isinstance(outcome, Refused):
        return refused(request, proposal_id, typed, outcome)
    spend_proof(request, form.cleaned_data["digest"])
    kept.forget(request)
    return decided(request, proposal_id, outcome)


@http_methods(read=("POST",))
@role_required()
@never_cache
def sign(request: HttpRequest, proposal_id: UUID) -> JsonResponse:
    """What the browser asks this person's passkey to sign. Writes nothing; the decision itself checks everything."""
    row, by = proposal_of(request, proposal_id), actor_of(request)
    try:
        check_can_decide(row, by)
        now = db_clock()
        check_is_open(row, now)
        if not must_be_signed(row):
            raise Http404
        return JsonResponse(question(row, by=by, rp_id=host_of(request), now=now))
    except Refused as refusal:
        return JsonResponse({"code": refusal.code, "says": refusal.message}, status=refusal.http_status)


def host_of(request: HttpRequest) -> str:
    """The host by which passkeys know this site."""
    return request.get_host().partition(":")[0]


def attempted(do: Callable[[], T]) -> T | Refused:
    """What came of it. Whatever refuses it is an answer, and so is a database that is away."""
    try:
        return do()
    except Refused as refusal:
        return refusal
    except AWAY as error:
        # Somebody holds the proposal for longer than a page may wait, or the database is away or takes no changes.
        away.note(error)
        away.drop_failed_connection()
        return Unavailable(retry_after=5)


def decided(request: HttpRequest, proposal_id: UUID, outcome: DecisionOutcome) -> HttpResponse:
    """The same page after the decision: by redirect, or as the bar with facts and result beside it."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("approvals:proposal", proposal_id)
    screen = proposal_screen(proposal_of(request, proposal_id), reader_of(request))
    tone, icon, text = RESULTS[outcome.result]
    toast = Notice(tone, icon, "", text)
    response = bar_fragment(request, screen, bar_for(screen, actor_of(request)), toast=toast)
    return trigger_client_event(response, "proposal-decided", after="settle")


def refused(request: HttpRequest, proposal_id: UUID, typed: Typed, refusal: Refused) -> HttpResponse:
    """The page as it stands now, with the reason, and with all that was typed, ticked and opened before."""
    row = proposal_of(request, proposal_id)
    if isinstance(refusal, ReauthRequired):
        kept.keep(request, row, typed)
    reader = reader_of(request, typed)
    if not request.htmx:  # type: ignore[attr-defined]
        return proposal_page(request, row, reader, typed=typed, refusal=refusal)
    screen = proposal_screen(row, reader, typed.acknowledged)
    shown = bar_for(screen, actor_of(request), typed=typed, refusal=refusal)
    return bar_fragment(request, screen, shown, status=refusal.http_status)


def proposal_page(
    request: HttpRequest,
    row: Proposal,
    reader: Reader,
    *,
    whole: bool = True,
    typed: Typed | None = None,
    refusal: Refused | None = None,
) -> HttpResponse:
    """The whole proposal, with its bar."""
    screen = proposal_screen(row, reader, typed.acknowledged if typed else ())
    shown = bar_for(screen, actor_of(request), typed=typed, refusal=refusal)
    template = "approvals/proposal.html" if whole else "approvals/includes/proposal.html"
    context = {"page": screen, "bar": shown, "whole": whole}
    return render(request, template, context, status=refusal.http_status if refusal else 200)


def bar_fragment(
    request: HttpRequest,
    screen: ProposalScreen,
    shown: Bar,
    *,
    status: int = 200,
    toast: Notice | None = None,
) -> HttpResponse:
    """The bar, and out of band the facts and the result that stand elsewhere on the page."""
    place = (request.POST if request.method == "POST" else request.GET).get("in")
    waiting = waiting_count(screen.proposal.tenant_id, screen.now)
    context = {"page": screen, "bar": shown, "whole": place != PANE, "toast": toast, "waiting": waiting}
    return render(request, "approvals/includes/bar_swap.html", context, status=status)


def swaps_into(request: HttpRequest, target: str) -> bool:
    """Whether htmx asks for what goes into ``target``, rather than for the whole page of a history entry."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and htmx.target == target and not htmx.history_restore_request


def proposal_of(request: HttpRequest, proposal_id: UUID) -> Proposal:
    """The proposal of this person's tenant; 404 for missing ones and for those of others alike."""
    rows = Proposal.objects.select_related("group", "supersedes")
    found = rows.filter(tenant_id=membership_of(request).tenant_id, pk=proposal_id).first()
    if found is None:
        raise Http404
    return found


def membership_of(request: HttpRequest) -> Membership:
    membership: Membership = request.membership  # type: ignore[attr-defined]
    return membership


def reader_of(request: HttpRequest, typed: Typed | None = None, asked: str = "") -> Reader:
    """Who looks, and what of the page they have opened so far."""
    typed = typed or Typed()
    opened = typed.opened | ({asked} if asked else frozenset())
    return Reader(membership_of(request), db_clock(), opened, typed.receipts, asked)


def actor_of(request: HttpRequest) -> Actor:
    return person_of(request)
