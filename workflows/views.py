"""The runs desk: the list, one run with its timeline, its receipts, and protected documents.

Reading changes nothing. Opening a document is a POST, because who opened it is written down.
"""

import json
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from access.auth import person_of
from access.enums import Role
from access.models import Membership
from access.policies import RoleMissing, can_role
from access.web import role_required
from approvals.models import Decision
from audit.names import names_of, spoken
from common.clock import db_clock
from common.display import visible
from common.errors import NotFound, Refused
from common.sealed import is_erased, readable
from common.web import http_methods
from workflows.actions.cancelling import cancel_run
from workflows.actions.correcting import CORRECTORS, correct_outcome
from workflows.actions.reading import READERS, open_document
from workflows.enums import RunStatus
from workflows.filters import RunFilter
from workflows.forms import CancelForm, OutcomeForm
from workflows.models import Document, Run
from workflows.receipt import NoReceiptYet, receipt
from workflows.screens.listing import run_list
from workflows.screens.run import CANCELLERS, run_screen
from workflows.screens.story import story_of
from workflows.screens.words import code_words, known_outcomes, title_of
from workflows.selectors import get_run, runs_newest_first

ANY_ROLE: Final = tuple(Role)
CANCEL_RESULTS: Final = {
    "cancelled": "The run is cancelled.",
    "cancel_requested": "Something was sent already. The run stops as soon as it is settled what has happened.",
}


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def runs(request: HttpRequest) -> HttpResponse:
    """The tenant's runs, newest first."""
    tenant_id = membership_of(request).tenant_id
    filters = RunFilter(request.GET, queryset=runs_newest_first(tenant_id), tenant_id=tenant_id)
    now = db_clock()
    screen = run_list(
        tenant_id=tenant_id, runs=filters.qs, query=request.GET, filtered=filters.is_active, now=now
    )
    template = "workflows/includes/list.html" if asks_for(request, "runs") else "workflows/runs.html"
    return render(request, template, {"runs": screen, "filter": filters, "now": now})


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """One run. Its fragment asks again by itself, and is told 204 while nothing has changed."""
    now, story = db_clock(), story_of(run_of(request, run_id))
    fragment = asks_for(request, "run")
    if fragment and request.GET.get("version") == story.version:
        return HttpResponse(status=204)
    screen = run_screen(story, membership_of(request), now)
    template = "workflows/includes/run.html" if fragment else "workflows/run.html"
    return render(request, template, {"run": screen, "now": now})


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def step_receipt(request: HttpRequest, run_id: UUID, key: str) -> HttpResponse:
    """The signed receipt of one step: what was decided and, apart from it, what was done."""
    found = run_of(request, run_id)
    try:
        document = receipt(found.tenant_id, found.pk, key)
    except NoReceiptYet:
        document = {}
    except NotFound as missing:
        raise Http404 from missing
    context = {
        "run": found, "title": title_of(found.workflow), "key": key, "receipt": document, "votes": _votes(document),
        "text": json.dumps(document, indent=1, ensure_ascii=True),
    }  # fmt: skip
    return render(request, "workflows/receipt.html", context)


def _votes(document: dict[str, Any]) -> list[str]:
    """Who decided what, with names for people; the signed text below it has the ids."""
    votes = document["decision"]["votes"] if document else []
    names = names_of({vote["by"] for vote in votes})
    asked = Decision.objects.filter(pk__in=[vote["decision_id"] for vote in votes], group__isnull=False)
    groups = {str(pk): name for pk, name in asked.values_list("pk", "group__name")}
    return [
        f"{code_words(vote['decision'])} by {spoken(vote['by'], names)}{_capacity(vote, groups)}"
        for vote in votes
    ]


def _capacity(vote: dict[str, Any], groups: dict[str, str]) -> str:
    """In which role, and for which group, a person voted; a rule has neither."""
    if not vote["role"]:
        return ""
    group = groups.get(vote["decision_id"])
    return f", as {Role(vote['role']).label.lower()}{f' of {visible(group)}' if group else ''}"


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*ANY_ROLE)
@never_cache
def document(request: HttpRequest, run_id: UUID, document_id: UUID) -> HttpResponse:
    """What a reference points at: its kind, size and digest; with POST, for the roles that may, its content."""
    found = run_of(request, run_id)
    row = Document.objects.filter(tenant_id=found.tenant_id, run_id=found.pk, pk=document_id).first()
    if row is None:
        raise Http404
    content, erased = "", is_erased(row)
    if request.method == "POST" and not erased:
        content = _opened(request, found, document_id)
    context: dict[str, Any] = {
        "run": found, "title": title_of(found.workflow), "document": row, "size": len(readable(row, "content") or b""),
        "kind": visible(row.kind), "content": content, "erased": erased,
        "may_open": can_role(membership_of(request), *READERS),
    }  # fmt: skip
    return render(request, "workflows/document.html", context)


def _opened(request: HttpRequest, found: Run, document_id: UUID) -> str:
    by = person_of(request)
    try:
        row = open_document(tenant_id=found.tenant_id, run_id=found.pk, document_id=document_id, by=by)
    except RoleMissing as refusal:
        raise PermissionDenied(refusal.message) from refusal
    return visible(bytes(row.content).decode("utf-8", errors="replace"))


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*CORRECTORS)
@never_cache
def outcome(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Correct what the user got: the form, and its answer."""
    found = run_of(request, run_id)
    form = OutcomeForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid() and _corrected(request, found, form):
        return redirect("workflows:run", found.pk)
    context = {
        "run": found,
        "title": title_of(found.workflow),
        "form": form,
        "known": known_outcomes(found.workflow),
    }
    return render(request, "workflows/outcome.html", context, status=422 if form.errors else 200)


def _corrected(request: HttpRequest, found: Run, form: OutcomeForm) -> bool:
    by = person_of(request)
    try:
        correct_outcome(tenant_id=found.tenant_id, run_id=found.pk, by=by, **form.cleaned_data)
    except Refused as refusal:
        form.add_error(None, refusal.message)
        return False
    return True


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*CANCELLERS)
@never_cache
def cancel(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Cancel a run: the form, and its answer."""
    found = run_of(request, run_id)
    form = CancelForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid() and _cancelled(request, found, form):
        return redirect("workflows:run", found.pk)
    ended = found.status in RunStatus.final_states
    context = {"run": found, "title": title_of(found.workflow), "form": form, "ended": ended}
    return render(request, "workflows/cancel.html", context, status=422 if form.errors else 200)


def _cancelled(request: HttpRequest, found: Run, form: CancelForm) -> bool:
    by = person_of(request)
    reason = form.cleaned_data["reason"]
    try:
        result = cancel_run(tenant_id=found.tenant_id, run_id=found.pk, reason=reason, by=by, clock=db_clock)
    except Refused as refusal:
        form.add_error(None, refusal.message)
        return False
    messages.info(request, CANCEL_RESULTS[result], "act")
    return True


def run_of(request: HttpRequest, run_id: UUID) -> Run:
    """The run of this person's tenant; 404 for missing ones and for those of others alike."""
    try:
        return get_run(membership_of(request).tenant_id, run_id)
    except Refused as missing:
        raise Http404 from missing


def membership_of(request: HttpRequest) -> Membership:
    membership: Membership = request.membership  # type: ignore[attr-defined]
    return membership


def asks_for(request: HttpRequest, target: str) -> bool:
    """Whether htmx asks for what goes into ``target``, rather than for the whole page of a history entry."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and htmx.target == target and not htmx.history_restore_request
