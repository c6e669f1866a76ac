"""Filters of the lists of people, automations and tokens."""

from typing import Any, ClassVar

import django_filters
from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from access.enums import Role
from access.models import Agent, ApiToken, Group, GroupMembership, Membership
from common.display import visible

STATES = [("active", "Active"), ("inactive", "Deactivated")]
TOKEN_STATES = [("valid", "Valid"), ("expired", "Ended"), ("revoked", "Revoked")]


def _find(placeholder: str) -> forms.TextInput:
    words = {
        "placeholder": placeholder,
        "aria-label": "Find",
        "maxlength": "120",
        "type": "search",
        "class": "grow",
    }
    return forms.TextInput(attrs=words)


def _select(label: str) -> forms.Select:
    return forms.Select(attrs={"aria-label": label})


class Listed(django_filters.FilterSet):  # type: ignore[misc]
    """A list that can say whether anything narrows it."""

    @property
    def is_active(self) -> bool:
        return bool(self.form.is_valid() and any(self.form.cleaned_data.values()))


class MemberFilter(Listed):
    """Words in a name or address, role, group, state."""

    q = django_filters.CharFilter(method="find", label="Find", widget=_find("Name or address"))
    role = django_filters.ChoiceFilter(
        method="with_role", label="Role", empty_label="Any role", choices=Role.choices, widget=_select("Role")
    )
    group = django_filters.ModelChoiceFilter(
        method="in_group", label="Group", empty_label="Any group", queryset=Group.objects.none(),
        widget=_select("Group"),
    )  # fmt: skip
    state = django_filters.ChoiceFilter(
        method="in_state", label="State", empty_label="Any state", choices=STATES, widget=_select("State")
    )

    class Meta:
        model = Membership
        fields: ClassVar[list[str]] = []

    def __init__(self, *args: Any, tenant_id: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.filters["group"].queryset = Group.objects.filter(tenant_id=tenant_id).order_by("name", "id")
        self.form.fields["group"].label_from_instance = lambda group: visible(group.name)

    def find(self, found: QuerySet[Membership], name: str, value: str) -> QuerySet[Membership]:
        words = Q(user__username__icontains=value) | Q(user__display_name__icontains=value)
        return found.filter(words | Q(user__email__icontains=value))

    def with_role(self, found: QuerySet[Membership], name: str, value: str) -> QuerySet[Membership]:
        return found.filter(roles__contains=[value])

    def in_group(self, found: QuerySet[Membership], name: str, value: Group) -> QuerySet[Membership]:
        places = GroupMembership.objects.filter(membership_id=OuterRef("pk"), group=value)
        return found.filter(Exists(places))

    def in_state(self, found: QuerySet[Membership], name: str, value: str) -> QuerySet[Membership]:
        active = Q(is_active=True, user__is_active=True)
        return found.filter(active if value == "active" else ~active)


class AgentFilter(Listed):
    """Words in its name or its system, and state."""

    q = django_filters.CharFilter(method="find", label="Find", widget=_find("Name or system"))
    state = django_filters.ChoiceFilter(
        method="in_state", label="State", empty_label="Any state", choices=STATES, widget=_select("State")
    )

    class Meta:
        model = Agent
        fields: ClassVar[list[str]] = []

    def find(self, found: QuerySet[Agent], name: str, value: str) -> QuerySet[Agent]:
        return found.filter(Q(name__icontains=value) | Q(acts_for_system__icontains=value))

    def in_state(self, found: QuerySet[Agent], name: str, value: str) -> QuerySet[Agent]:
        return found.filter(is_active=value == "active")


class TokenFilter(Listed):
    """The beginning of a token, and state. Of a whole token only its first characters are looked at."""

    q = django_filters.CharFilter(
        method="begins", label="Find", widget=_find("Begins with plc_…, or automation")
    )
    state = django_filters.ChoiceFilter(
        method="in_state",
        label="State",
        empty_label="Any state",
        choices=TOKEN_STATES,
        widget=_select("State"),
    )

    class Meta:
        model = ApiToken
        fields: ClassVar[list[str]] = []

    def begins(self, found: QuerySet[ApiToken], name: str, value: str) -> QuerySet[ApiToken]:
        return found.filter(Q(prefix__startswith=value[:12]) | Q(agent__name__icontains=value))

    def in_state(self, found: QuerySet[ApiToken], name: str, value: str) -> QuerySet[ApiToken]:
        if value == "revoked":
            return found.filter(revoked_at__isnull=False)
        live = found.filter(revoked_at=None)
        return live.filter(expires_at__gt=Now()) if value == "valid" else live.filter(expires_at__lte=Now())
