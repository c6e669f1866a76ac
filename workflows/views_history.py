"""The history explorer, as far as it knows runs and decisions: the story of a run, and what somebody let through."""

from typing import Any, Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from access.models import Membership
from approvals.models import Proposal
from audit.finding import as_uuid
from audit.names import PERSON, said_in
from audit.readers import for_history_readers, reader_actor
from audit.taking import LIMIT, TooMany, Wanted, take_along
from audit.through import said_through
from audit.views_taking import refuse, wanted_form
from common import cursors
from common.clock import db_clock
from common.cursors import BadCursor
from common.errors import NotFound
from common.links import same_list
from common.rates import RateLimited
from common.web import http_methods
from workflows.forms_history import LetThroughForm
from workflows.let_through import MOST_COUNTED, counted, let_through, passed
from workflows.screens.passed import COLUMNS, passed_lines, passed_rows
from workflows.screens.told import told
from workflows.selectors import get_run

LIST: Final = "let_through"
MORE: Final = ("since", "until", "policy", "automation", "through")


@http_methods(read=("GET", "HEAD"))
@for_history_readers
@never_cache
def run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """One run's whole story. 404 for missing runs and for those of other tenants alike."""
    membership = membership_of(request)
    try:
        found = get_run(membership.tenant_id, run_id)
    except NotFound as missing:
        raise Http404 from missing
    return render(request, "workflows/history/run.html", {"it": told(found, membership, db_clock())})


@http_methods(read=("GET", "HEAD"))
@for_history_readers
@never_cache
def passed_list(request: HttpRequest) -> HttpResponse:
    """Everything that a person, an automation, a policy version, … let through, and what became of it."""
    form, cursor = LetThroughForm(request.GET), request.GET.get("cursor", "")
    tenant_id = membership_of(request).tenant_id
    found = let_through(tenant_id, form.asked(db_clock()))
    try:
        page: cursors.Page[Proposal] = cursors.page(found, list_name=LIST, cursor=cursor)
    except BadCursor:
        cursor, page = "", cursors.page(found, list_name=LIST)
    count = counted(found)
    context: dict[str, Any] = {
        "form": form, "rows": passed_rows(passed(page.rows)),
        "count": f"{count:,}" if count <= MOST_COUNTED else f"more than {MOST_COUNTED:,}",
        "one": count == 1, "more": any(request.GET.get(name) for name in MORE),
        "tokens": [
            {"word": word, "value": _said(tenant_id, name, value), "without": _address(request, **{name: ""})}
            for name, word, value in form.tokens()
        ],
        "asked": form.asked_again, "limit": LIMIT, "through": form.given.get("through", ""),
        "older": _address(request, cursor=page.next_cursor) if page.next_cursor else "",
        "newest": _address(request) if cursor else "",
    }  # fmt: skip
    return render(request, "workflows/history/let_through.html", context)


@http_methods(read=(), write=("POST",))
@for_history_readers
@never_cache
def take(request: HttpRequest) -> HttpResponseBase:
    """What the list shows as a file; which is written down."""
    tenant_id, form, kind = (
        membership_of(request).tenant_id,
        LetThroughForm(request.POST),
        wanted_form(request),
    )
    wanted = Wanted(tenant_id, "let-through", kind, [(name, value) for name, _, value in form.tokens()])
    lines = passed_lines(let_through(tenant_id, form.asked(db_clock())))
    try:
        return take_along(wanted, COLUMNS, lines, by=reader_actor(request))
    except (TooMany, RateLimited) as refused:
        return refuse(request, refused, reverse("explorer:let_through"))


def _said(tenant_id: UUID, name: str, value: str) -> str:
    """People and tokens by their names, however they were asked for."""
    if name == "through":
        return said_through(tenant_id, value)
    ident = as_uuid(value.removeprefix(PERSON)) if name == "person" else None
    named = said_in(tenant_id, f"{PERSON}{ident}") if ident else value
    return value if named.startswith(PERSON) else named


def _address(request: HttpRequest, **changed: str) -> str:
    return same_list(reverse("explorer:let_through"), request.GET, **changed)


def membership_of(request: HttpRequest) -> Membership:
    membership: Membership = request.membership  # type: ignore[attr-defined]
    return membership
