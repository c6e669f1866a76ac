"""Forms that ask for a part of the history. A field that cannot be understood is said so, and asks for nothing."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from django import forms

from common.display import visible

STRETCHES: Final = {
    "hour": ("Last hour", timedelta(hours=1)),
    "day": ("Last 24 hours", timedelta(days=1)),
    "week": ("Last 7 days", timedelta(days=7)),
    "month": ("Last 30 days", timedelta(days=30)),
}


class UtcInput(forms.DateTimeInput):
    input_type = "datetime-local"


def text(label: str, placeholder: str, **attrs: str) -> forms.CharField:
    widget = forms.TextInput(
        attrs={"placeholder": placeholder, "aria-label": label, "maxlength": 200} | attrs
    )
    return forms.CharField(label=label, required=False, max_length=200, widget=widget)


def instant(label: str) -> forms.DateTimeField:
    return forms.DateTimeField(label=label, required=False, widget=UtcInput(attrs={"step": 1}))


class AskingForm(forms.Form):
    """What is common to them: what was understood, in words, and how to ask for the same again."""

    labels: ClassVar[Mapping[str, str]]
    """The word for each field, beside what it asks for."""

    def __init__(self, data: Any) -> None:
        super().__init__(data, label_suffix="")

    @property
    def given(self) -> dict[str, Any]:
        """What was asked for and understood, by field."""
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}

    @property
    def asked_again(self) -> list[tuple[str, str]]:
        """What was understood, as it was sent: to ask for the same again."""
        return [(name, str(self.data.get(name, ""))) for name in self.given]

    def tokens(self) -> list[tuple[str, str, str]]:
        """(field, its word, the value as text) of everything that is asked for."""
        return [(name, self.labels[name], self.said(name, value)) for name, value in self.given.items()]

    def said(self, name: str, value: Any) -> str:
        """A value as text for the page."""
        if name == "when":
            return STRETCHES[value][0]
        if isinstance(value, datetime):
            return value.strftime("%Y-%m-%d %H:%M:%S UTC")
        return visible(str(value))
