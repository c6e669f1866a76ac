"""Groups, and the organisation itself with its posture: pages for admins, read by auditors."""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from access import actions, actions_posture
from access.forms_agents import BreakGlassForm
from access.forms_people import MayWhy, NewGroup
from access.models import BreakGlass, Group, Membership
from access.screens.asking import (
    Asked,
    actor_of,
    do_and_say,
    made_from,
    may_change,
    or_404,
    proven,
    reader_of,
    reads,
    writes,
)
from access.screens.people import by_word, groups_with_counts
from access.selectors import break_glass_of
from access.tables import GroupTable, PeopleTable
from common.clock import db_clock


@reads
def groups(request: HttpRequest) -> HttpResponse:
    """All groups, by name."""
    return _groups_page(request, NewGroup())


@writes
def new_group(request: HttpRequest) -> HttpResponse:
    """A new, empty group."""
    if request.method != "POST":
        return redirect("people:groups")
    form, tenant = NewGroup(request.POST), reader_of(request).tenant
    made, status = made_from(request, form, lambda: actions.create_group(
        tenant=tenant, name=form.cleaned_data["name"], by=actor_of(request), clock=db_clock
    ))  # fmt: skip
    if made is not None:
        messages.info(request, "Made. Put people into it on their own pages.", "ok")
        return redirect("people:group", made.pk)
    return _groups_page(request, form, status)


def _groups_page(request: HttpRequest, form: NewGroup, status: int = 200) -> HttpResponse:
    mine = groups_with_counts(reader_of(request).tenant_id)
    listed = by_word(mine, "name", request.GET, reverse("people:groups"))
    context = {
        "listed": listed, "table": GroupTable(listed.rows), "form": form, "may_change": may_change(request)
    }  # fmt: skip
    return render(request, "access/people/groups.html", context, status=status)


@reads
def group(request: HttpRequest, group_id: UUID) -> HttpResponse:
    """One group and who reviews for it."""
    tenant_id = reader_of(request).tenant_id
    found: Group = or_404(Group.objects.filter(tenant_id=tenant_id, pk=group_id).first())
    members = Membership.objects.filter(tenant_id=tenant_id, groups=found)
    shown = members.select_related("user").prefetch_related("groups")
    listed = by_word(shown, "user__username", request.GET, reverse("people:group", args=[group_id]))
    context = {"group": found, "listed": listed, "table": PeopleTable(listed.rows)}
    return render(request, "access/people/group.html", context)


@reads
def organisation(request: HttpRequest) -> HttpResponse:
    """Its name, its limits, and its posture now and before."""
    return _organisation(request, BreakGlassForm())


@writes
@proven("people:organisation")
def break_glass(request: HttpRequest) -> HttpResponse:
    """Let one person decide on their own proposals, after a page that says what it means."""
    form = BreakGlassForm(request.POST)
    if request.method != "POST":
        return redirect("people:organisation")
    if not form.is_valid():
        return _organisation(request, form, 422)
    why, until = form.cleaned_data["why"], form.cleaned_data["until"]
    asked = Asked(
        title="Break-glass", sentence=f"Let one person decide on their own proposals until {until:%d %B %Y}?",
        points=(
            "Whoever reviews here may approve what they, or an automation of theirs, asked for.",
            "Where two people are asked, it still takes two.",
            "Every page says so while it is on, and every decision, its receipt and the history say it for good.",
            f"Why: “{why}”",
        ),
        button="Switch it on", back=reverse("people:organisation"), tab="organisation",
        hidden=(("why", why), ("until", until.isoformat())),
    )  # fmt: skip
    return do_and_say(
        request, asked, "Break-glass is on.",
        lambda _: actions_posture.turn_on(
            tenant=reader_of(request).tenant, reason=why, ends_at=form.ends_at, by=actor_of(request), clock=db_clock
        ),
    )  # fmt: skip


@writes
def break_glass_off(request: HttpRequest) -> HttpResponse:
    """End it; no proof is asked for, as it takes rights away only."""
    form = MayWhy(request.POST)
    if request.method == "POST" and form.is_valid():
        ended = actions_posture.turn_off(
            tenant=reader_of(request).tenant,
            by=actor_of(request),
            clock=db_clock,
            reason=form.cleaned_data["why"],
        )
        messages.info(request, "Break-glass is off." if ended else "It was off already.", "ok")
    return redirect("people:organisation")


def _organisation(request: HttpRequest, form: BreakGlassForm, status: int = 200) -> HttpResponse:
    tenant = reader_of(request).tenant
    before = BreakGlass.objects.filter(tenant=tenant).exclude(ended_at=None)
    context = {
        "tenant": tenant, "form": form, "off_form": MayWhy(), "may_change": may_change(request),
        "on": break_glass_of(tenant.id), "before": list(before.order_by("-created_at", "-id")[:20]),
        "limits": [("Open proposals of one automation", f"{settings.PLACET_OPEN_PROPOSALS} at a time")],
    }  # fmt: skip
    return render(request, "access/people/organisation.html", context, status=status)
