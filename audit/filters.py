"""Filters of the history: what a person asks for, as the conditions of `audit.selectors`."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.db.models import Q

from audit.asking import STRETCHES, AskingForm, instant, text
from audit.finding import as_uuid, found_by, of_runs_doing
from audit.kinds import KINDS
from audit.selectors import Filters
from audit.through import words_for

GROUPS: Final = {
    "proposal.": "Proposals and decisions",
    "sample.": "Looks afterwards",
    "command.": "Commands",
    "attempt.": "Tries, late answers",
    "legal_hold.": "Legal holds",
    "hold.": "Freezes and circuits",
    "run.": "Runs",
    "step.": "Steps",
    "packet.": "Repair packets",
    "incident.": "Incidents",
    "document.": "Protected documents",
    "endpoint.": "Endpoints for webhooks",
    "delivery.": "Delivered webhooks",
    "callback_endpoint.": "Endpoints for callbacks",
    "callback.": "Callbacks",
    "dispatch.": "Mails and chat messages",
    "notice.": "Notices",
    "destination.": "Chat rooms",
    "preference.": "What people want to be told",
    "tenant.": "The organisation",
    "user.": "People and sign-ins",
    "membership.": "Roles and memberships",
    "absence.": "Absences and deputies",
    "working_hours.": "Working hours",
    "group.": "Groups",
    "duty.": "What people answer for",
    "break_glass.": "Break-glass",
    "agent.": "Automations",
    "token.": "Tokens",
    "chain.": "Checks of the chain",
    "history.": "Lists taken along",
}
TABS: Final = {
    "": "Everything", "proposal.": "Decisions", "command.": "Sent", "packet.": "Stopped",
    "membership. group. absence. duty. break_glass. agent. token. user.deactivated user.reactivated": "Rights",
    "chain.exported history.exported packet.exported incident.exported document.opened": "Taken along",
    "legal_hold. run.content_erased run.content_held run.content_released incident.content_erased"
    " endpoint.bodies_erased tenant.contents_searched": "Erased, kept",
}  # fmt: skip
"""What is asked most: by one kind, or several."""
LABELS: Final = {
    "q": "Speaks of", "when": "Time", "since": "From", "until": "Until", "kind": "Event", "actor": "Who",
    "run": "Run", "subject": "About", "digest": "Digest", "operation": "Operation", "target": "Target",
    "kinds": "Events", "through": "Came through",
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


class HistoryFilter(AskingForm):
    """The filters of a page."""

    labels = LABELS

    q = text("Find", "Actor, run, order, digest", type="search", **{"class": "grow"})
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
    since = instant("From (UTC)")
    until = instant("Until (UTC)")
    actor = text("Who, exactly", "user:…, api:intake, worker:…")
    run = text("Run", "Id of a run")
    subject = text("About", "Id of a proposal, command, …")
    digest = text("Digest", "All 64 digits")
    operation = text("Operation, of its run", "Its name")
    target = text("Target, of its run", "order:1042")
    through = text("Came through", "plc_…, token:…, session:…")
    kinds = text("Any of these events", "proposal.vote hold.")

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

    def said(self, name: str, value: Any) -> str:
        if name == "kinds" and value in TABS:
            return TABS[value]
        return super().said(name, GROUPS.get(value, value) if name == "kind" else value)

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
        """The conditions that are no columns of an event: the free text, what its run does, several kinds."""
        asked = self.given
        found = found_by(tenant_id, asked["q"]) if asked.get("q") else Q()
        if asked.get("operation") or asked.get("target"):
            found &= of_runs_doing(tenant_id, asked.get("operation", ""), asked.get("target", ""))
        return found & any_kind(asked.get("kinds", "")) & came_through(tenant_id, asked.get("through", ""))


def came_through(tenant_id: UUID, text: str) -> Q:
    """Through the token that begins so, through this endpoint, or by the word that an event has."""
    if not text:
        return Q()
    words = words_for(tenant_id, text)
    # By equality the index gives them in the order of a page.
    return Filters(through=words[0]).condition() if len(words) == 1 else Q(through__in=words)


def any_kind(text: str) -> Q:
    """One of several kinds, divided by spaces or commas; those that end in a point stand for their whole group."""
    found = Q()
    for kind in dict.fromkeys(text.replace(",", " ").split()):
        found |= Filters(kind=kind).condition()
    return found


def _uuid(text: str | None) -> UUID | None:
    return as_uuid(text) if text else None
