"""Forms of the kill switch: what to freeze and why, and why it may go on. They read, and decide nothing."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django import forms
from django.forms import BoundField

from workflows import registry
from workflows.actions.freezing import Scope
from workflows.selectors_holds import installed_versions

SCOPES: Final = {
    "tenant": ("Everything", "Nothing at all is newly sent for this organisation."),
    "workflow": ("One workflow", "All its versions, whatever they want to do."),
    "version": ("One version of a workflow", "What that version proposed; other versions go on."),
    "operation": ("One operation", "Whichever workflow asks for it."),
    "target": ("One target", "One record at a provider, such as an order."),
}
LONGEST: Final = 500


@dataclass(frozen=True, slots=True)
class ScopeChoice:
    """One radio button, what it means, and the field that goes with it."""

    name: str
    word: str
    hint: str
    chosen: bool
    field: BoundField | None


class FreezeForm(forms.Form):
    """What to freeze, chosen from what is installed, and why."""

    scope = forms.ChoiceField(
        label="What to freeze", choices=[(name, word) for name, (word, _) in SCOPES.items()],
        error_messages={"required": "Choose what to freeze."},
    )  # fmt: skip
    workflow = forms.ChoiceField(label="Workflow", required=False)
    version = forms.ChoiceField(label="Workflow and version", required=False)
    operation = forms.ChoiceField(label="Operation", required=False)
    target = forms.CharField(
        label="Target",
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="As the run names it, letter by letter: order:1042.",
    )
    why = forms.CharField(
        label="Why", max_length=LONGEST, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Everybody reads it on every page while it is frozen, and it stands in the history for good.",
        error_messages={"required": "Say why: whoever finds it later must know."},
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        flows = {flow.name: flow.title for flow in registry.workflows()}
        self._choices("workflow", [(name, f"{title} ({name})") for name, title in flows.items()])
        self._choices(
            "version",
            [
                (f"{name}@{version}", f"{flows[name]} ({name}), version {version}")
                for name, version in installed_versions()
                if name in flows
            ],
        )
        self._choices(
            "operation", [(known.name, f"{known.title} ({known.name})") for known in registry.operations()]
        )

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "Choose…"), *choices]

    def clean(self) -> dict[str, Any]:
        """What belongs to the chosen radio button must be there; what belongs to the others is not looked at."""
        cleaned = super().clean() or {}
        chosen = cleaned.get("scope", "")
        for other in set(SCOPES) - {chosen, "tenant"}:
            self.errors.pop(other, None)
        if chosen in self.fields and chosen not in self.errors and not cleaned.get(chosen):
            self.add_error(chosen, f"Choose which {chosen}." if chosen != "target" else "Type the target.")
        return cleaned

    @property
    def choices(self) -> list[ScopeChoice]:
        """The radio buttons in their order, each with the field that goes with it."""
        chosen = self["scope"].value()
        return [
            ScopeChoice(name, word, hint, name == chosen, self[name] if name in self.fields else None)
            for name, (word, hint) in SCOPES.items()
        ]

    def scope_of(self, tenant_id: UUID) -> Scope:
        """The chosen scope of a valid form."""
        chosen, cleaned = self.cleaned_data["scope"], self.cleaned_data
        if chosen == "version":
            name, _, version = cleaned["version"].rpartition("@")
            return Scope(tenant_id, workflow=name, workflow_version=int(version))
        return Scope(tenant_id, **({chosen: cleaned[chosen]} if chosen != "tenant" else {}))


class LiftForm(forms.Form):
    """Why it may go on."""

    why = forms.CharField(
        label="Why it may go on", max_length=LONGEST, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="It stands in the history for good.",
        error_messages={"required": "Say why it may go on: whoever finds it later must know."},
    )  # fmt: skip
