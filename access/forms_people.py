"""Forms of the pages of people and groups. They read, and decide nothing."""

from typing import Any
from uuid import UUID

from django import forms

from access.enums import DutyKind, Role
from access.models import Group, Membership
from access.policies import LONGEST_REASON
from common.display import visible

ROLE_SAYS = {
    Role.REVIEWER: "decides on what is asked of their groups",
    Role.OPERATOR: "repairs what stopped, freezes, says what became of an unknown outcome",
    Role.AUDITOR: "reads everything, changes nothing",
    Role.OWNER: "answers for workflows: repairs and freezes as an operator, sees personal fields",
    Role.ADMIN: "manages people, automations and tokens",
}


def reason_field(label: str = "Why", *, required: bool = True) -> forms.CharField:
    return forms.CharField(
        label=label, required=required, max_length=LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="It stands in the history for good.",
        error_messages={"required": "Say why: whoever finds it later must know."},
    )  # fmt: skip


def roles_field() -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label="Roles", required=False, widget=forms.CheckboxSelectMultiple,
        choices=[(role.value, f"{role.label}: {says}") for role, says in ROLE_SAYS.items()],
    )  # fmt: skip


class GroupsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Groups by name, hidden characters shown."""

    def label_from_instance(self, obj: Any) -> str:
        return visible(obj.name)


def groups_field() -> GroupsField:
    return GroupsField(
        label="Groups", required=False, widget=forms.CheckboxSelectMultiple, queryset=Group.objects.none()
    )


def as_shown(text: str) -> str:
    """The text without blanks around it. Raises ValidationError where a reader would see another one."""
    text = text.strip()
    if visible(text) != text:
        raise forms.ValidationError("There is a hidden or misleading character in it.")
    return text


def groups_of(tenant_id: UUID) -> Any:
    return Group.objects.filter(tenant_id=tenant_id).order_by("name", "id")


class NewPerson(forms.Form):
    """Somebody who signs in: the first password is made by us and shown once."""

    username = forms.CharField(
        label="Sign-in name", max_length=150, help_text="What they type to sign in. It does not change later.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
        error_messages={"required": "Everybody needs a name to sign in with."},
    )  # fmt: skip
    display_name = forms.CharField(
        label="Name", max_length=120, required=False, help_text="What others read."
    )
    email = forms.EmailField(label="Mail address", required=False)
    roles = roles_field()
    groups = groups_field()

    def __init__(self, *args: Any, tenant_id: UUID, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["groups"].queryset = groups_of(tenant_id)  # type: ignore[attr-defined]

    def clean_username(self) -> str:
        return as_shown(self.cleaned_data["username"])

    def clean_display_name(self) -> str:
        return as_shown(self.cleaned_data["display_name"])


class Roles(forms.Form):
    """Which roles exactly."""

    roles = roles_field()


class Groups(forms.Form):
    """Which groups exactly."""

    groups = groups_field()

    def __init__(self, *args: Any, tenant_id: UUID, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["groups"].queryset = groups_of(tenant_id)  # type: ignore[attr-defined]


class NewGroup(forms.Form):
    """A group's name, as policies call it."""

    name = forms.CharField(
        label="Name", max_length=120, help_text="As the policies of your workflows call it, letter by letter.",
        error_messages={"required": "A group needs a name."},
    )  # fmt: skip

    def clean_name(self) -> str:
        return as_shown(self.cleaned_data["name"])


class OtherAccount(forms.Form):
    """Another account of the same person, chosen from those of the organisation."""

    other = forms.ModelChoiceField(
        label="Other account", queryset=Membership.objects.none(), empty_label="Choose…",
        error_messages={"required": "Choose the other account."},
    )  # fmt: skip

    def __init__(self, *args: Any, membership: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = Membership.objects.filter(tenant_id=membership.tenant_id).exclude(
            user_id__in=membership.accounts
        )
        field: Any = self.fields["other"]
        field.queryset = others.select_related("user").order_by("user__username", "id")
        field.label_from_instance = lambda row: visible(f"{row.user} ({row.user.username})")


class NewDuty(forms.Form):
    """What a person answers for."""

    kind = forms.ChoiceField(label="Duty", choices=DutyKind.choices)
    workflow = forms.CharField(
        label="Workflow", max_length=60, help_text="Its technical name, such as refund-triage.",
        error_messages={"required": "Say which workflow."},
    )  # fmt: skip
    policy_version = forms.IntegerField(
        label="Policy version", required=False, min_value=1, help_text="Empty: every version."
    )

    def clean_workflow(self) -> str:
        return as_shown(self.cleaned_data["workflow"])


class Why(forms.Form):
    """A reason that has to be given."""

    why = reason_field()


class MayWhy(forms.Form):
    """A reason that may be given."""

    why = reason_field("Why, if you want to say", required=False)
