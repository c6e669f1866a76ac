"""One's own wishes: what by mail, when, and in which time zone."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from access.screens.asking import actor_of, reader_of
from access.web import role_required
from common.clock import db_clock
from common.spans import iso
from common.web import http_methods
from notify import times
from notify.actions.preferences import set_preferences
from notify.forms import WishesForm
from notify.screens.telling import leaves_by
from notify.selectors import preference_of


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required()
@never_cache
def wishes(request: HttpRequest) -> HttpResponse:
    """Shown to GET, kept by POST; what was typed stays where it is refused."""
    reader = reader_of(request)
    row = preference_of(reader.tenant_id, reader.user_id)
    form, status = WishesForm(request.POST if request.method == "POST" else None, row=row), 200
    if request.method == "POST":
        if form.is_valid():
            set_preferences(
                tenant_id=reader.tenant_id, user_id=reader.user_id, wishes=form.wishes, mail=form.by_mail,
                by=actor_of(request), clock=db_clock,
            )  # fmt: skip
            messages.success(request, "Kept. What waits already keeps its time.", extra_tags="ok")
            return redirect("account_notices")
        status = 422
    leaves, how = leaves_by()
    now = db_clock()
    context = {
        "form": form, "address": reader.user.email, "leaves": leaves, "how": how, "now_iso": iso(now),
        "now_there": times.shown(now, row.zone),
    }  # fmt: skip
    return render(request, "notify/wishes.html", context, status=status)
