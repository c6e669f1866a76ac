"""Forms of the pages of automations, tokens and the organisation. They read, and decide nothing."""

from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django import forms

from access import hooks
from access.enums import Scope
from access.forms_people import as_shown, reason_field
from access.models import Agent, User
from common.display import visible

SCOPE_SAYS = {
    Scope.RUNS_WRITE: "start runs, supply data, cancel",
    Scope.RUNS_READ: "read runs and what was attempted",
    Scope.PROPOSALS_WRITE: "propose actions, withdraw its own",
    Scope.PROPOSALS_READ: "read proposals and their decisions",
    Scope.RESULTS_READ: "read results, which may hold personal data",
    Scope.AUDIT_READ: "read the history",
}
LIVES = [("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "365 days")]
OVERLAPS = [("0", "at once"), ("1", "after 1 hour"), ("24", "after 24 hours"), ("168", "after 7 days")]


def names(text: str) -> list[str]:
    """The names in a text, by lines and commas."""
    return sorted({name.strip() for name in text.replace(",", "\n").splitlines()} - {""})


class Person(forms.ModelChoiceField):  # type: ignore[type-arg]
    """An active person of the organisation."""

    def __init__(self, label: str, help_text: str) -> None:
        super().__init__(
            User.objects.none(), label=label, help_text=help_text, required=False, empty_label="Nobody"
        )

    def label_from_instance(self, obj: Any) -> str:
        return visible(f"{obj} ({obj.username})")


class Bounds(forms.Form):
    """Whom an automation acts for, who answers for it, and what it may ask for."""

    acts_for = Person("Acts for", "The person whose work it does. They never decide on what it asks for.")
    acts_for_system = forms.CharField(
        label="Or for a system",
        max_length=120,
        required=False,
        help_text="Such as helpdesk. Not beside a person.",
    )
    owner = Person(
        "Answers for it", "Who set it up, or sees to it. They never decide on what it asks for either."
    )
    workflows = forms.CharField(
        label="Workflows", required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="One a line; none while this is empty. What is not among them is refused, and stands in the history.",
    )  # fmt: skip
    any_workflow = forms.BooleanField(label="Any workflow", required=False)
    operations = forms.CharField(
        label="Operations", required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="One a line; none while this is empty. What a workflow proposes is the workflow's own code.",
    )  # fmt: skip
    any_operation = forms.BooleanField(label="Any operation", required=False)

    def __init__(self, *args: Any, tenant_id: UUID, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people = User.objects.filter(
            is_active=True, memberships__tenant_id=tenant_id, memberships__is_active=True
        ).order_by("username", "id")
        for name in ("acts_for", "owner"):
            self.fields[name].queryset = people  # type: ignore[attr-defined]
        for name, known in zip(("workflows", "operations"), hooks.installed(), strict=True):
            if known:
                self.fields[name].help_text += f" Installed here: {', '.join(known)}."

    def clean_acts_for_system(self) -> str:
        return as_shown(self.cleaned_data["acts_for_system"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("acts_for") and cleaned.get("acts_for_system"):
            self.add_error("acts_for_system", "It acts for a person or for a system, not for both.")
        return cleaned

    def bounds(self) -> dict[str, Any]:
        """The arguments of the actions, of a valid form."""
        said = self.cleaned_data
        return {
            "acts_for": said["acts_for"], "acts_for_system": said["acts_for_system"], "owner": said["owner"],
            "workflows": None if said["any_workflow"] else names(said["workflows"]),
            "operations": None if said["any_operation"] else names(said["operations"]),
        }  # fmt: skip


class NewAgent(Bounds):
    """A new automation."""

    name = forms.SlugField(
        label="Name", max_length=60, help_text="Small letters, digits and hyphens. Proposals are signed with it.",
        error_messages={
            "required": "An automation needs a name.", "invalid": "Letters, digits and hyphens only: mail-helper.",
        },
    )  # fmt: skip
    field_order = ("name",)


def as_said(agent: Agent) -> dict[str, Any]:
    """What the form of an automation begins with."""
    return {
        "acts_for": agent.acts_for_id, "acts_for_system": visible(agent.acts_for_system), "owner": agent.owner_id,
        "workflows": "\n".join(agent.workflows or ()), "any_workflow": agent.workflows is None,
        "operations": "\n".join(agent.operations or ()), "any_operation": agent.operations is None,
    }  # fmt: skip


class NewToken(forms.Form):
    """What a token may do, and for how long."""

    scopes = forms.MultipleChoiceField(
        label="It may", required=False, widget=forms.CheckboxSelectMultiple,
        choices=[(scope.value, f"{scope.value}: {says}") for scope, says in SCOPE_SAYS.items()],
    )  # fmt: skip
    days = forms.ChoiceField(label="It ends after", choices=LIVES, initial="90")

    @property
    def life(self) -> timedelta:
        return timedelta(days=int(self.cleaned_data["days"]))


class Rotate(forms.Form):
    """How long the old token goes on beside the new one."""

    hours = forms.ChoiceField(label="The old token ends", choices=OVERLAPS, initial="24")

    @property
    def overlap(self) -> timedelta:
        return timedelta(hours=int(self.cleaned_data["hours"]))


class BreakGlassForm(forms.Form):
    """Why one person may decide on their own, and until when."""

    why = reason_field("Why one person must do")
    until = forms.DateField(
        label="Until the end of", widget=forms.DateInput(attrs={"type": "date"}),
        help_text="A day, in UTC. After 90 days at the latest it is asked for again.",
        error_messages={"required": "Say when it ends."},
    )  # fmt: skip

    @property
    def ends_at(self) -> datetime:
        return datetime.combine(self.cleaned_data["until"], time(23, 59, 59), tzinfo=UTC)
