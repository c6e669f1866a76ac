"""Being away, with a deputy: one's own, and as an admin for whoever cannot say it; and the hours people work in."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from access import actions_absence, actions_hours
from access.forms_absence import NewAbsence, WeekForm, WhoseHours, initial_week
from access.models import Absence, Group, Membership, WorkingHours
from access.screens.absences import absence_screen, hours_rows, who_is_away
from access.screens.asking import (
    actor_of,
    made_from,
    may_change,
    or_404,
    proven,
    reader_of,
    reads,
    uuid_or_404,
    writes,
)
from access.web import role_required
from common.clock import db_clock
from common.errors import NotFound
from common.web import http_methods

_OWN = "account_absences"


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required()
@never_cache
def mine(request: HttpRequest) -> HttpResponse:
    """One's own absences. Saying one needs a fresh proof of who it is: it opens decisions to somebody else."""
    if request.method != "POST":
        return _page(request, reader_of(request))
    return _note_mine(request)


@proven(_OWN)
def _note_mine(request: HttpRequest) -> HttpResponse:
    return _note(request, reader_of(request), back=_OWN)


@http_methods(read=(), write=("POST",))
@role_required()
@never_cache
def end_mine(request: HttpRequest) -> HttpResponse:
    """Take one's own absence back. It only takes rights away."""
    return _end(request, reader_of(request), back=reverse(_OWN))


@reads
def of_person(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """Somebody's absences, for admins and auditors."""
    return _page(request, _member(request, user_id))


@writes
@proven("people:absences")
def note(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """Say for somebody that they are away, as for who fell ill."""
    member = _member(request, user_id)
    if request.method != "POST":
        return redirect("people:absences", user_id)
    return _note(request, member, back="people:absences")


@writes
@proven("people:absences")
def end(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """Take somebody's absence back."""
    back = reverse("people:absences", args=[user_id])
    member = _member(request, user_id)
    return _end(request, member, back=back) if request.method == "POST" else redirect(back)


def _note(request: HttpRequest, member: Membership, *, back: str) -> HttpResponse:
    form = NewAbsence(request.POST, membership=member)
    made, status = made_from(request, form, lambda: _noted(request, member, form.cleaned_data))
    if made is not None:
        messages.info(request, "Noted.", "ok")
        return redirect(back) if back == _OWN else redirect(back, member.user_id)
    return _page(request, member, form=form, status=status)


def _noted(request: HttpRequest, member: Membership, said: dict[str, Any]) -> object:
    return actions_absence.note_absence(
        tenant=member.tenant, user=member.user, starts_at=said["starts"], ends_at=said["ends"], zone=said["zone"],
        deputy=said["deputy"].user if said["deputy"] else None, group=said["group"], by=actor_of(request),
        clock=db_clock,
    )  # fmt: skip


def _end(request: HttpRequest, member: Membership, *, back: str) -> HttpResponse:
    asked = uuid_or_404(request.POST.get("absence", ""))
    theirs = Absence.objects.filter(tenant_id=member.tenant_id, user__in=member.accounts, pk=asked)
    found: Absence = or_404(theirs.first())
    ended = actions_absence.end_absence(
        tenant=member.tenant, absence_id=found.pk, by=actor_of(request), clock=db_clock
    )
    text = "Taken back. What was approved meanwhile stays approved." if ended else "It was over already."
    messages.info(request, text, "ok" if ended else "wait")
    return redirect(back)


def _member(request: HttpRequest, user_id: UUID) -> Membership:
    found = Membership.objects.filter(tenant_id=reader_of(request).tenant_id, user_id=user_id)
    member = found.select_related("user", "tenant").first()
    if member is None:
        raise NotFound
    return member


def _page(
    request: HttpRequest, member: Membership, *, form: NewAbsence | None = None, status: int = 200
) -> HttpResponse:
    own = member.pk == reader_of(request).pk and request.path == reverse(_OWN)
    screen = absence_screen(member, db_clock())
    context: dict[str, Any] = {
        "screen": screen, "own": own, "may_change": own or may_change(request),
        "form": form or NewAbsence(membership=member, initial={"zone": screen.zone}),
        "note_at": reverse(_OWN) if own else reverse("people:note_absence", args=[member.user_id]),
        "end_at": reverse("account_end_absence") if own else reverse("people:end_absence", args=[member.user_id]),
    }  # fmt: skip
    template = "access/people/absences.html"
    return render(request, template, context, status=status)


@reads
def hours(request: HttpRequest) -> HttpResponse:
    """When everybody works, and who is away."""
    tenant_id = reader_of(request).tenant_id
    context = {
        "rows": hours_rows(tenant_id), "away": who_is_away(tenant_id, db_clock()), "may_change": may_change(request),
    }  # fmt: skip
    return render(request, "access/people/hours.html", context)


@writes
def set_hours(request: HttpRequest) -> HttpResponse:
    """The week of a group, or of the organisation where none is named: shown to GET, kept by POST."""
    member, group = reader_of(request), _whose(request)
    row = WorkingHours.objects.filter(tenant_id=member.tenant_id, group=group).first()
    form = WeekForm(request.POST or None, initial=initial_week(row))
    made, status = made_from(request, form, lambda: actions_hours.set_hours(
        tenant=member.tenant, group=group, by=actor_of(request), clock=db_clock,
        **{name: form.cleaned_data[name] for name in ("zone", "week", "holidays")},
    ))  # fmt: skip
    if made is not None:
        messages.info(request, "Kept. What waits is counted again.", "ok")
        return redirect("people:hours")
    context = {"form": form, "group": group, "row": row}
    return render(request, "access/people/set_hours.html", context, status=status)


@writes
def clear_hours(request: HttpRequest) -> HttpResponse:
    """The group works as the organisation does, the organisation always."""
    if request.method == "POST":
        tenant = reader_of(request).tenant
        actions_hours.clear_hours(tenant=tenant, group=_whose(request), by=actor_of(request), clock=db_clock)
        messages.info(request, "Cleared.", "ok")
    return redirect("people:hours")


def _whose(request: HttpRequest) -> Group | None:
    form = WhoseHours({"group": request.POST.get("group") or request.GET.get("group", "")},
                      membership=reader_of(request))  # fmt: skip
    if not form.is_valid():
        raise NotFound
    found: Group | None = form.cleaned_data["group"]
    return found
