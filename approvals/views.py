"""The review desk: the queue, one proposal, its folded parts, and the decision.

Each view reads, or makes one call of the domain, and answers with a page or with the fragment that htmx asked
for. A GET changes nothing. Opening a folded part is a POST, to carry what was typed, and changes nothing.
"""

from uuid import UUID

from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django_htmx.http import trigger_client_event

from access.auth import person_actor
from access.models import Membership
from access.web import role_required
from approvals import actions
from approvals.actions import DecisionOutcome, UnknownDecision
from approvals.filters import QueueFilter
from approvals.forms import DecisionForm, Typed, submission_of, typed_in
from approvals.models import Proposal
from approvals.screens.bar import RESULTS, Bar, bar_for
from approvals.screens.proposal import ProposalScreen, Reader, proposal_screen, readable_view
from approvals.screens.queue import cursor_time, queue_screen, waiting
from approvals.screens.standing import Notice
from audit.actors import Actor
from common.clock import db_clock
from common.errors import Refused
from common.problems import Unavailable
from common.web import http_methods

PANE = "pane"


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def queue(request: HttpRequest) -> HttpResponse:
    """The waiting proposals, the most urgent first."""
    membership = membership_of(request)
    now = db_clock()
    filters = QueueFilter(request.GET, queryset=waiting(membership.tenant_id, now))
    screen = queue_screen(
        rows=filters.qs, membership=membership, query=request.GET, filtered=filters.is_active, now=now
    )
    fragment = swaps_into(request, "queue")
    template = "approvals/includes/queue.html" if fragment else "approvals/queue.html"
    return render(request, template, {"queue": screen, "filter": filters, "now": now, "htmx": fragment})


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def arrivals(request: HttpRequest) -> HttpResponse:
    """How many proposals have come since the list was made; 204 while there are none. Rows never move by themselves."""
    membership, now = membership_of(request), db_clock()
    since = cursor_time(request.GET.get("since", ""))
    count = 0 if since is None else waiting(membership.tenant_id, now).filter(created_at__gt=since).count()
    if not count:
        return HttpResponse(status=204)
    return render(request, "approvals/includes/arrivals.html", {"count": count})


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def proposal(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """One proposal: as a page of its own, or in the pane beside the queue."""
    row = proposal_of(request, proposal_id)
    return proposal_page(request, row, reader_of(request), whole=not swaps_into(request, PANE))


@http_methods(read=("POST",))
@role_required()
@never_cache
def open_part(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """Open a folded part: its text with its receipt, or without script the page with the part open.

    What was typed and ticked so far comes along and is shown again; nothing is recorded.
    """
    row = proposal_of(request, proposal_id)
    typed, asked = typed_in(request.POST), request.POST.get("open", "")
    if readable_view(row).field_of_part(asked) is None:
        raise Http404
    reader = reader_of(request, typed.opened | {asked})
    if not request.htmx:  # type: ignore[attr-defined]
        return proposal_page(request, row, reader, typed=typed)
    screen = proposal_screen(row, reader)
    part = next(field.part for field in screen.fields if field.part.key == asked)
    return render(request, "approvals/includes/part.html", {"page": screen, "part": part, "focus": True})


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
    try:
        if not form.is_valid():
            raise UnknownDecision
        submission = submission_of(form, typed)
        outcome = actions.decide(
            tenant_id=row.tenant_id, proposal_id=row.pk, submission=submission, by=by, clock=db_clock
        )
    except Refused as refusal:
        return refused(request, proposal_id, typed, refusal)
    except OperationalError:
        # Somebody holds the proposal for longer than a page may wait, or the database is away.
        return refused(request, proposal_id, typed, Unavailable(retry_after=5))
    return decided(request, proposal_id, outcome)


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
    reader = reader_of(request, typed.opened)
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
    context = {"page": screen, "bar": shown, "whole": place != PANE, "toast": toast}
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


def reader_of(request: HttpRequest, opened: frozenset[str] = frozenset()) -> Reader:
    return Reader(membership_of(request), db_clock(), opened)


def actor_of(request: HttpRequest) -> Actor:
    return person_actor(membership_of(request), request_id=getattr(request, "request_id", ""))
