"""What the pages of people and groups show: each screen is one value, made of a few reads."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import Count, F, Model, Q, QuerySet
from django.http import QueryDict
from django.urls import reverse

from access.enums import Role
from access.hooks import effects_of
from access.models import Agent, Duty, Group, Membership
from access.policies import PEOPLE_MANAGERS
from common.links import same_list

PAGE: Final = 50
Row = TypeVar("Row", bound=Model)

TABS: Final = (
    ("people", "People", "people:people"),
    ("groups", "Groups", "people:groups"),
    ("automations", "Automations", "people:agents"),
    ("tokens", "Tokens", "people:tokens"),
    ("hours", "Hours", "people:hours"),
    ("organisation", "Organisation", "people:organisation"),
)


@dataclass(frozen=True, slots=True)
class Tab:
    word: str
    href: str
    current: bool


def tabs(current: str) -> list[Tab]:
    """The pages of this part of the desk, and those that other apps hang in here."""
    return [Tab(word, reverse(name), key == current) for key, word, name in (*TABS, *_more)]


_more: list[tuple[str, str, str]] = []


def add_tab(key: str, word: str, name: str) -> None:
    """A page of another app, under the name of its address."""
    if (key, word, name) not in _more:
        _more.append((key, word, name))


@dataclass(frozen=True, slots=True)
class Stretch:
    """One page of a list that is ordered by a word that no two rows share."""

    rows: list[Any]
    first: str
    more: str


def by_word(found: QuerySet[Row], field: str, query: QueryDict, here: str) -> Stretch:
    """Rows after the word in ``cursor``: pages do not shift while rows come and go."""
    after = query.get("cursor", "").replace("\0", "")
    listed = found.filter(**{f"{field}__gt": after}) if after else found
    rows = list(listed.order_by(field, "pk").annotate(listed_by=F(field))[: PAGE + 1])
    behind = rows[PAGE - 1].listed_by if len(rows) > PAGE else ""  # type: ignore[attr-defined]
    more = same_list(here, query, cursor=behind) if behind else ""
    return Stretch(rows[:PAGE], same_list(here, query) if after else "", more)


def people_of(tenant_id: UUID) -> QuerySet[Membership]:
    return Membership.objects.filter(tenant_id=tenant_id).select_related("user").prefetch_related("groups")


def groups_with_counts(tenant_id: UUID) -> QuerySet[Group]:
    active = Q(members__is_active=True, members__user__is_active=True)
    return Group.objects.filter(tenant_id=tenant_id).annotate(people=Count("members", filter=active))


@dataclass(frozen=True, slots=True)
class PersonScreen:
    """Everything about one person in one organisation."""

    membership: Membership
    me: bool
    active: bool
    groups: tuple[Group, ...]
    accounts: tuple[Membership, ...]
    duties: tuple[Duty, ...]
    agents: tuple[Agent, ...]
    may_change: bool
    history: str


def person_screen(membership: Membership, reader: Membership) -> PersonScreen:
    tenant_id, user_id = membership.tenant_id, membership.user_id
    others = Membership.objects.filter(tenant_id=tenant_id, user_id__in=membership.accounts - {user_id})
    behind = Q(acts_for=user_id) | Q(owner=user_id)
    return PersonScreen(
        membership=membership, me=reader.user_id in membership.accounts,
        active=membership.is_active and membership.user.is_active, groups=tuple(membership.groups.order_by("name")),
        accounts=tuple(others.select_related("user").order_by("user__username")),
        duties=tuple(Duty.objects.filter(tenant_id=tenant_id, user=user_id, ended_at=None).order_by("workflow", "id")),
        agents=tuple(Agent.objects.filter(behind, tenant_id=tenant_id).order_by("name")),
        may_change=reader.has_role(*PEOPLE_MANAGERS), history=f"{reverse('audit:history')}?subject={user_id}",
    )  # fmt: skip


def leaving(membership: Membership) -> list[str]:
    """What follows when this account stops counting: sentences for a page of confirmation."""
    agents = Agent.objects.filter(tenant_id=membership.tenant_id, acts_for=membership.user_id, is_active=True)
    says = effects_of(membership.tenant_id, [membership.user_id])
    names = ", ".join(agents.order_by("name").values_list("name", flat=True))
    if names:
        says.append(f"Automations that act for them are refused from then on: {names}.")
    return says


def role_change(membership: Membership, wanted: Collection[str], *, own: bool) -> list[str]:
    """What a change of roles means, before it is made."""
    gets = [role.label for role in Role if role in wanted and role not in membership.roles]
    loses = [role.label for role in Role if role in membership.roles and role not in wanted]
    says = [f"Gets: {', '.join(gets)}."] if gets else []
    if loses:
        says.append(f"Loses: {', '.join(loses)}. It counts at once, on pages that are open too.")
    if Role.REVIEWER in membership.roles and Role.REVIEWER not in wanted:
        says += effects_of(membership.tenant_id, [membership.user_id])
    if own:
        says.append("These are your own roles: the history says that you gave them to yourself.")
        if Role.REVIEWER in wanted:
            says.append("What you, or an automation of yours, asked for stays closed to you.")
    return says


def group_change(membership: Membership, wanted: Sequence[Group]) -> list[str]:
    """What leaving groups means."""
    before, after = set(membership.groups.all()), set(wanted)
    gets, loses = (sorted(group.name for group in part) for part in (after - before, before - after))
    says = [f"Joins: {', '.join(gets)}."] if gets else []
    if loses:
        says.append(
            f"Leaves: {', '.join(loses)}. What they approved for it and was not sent yet goes back to review."
        )
        says += effects_of(membership.tenant_id, [membership.user_id])
    return says
