"""Lift a remembered rejection, from the page of what was rejected."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from access.web import role_required
from approvals import actions_rejections
from approvals.forms import LiftForm
from approvals.models import Rejection
from approvals.policies import check_can_decide
from approvals.screens.proposal import proposal_screen
from approvals.screens.refused import refusal_in_words
from approvals.views import actor_of, attempted, proposal_of, reader_of
from common.clock import db_clock
from common.errors import Refused
from common.web import http_methods

LIFTED = "Lifted. The same may be asked again."


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required()
@never_cache
def lift(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """The form, and its answer; a refusal keeps what was written and says who was faster."""
    row = proposal_of(request, proposal_id)
    form = LiftForm(request.POST if request.method == "POST" else None)
    barred = attempted(lambda: check_can_decide(row, actor_of(request)))
    refusal = barred if isinstance(barred, Refused) else None
    if refusal is None and form.is_valid():
        done = attempted(lambda: actions_rejections.lift(
            tenant_id=row.tenant_id, proposal_id=row.pk, why=form.cleaned_data["why_text"], by=actor_of(request),
            clock=db_clock,
        ))  # fmt: skip
        if not isinstance(done, Refused):
            messages.info(request, LIFTED, "act")
            return redirect("approvals:proposal", row.pk)
        refusal = done
    screen = proposal_screen(row, reader_of(request))
    status = refusal.http_status if refusal else 422 if form.errors else 200
    told = refusal_in_words(screen, refusal) if refusal else None
    found = Rejection.objects.filter(tenant_id=row.tenant_id, proposal=row).first()
    holds = found is not None and found.holds(screen.now)
    context = {"page": screen, "form": form, "refusal": told, "holds": holds and refusal is None}
    return render(request, "approvals/lift.html", context, status=status)
