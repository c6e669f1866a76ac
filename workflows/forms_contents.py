"""Forms of the page about what is kept. They read, and decide nothing."""

from typing import Any, Final
from uuid import UUID

from django import forms

from access.models import Membership
from common.display import visible
from workflows.content_search import LEAST

SCOPES: Final = {
    "target": "one target, as order:1042", "record": "one record of a source, as crm:7",
    "person": "one of our people: asked by or for them, or decided by them", "all": "everything of this organisation",
}  # fmt: skip


def reference() -> forms.CharField:
    return forms.CharField(
        label="Reference", max_length=200,
        help_text="A file number or code, without personal data: it stands in the history for good.",
        error_messages={"required": "Give a reference: whoever finds it later must know why."},
    )  # fmt: skip


class Reference(forms.Form):
    """Why, as a reference."""

    why = reference()


class WordForm(forms.Form):
    """A word to look for in what is sealed; sent by POST, so that it stands in no address and no log."""

    word = forms.CharField(
        label="A word of the person's", min_length=LEAST, max_length=200,
        help_text="An address, a name, a number. Every content is looked through; where it stands is not shown.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "Say which word.", "min_length": f"{LEAST} characters or more."},
    )  # fmt: skip
    why = reference()


class NewLegalHold(forms.Form):
    """What is kept, and why."""

    about = forms.ChoiceField(label="Keep what is about", choices=list(SCOPES.items()))
    value = forms.CharField(
        label="Which",
        max_length=200,
        required=False,
        help_text="Exactly as it stands there. Empty for everything.",
    )
    person = forms.ModelChoiceField(
        Membership.objects.none(), label="Person", required=False, empty_label="Choose, for a person"
    )
    why = reference()

    def __init__(self, *args: Any, tenant_id: UUID, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        person: Any = self.fields["person"]
        people = Membership.objects.filter(tenant_id=tenant_id).select_related("user")
        person.queryset = people.order_by("user__username")
        person.label_from_instance = lambda row: visible(str(row.user))

    def clean(self) -> dict[str, Any]:
        said = super().clean() or {}
        about = said.get("about")
        if about in ("target", "record") and not said.get("value", "").strip():
            self.add_error("value", "Say which.")
        if about == "person" and not said.get("person"):
            self.add_error("person", "Choose the person.")
        return said

    def scope(self) -> dict[str, Any]:
        """As the action takes it."""
        said = self.cleaned_data
        value = said["value"].strip()
        return {
            "target": value if said["about"] == "target" else "", "record_": value if said["about"] == "record" else "",
            "person": said["person"].user_id if said["about"] == "person" else None,
        }  # fmt: skip
