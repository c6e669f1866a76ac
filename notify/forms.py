"""Forms of being told. They read, and decide nothing."""

from typing import Any

from django import forms

from access.forms_people import GroupsField, groups_of
from access.models import Group
from notify import times
from notify.enums import Rhythm, Style
from notify.kinds import CHECKPOINT, Kind, all_kinds
from notify.models import Preference
from notify.times import Wishes


class Clock(forms.TimeInput):
    input_type = "time"

    def __init__(self) -> None:
        super().__init__(format="%H:%M")


def chosen_kinds() -> list[Kind]:
    return [kind for kind in all_kinds() if kind.chosen]


class WishesForm(forms.Form):
    """How one person wants to be told."""

    mail = forms.MultipleChoiceField(label="By e-mail", required=False, widget=forms.CheckboxSelectMultiple)
    rhythm = forms.ChoiceField(label="When mails come", choices=Rhythm.choices, widget=forms.RadioSelect)
    daily_at = forms.TimeField(
        label="Once a day at", widget=Clock, help_text="On the clock of your time zone."
    )
    quiet_from = forms.TimeField(label="Quiet from", required=False, widget=Clock)
    quiet_to = forms.TimeField(
        label="Quiet until", required=False, widget=Clock,
        help_text="No mail is sent in between; it may go over midnight. Leave both empty for none.",
    )  # fmt: skip
    urgent_anyway = forms.BooleanField(
        label="Send urgent ones at once all the same", required=False,
        help_text="What is of high risk, or soon over. Also when mails are collected.",
    )  # fmt: skip
    zone = forms.ChoiceField(label="Time zone", help_text="Times are shown in it, with the ISO time beside.")

    def __init__(self, data: Any = None, *, row: Preference) -> None:
        kinds = chosen_kinds()
        initial = {
            "mail": [kind.name for kind in kinds if row.mail.get(kind.name, kind.mail)], "rhythm": row.rhythm,
            "daily_at": row.daily_at, "quiet_from": row.quiet_from, "quiet_to": row.quiet_to,
            "urgent_anyway": row.urgent_anyway, "zone": row.zone,
        }  # fmt: skip
        super().__init__(data, initial=initial)
        choices: dict[str, Any] = {
            "mail": [(kind.name, kind.says) for kind in kinds], "zone": [(name, name) for name in times.zones()]
        }  # fmt: skip
        for name, offered in choices.items():
            self.fields[name].choices = offered  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or {}
        start, stop = said.get("quiet_from"), said.get("quiet_to")
        if (start is None) != (stop is None):
            self.add_error("quiet_to", "Quiet hours have a beginning and an end; leave both empty for none.")
        elif start is not None and start == stop:
            self.add_error("quiet_to", "They end when they begin. Leave both empty for none.")
        return said

    @property
    def wishes(self) -> Wishes:
        said = self.cleaned_data
        names = ("zone", "rhythm", "daily_at", "quiet_from", "quiet_to", "urgent_anyway")
        return Wishes(**{name: said[name] for name in names})

    @property
    def by_mail(self) -> dict[str, bool]:
        return {kind.name: kind.name in self.cleaned_data["mail"] for kind in chosen_kinds()}


class _OneGroup(forms.ModelChoiceField):  # type: ignore[type-arg]
    label_from_instance = GroupsField.label_from_instance


class NewDestination(forms.Form):
    """A chat room that is to hear of things."""

    name = forms.SlugField(
        label="Name", max_length=60, help_text="Small letters, digits and hyphens.",
        error_messages={"required": "A destination needs a name."},
    )  # fmt: skip
    url = forms.CharField(
        label="Address of its incoming webhook", max_length=1000, widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="https, on a public host. Who has it may write there: it is stored sealed and never shown again.",
        error_messages={"required": "Say where to send."},
    )  # fmt: skip
    group = _OneGroup(
        Group.objects.none(),
        label="Hears what concerns",
        required=False,
        empty_label="Everybody",
        help_text="A group.",
    )
    kinds = forms.MultipleChoiceField(
        label="Is told of", widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose one at least: it would never hear of anything."},
    )  # fmt: skip
    style = forms.ChoiceField(
        label="Shape",
        choices=[one for one in Style.choices if one[0] in Style.rooms],
        initial=Style.TEXT,
        widget=forms.RadioSelect,
    )
    signed = forms.BooleanField(
        label="Sign each call", required=False,
        help_text="As callbacks are (Standard Webhooks), where the receiver checks it. The secret is shown once.",
    )  # fmt: skip

    def __init__(self, data: Any, *, tenant_id: Any) -> None:
        kinds = chosen_kinds()
        super().__init__(data, initial={"kinds": [kind.name for kind in kinds if kind.chat]})
        fields: dict[str, Any] = self.fields
        fields["group"].queryset = groups_of(tenant_id)
        fields["kinds"].choices = [(kind.name, kind.says) for kind in (*kinds, CHECKPOINT)]


class NewAddress(forms.Form):
    """Somebody who keeps checkpoints of the history, without an account here."""

    name = forms.SlugField(
        label="Name", max_length=60, help_text="Who it is: small letters, digits and hyphens.",
        error_messages={"required": "Say who it is."},
    )  # fmt: skip
    address = forms.EmailField(
        label="E-mail address", max_length=254, widget=forms.EmailInput(attrs={"autocomplete": "off"}),
        help_text="Best of somebody whose mails the administrators of this installation cannot delete. It is stored "
        "sealed; only what follows the @ is shown again.",
        error_messages={"required": "Say where to send."},
    )  # fmt: skip
