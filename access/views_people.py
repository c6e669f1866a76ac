"""People, their roles, groups, other accounts and duties: pages for admins, read by auditors."""

import secrets
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from access import actions, actions_people
from access.enums import DutyKind, Role
from access.filters import MemberFilter
from access.forms_people import Groups, MayWhy, NewDuty, NewPerson, OtherAccount, Roles, Why
from access.models import Duty, Group, Membership
from access.screens.asking import (
    Asked,
    Once,
    actor_of,
    do_and_say,
    is_sure,
    made_from,
    may_change,
    or_404,
    proven,
    reader_of,
    reads,
    show_once,
    uuid_or_404,
    writes,
)
from access.screens.people import by_word, group_change, leaving, people_of, person_screen, role_change
from access.tables import PeopleTable
from common.clock import db_clock
from common.errors import NotFound


@reads
def people(request: HttpRequest) -> HttpResponse:
    """Everybody with an account here, by sign-in name."""
    tenant_id = reader_of(request).tenant_id
    found = MemberFilter(request.GET, queryset=people_of(tenant_id), tenant_id=tenant_id)
    listed = by_word(found.qs, "user__username", request.GET, reverse("people:people"))
    context = {
        "listed": listed, "table": PeopleTable(listed.rows), "filter": found, "may_change": may_change(request),
    }  # fmt: skip
    return render(request, "access/people/people.html", context)


@writes
@proven("people:new_person")
def new_person(request: HttpRequest) -> HttpResponse:
    """Add somebody; the first password is shown in the answer, and nowhere else."""
    tenant = reader_of(request).tenant
    form = NewPerson(request.POST or None, tenant_id=tenant.id)
    made, status = made_from(request, form, lambda: _add(request, form.cleaned_data))
    if made is not None:
        return show_once(request, made)
    return render(request, "access/people/new_person.html", {"form": form}, status=status)


def _add(request: HttpRequest, said: dict[str, Any]) -> Once:
    by, tenant, password = actor_of(request), reader_of(request).tenant, secrets.token_urlsafe(12)
    user = actions.create_user(
        tenant=tenant, username=said["username"], password=password, display_name=said["display_name"],
        email=said["email"], roles=[Role(role) for role in said["roles"]], by=by, clock=db_clock,
    )  # fmt: skip
    for group in said["groups"]:
        actions.add_to_group(group=group, user=user, by=by, clock=db_clock)
    return Once(
        title=f"{user} can sign in", label=f"First password of {user.username}", text=password,
        says=("Give it to them on a safe way, and ask them to change it on the page of their account.",),
        back=reverse("people:person", args=[user.id]), back_word="To their page",
    )  # fmt: skip


