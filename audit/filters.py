"""Filters of the history: what a person asks for, as the conditions of `audit.selectors`."""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django import forms
from django.db.models import Q

from audit.finding import as_uuid, found_by
from audit.kinds import KINDS
from audit.selectors import Filters
from common.display import visible

STRETCHES: Final = {
    "hour": ("Last hour", timedelta(hours=1)),
    "day": ("Last 24 hours", timedelta(days=1)),
    "week": ("Last 7 days", timedelta(days=7)),
    "month": ("Last 30 days", timedelta(days=30)),
}
GROUPS: Final = {
    "proposal.": "Proposals and decisions",
    "command.": "Commands",
    "run.": "Runs",
    "step.": "Steps",
    "packet.": "Repair packets",
    "document.": "Protected documents",
    "user.": "People and sign-ins",
    "membership.": "Memberships",
    "group.": "Groups",
    "agent.": "Automations",
    "token.": "Tokens",
    "chain.": "Checks of the chain",
}
TABS: Final = {"": "Everything", "proposal.": "Decisions", "command.": "Sent", "packet.": "Stopped"}
LABELS: Final = {
    "q": "Holds", "when": "Time", "since": "From", "until": "Until", "kind": "Event", "actor": "Who",
    "run": "Run", "subject": "About", "digest": "Digest",
}  # fmt: skip


def kind_choices() -> list[tuple[str, Any]]:
    """Whole groups first, then each kind that is recorded."""
    groups = [(prefix, f"All: {word}") for prefix, word in GROUPS.items()]
    single = [
        (thing.capitalize(), [(f"{thing}.{what}", f"{thing}.{what}") for what in happened])
        for thing, happened in KINDS.items()
    ]
    return [("", "Any event"), *groups, *single]


class KindField(forms.ChoiceField):
    """Offers the usual kinds and takes any: a link may name one that is not offered."""

    def valid_value(self, value: Any) -> bool:
        return len(str(value)) <= 80 and "\0" not in str(value)  # at which PostgreSQL would break off


class UtcInput(forms.DateTimeInput):
    input_type = "datetime-local"


def _text(label: str, placeholder: str, **attrs: str) -> forms.CharField:
    widget = forms.TextInput(
        attrs={"placeholder": placeholder, "aria-label": label, "maxlength": 200} | attrs
    )
    return forms.CharField(label=label, required=False, max_length=200, widget=widget)


def _instant(label: str) -> forms.DateTimeField:
    return forms.DateTimeField(label=label, required=False, widget=UtcInput(attrs={"step": 1}))


class HistoryFilter(forms.Form):
    """The filters of a page. A field that cannot be understood is said so, and asks for nothing."""

    q = _text("Find", "Actor, run, order, digest", type="search", **{"class": "grow"})
    when = forms.ChoiceField(
        label="Time", required=False, choices=[("", "Any time"), *((k, v[0]) for k, v in STRETCHES.items())],
        widget=forms.Select(attrs={"aria-label": "Time"}),
    )  # fmt: skip
    kind = KindField(
        label="Event",
        required=False,
        choices=kind_choices,
        widget=forms.Select(attrs={"aria-label": "Event"}),
    )
    since = _instant("From (UTC)")
    until = _instant("Until (UTC)")
    actor = _text("Who, exactly", "user:…, api:intake, worker:…")
    run = _text("Run", "Id of a run")
    subject = _text("About", "Id of a proposal, command, …")
    digest = _text("Digest", "All 64 digits")

    def __init__(self, data: Any) -> None:
        super().__init__(data, label_suffix="")

    def clean_run(self) -> str:
        return self._id("run")

    def clean_subject(self) -> str:
        return self._id("subject")

    def clean_digest(self) -> str:
        return str(self.cleaned_data["digest"]).replace(" ", "").rpartition(":")[2].lower()

    def _id(self, name: str) -> str:
        value = str(self.cleaned_data[name])
        if value and as_uuid(value) is None:
            raise forms.ValidationError("This is not an id.")
        return value

    @property
    def given(self) -> dict[str, Any]:
        """What was asked for and understood, by field."""
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}

    def tokens(self) -> list[tuple[str, str, str]]:
        """(field, its word, the value as text) of everything that is asked for."""
        return [(name, LABELS[name], self._said(name, value)) for name, value in self.given.items()]

    def _said(self, name: str, value: Any) -> str:
        if name == "when":
            return STRETCHES[value][0]
        if isinstance(value, datetime):
            return value.strftime("%Y-%m-%d %H:%M:%S UTC")
        return visible(GROUPS.get(value, value) if name == "kind" else str(value))

    def filters(self, now: datetime) -> Filters:
        """The conditions that have a column of their own."""
        asked = self.given
        since = asked.get("since")
        if "when" in asked:
            begin = now - STRETCHES[asked["when"]][1]
            since = max(since, begin) if since else begin
        return Filters(
            since=since, until=asked.get("until"), actor=asked.get("actor", ""), run_id=_uuid(asked.get("run")),
            subject_id=_uuid(asked.get("subject")), kind=asked.get("kind", ""), digest=asked.get("digest", ""),
        )  # fmt: skip

    def words(self, tenant_id: UUID) -> Q:
        """The condition of the free text."""
        text = self.given.get("q", "")
        return found_by(tenant_id, text) if text else Q()


def _uuid(text: str | None) -> UUID | None:
    return as_uuid(text) if text else None
