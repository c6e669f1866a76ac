"""Evidence that is too long for the proposal's page: read a page at a time, and only when somebody asks for it."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from access.web import role_required
from approvals.screens.evidence import evidence_page
from approvals.screens.proposal import readable_view
from approvals.views import proposal_of, reader_of
from common.web import http_methods


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def evidence(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """One page of one piece; 404 for pieces and pages that are not there, or not for this reader."""
    row = proposal_of(request, proposal_id)
    found = evidence_page(
        row, readable_view(row), _number(request, "piece"), _number(request, "page"),
        sees_personal=reader_of(request).sees_personal,
    )  # fmt: skip
    if found is None:
        raise Http404
    return render(request, "approvals/evidence.html", {"page": found, "proposal": row})


def _number(request: HttpRequest, name: str) -> int:
    """A counted thing in the address, 1 where it is not named; 0, which nothing has, for what is no number."""
    asked = request.GET.get(name, "1")
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 0