@reads
def person(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """One person: what they may do here, and who else they are."""
    return _page(request, _member(request, user_id))


@writes
@proven("people:person")
def roles(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """Give exactly these roles, after a page that says what it means."""
    member, form = _member(request, user_id), Roles(request.POST)
    if request.method != "POST" or not form.is_valid():
        return redirect("people:person", user_id)
    wanted = form.cleaned_data["roles"]
    own = reader_of(request).user_id in member.accounts
    points = role_change(member, wanted, own=own)
    if not points:
        return redirect("people:person", user_id)
    asked = _asked(
        member, f"Change the roles of {member.user}?", points, "Change the roles",
        [("roles", role) for role in wanted], Why if own else MayWhy, request,
    )  # fmt: skip
    return do_and_say(
        request, asked, "The roles are changed.",
        lambda why: actions.set_roles(
            tenant=member.tenant, user=member.user, roles=[Role(role) for role in wanted], reason=why,
            by=actor_of(request), clock=db_clock,
        ),
    )  # fmt: skip


@writes
@proven("people:person")
def groups(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """Put them into exactly these groups, after a page that says what it means."""
    member = _member(request, user_id)
    form = Groups(request.POST, tenant_id=member.tenant_id)
    if request.method != "POST" or not form.is_valid():
        return redirect("people:person", user_id)
    wanted: list[Group] = list(form.cleaned_data["groups"])
    points = group_change(member, wanted)
    if not points:
        return redirect("people:person", user_id)
    asked = _asked(
        member, f"Change the groups of {member.user}?", points, "Change the groups",
        [("groups", str(group.pk)) for group in wanted], None, request,
    )  # fmt: skip
    return do_and_say(request, asked, "The groups are changed.", lambda _: _regroup(request, member, wanted))


def _regroup(request: HttpRequest, member: Membership, wanted: Sequence[Group]) -> None:
    by, before = actor_of(request), set(member.groups.all())
    for group in sorted(set(wanted) - before, key=lambda each: each.name):
        actions.add_to_group(group=group, user=member.user, by=by, clock=db_clock)
    for group in sorted(before - set(wanted), key=lambda each: each.name):
        actions.remove_from_group(group=group, user=member.user, by=by, clock=db_clock)


@writes
@proven("people:person")
def deactivate(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """End somebody's membership here."""
    member = _member(request, user_id)
    points = [
        "Their sessions end at their next click, on every device.", *leaving(member),
        "Their account in other organisations, if there is one, stays. You can let them back in later.",
    ]  # fmt: skip
    asked = _asked(member, f"Deactivate {member.user}?", points, "Deactivate", [], Why, request)
    return do_and_say(
        request, asked, "Deactivated.",
        lambda why: actions.deactivate_membership(
            tenant=member.tenant, user=member.user, by=actor_of(request), clock=db_clock, reason=why
        ),
    )  # fmt: skip


@writes
@proven("people:person")
def reactivate(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """Let somebody back in, with the roles they had."""
    member = _member(request, user_id)
    points = [
        "They sign in again, with the roles and groups they had.",
        "What was voided meanwhile stays so.",
    ]
    asked = _asked(
        member, f"Let {member.user} back in?", points, "Reactivate", [], MayWhy, request, harmless=True
    )
    return do_and_say(
        request, asked, "Reactivated.",
        lambda why: actions_people.reactivate_membership(
            tenant=member.tenant, user=member.user, by=actor_of(request), clock=db_clock, reason=why
        ),
    )  # fmt: skip


@writes
@proven("people:person")
def link(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """Say that another account is the same person."""
    member = _member(request, user_id)
    form = OtherAccount(request.POST, membership=member)
    if request.method != "POST" or not form.is_valid():
        return redirect("people:person", user_id)
    other: Membership = form.cleaned_data["other"]
    points = [
        "Together they have one vote: where two people are asked, they are one.",
        "What either of them asked for, the other does not decide either.",
        "Taking them apart again needs another admin, and a reason.",
    ]
    asked = _asked(
        member, f"Are {member.user} and {other.user} the same person?", points, "They are the same person",
        [("other", str(other.pk))], MayWhy, request,
    )  # fmt: skip
    return do_and_say(
        request, asked, "They count as one person.",
        lambda why: actions_people.link_accounts(
            tenant=member.tenant, user=member.user, other=other.user, by=actor_of(request), clock=db_clock, reason=why
        ),
    )  # fmt: skip


@writes
@proven("people:person")
def unlink(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """Say that this account is a person of its own."""
    member = _member(request, user_id)
    points = [
        "It has a vote of its own again.",
        "What was proposed before stays closed to all accounts it was closed to.",
    ]
    asked = _asked(
        member, f"Is {member.user} a person of their own?", points, "A person of their own", [], Why, request
    )
    return do_and_say(
        request, asked, "They count as another person.",
        lambda why: actions_people.unlink_account(
            tenant=member.tenant, user=member.user, by=actor_of(request), clock=db_clock, reason=why
        ),
    )  # fmt: skip


@writes
@proven("people:person")
def duty(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """Say what somebody answers for: they do not decide on it from now on."""
    member, form = _member(request, user_id), NewDuty(request.POST)
    if request.method != "POST":
        return redirect("people:person", user_id)
    _, status = made_from(request, form, lambda: _give_duty(request, member, form.cleaned_data))
    if status != 200:
        return _page(request, member, duty_form=form, status=status)
    messages.info(request, "Noted. It counts for what is proposed from now on.", "ok")
    return redirect("people:person", user_id)


def _give_duty(request: HttpRequest, member: Membership, said: dict[str, Any]) -> object:
    return actions_people.give_duty(
        tenant=member.tenant, user=member.user, kind=DutyKind(said["kind"]), workflow=said["workflow"],
        policy_version=said["policy_version"], by=actor_of(request), clock=db_clock,
    )  # fmt: skip


@writes
@proven("people:person")
def end_duty(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """They no longer answer for it."""
    member = _member(request, user_id)
    asked_for = request.POST.get("duty") or request.GET.get("duty", "")
    found: Duty = or_404(
        Duty.objects.filter(tenant_id=member.tenant_id, user_id=user_id, pk=uuid_or_404(asked_for)).first()
    )
    points = [f"They may decide on what {found.workflow} proposes from then on, if they are asked."]
    asked = _asked(
        member, f"{member.user} no longer answers for {found.workflow}?", points, "End it",
        [("duty", str(found.pk))], Why, request,
    )  # fmt: skip
    return do_and_say(
        request, asked, "Ended.",
        lambda why: actions_people.end_duty(
            tenant=member.tenant, duty_id=found.pk, by=actor_of(request), clock=db_clock, reason=why
        ),
    )  # fmt: skip


# -- parts ------------------------------------------------------------------------------------------------------


def _member(request: HttpRequest, user_id: UUID) -> Membership:
    """The person's membership here, active or not. Raises NotFound."""
    found = people_of(reader_of(request).tenant_id).select_related("tenant").filter(user_id=user_id).first()
    if found is None:
        raise NotFound
    return found


def _page(
    request: HttpRequest, member: Membership, *, duty_form: NewDuty | None = None, status: int = 200
) -> HttpResponse:
    screen = person_screen(member, reader_of(request))
    context = {
        "person": screen, "roles_form": Roles(initial={"roles": member.roles}),
        "groups_form": Groups(initial={"groups": screen.groups}, tenant_id=member.tenant_id),
        "other_form": OtherAccount(membership=member), "duty_form": duty_form or NewDuty(),
    }  # fmt: skip
    return render(request, "access/people/person.html", context, status=status)


def _asked(
    member: Membership, sentence: str, points: Sequence[str], button: str, hidden: Sequence[tuple[str, str]],
    form: type[forms.Form] | None, request: HttpRequest, *, harmless: bool = False,
) -> Asked:  # fmt: skip
    bound = form(request.POST if is_sure(request) else None) if form is not None else None
    back = reverse("people:person", args=[member.user_id])
    return Asked(str(member.user), sentence, points, button, back, bound, hidden, harmless=harmless)
