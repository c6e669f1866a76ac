"""Forms of incidents: what to look for, what people think, which runs are meant. They read, and decide nothing."""

from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django import forms

from access.enums import Role
from access.models import Membership
from audit.asking import UtcInput
from common.display import visible
from common.states_ui import STATES
from common.templatetags.desk import short_id
from repair.choices.causes import NEW, known_causes
from repair.choices.forms import LONGEST_CAUSE
from repair.enums import Mark
from repair.incidents.acting import AT_ONCE, LONGEST_TITLE, LONGEST_WORDS, Texts
from repair.incidents.criteria import LABELS, LONGEST, NUMBERS, USUAL, Criteria
from repair.incidents.traces import WORDS, offered, targets_of
from repair.models_incidents import Incident
from workflows import registry
from workflows.models import Run
from workflows.tables import about

LARGEST: Final = 2**31 - 1
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""No run began before, and the first years of the calendar have no week before them."""
HINTS: Final = {
    "model": "As a run names it, such as rules@1.", "prompt": "As a run names it.",
    "target": "As the run names it, letter by letter: order:1042.",
    "outcome": "Such as refunded, failed or unknown.", "cause": "The code of a packet, such as command_unknown.",
}  # fmt: skip
NO_NAMES: Final = "It goes into the report: no names of customers, no secrets."


class CriteriaForm(forms.Form):
    """What the runs have in common. All that is given must hold."""

    since = forms.DateTimeField(
        label="Began from (UTC)", required=False, widget=UtcInput(attrs={"step": 1}),
        help_text="Left empty: the last 7 days. At most 90.",
    )  # fmt: skip
    until = forms.DateTimeField(
        label="Until (UTC)", required=False, widget=UtcInput(attrs={"step": 1}),
        help_text="Left empty: until now, and what comes.",
    )  # fmt: skip

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, label_suffix="", auto_id="like-%s")
        offered = {name: dict(choices) for name, choices in _offered().items()}
        for name, label in LABELS.items():
            self.fields[name] = self._field(name, label, offered.get(name), (data or {}).get(name, ""))
        self.order_fields([*LABELS, "since", "until"])

    @staticmethod
    def _field(name: str, label: str, offered: dict[str, str] | None, asked: str) -> forms.Field:
        if name in NUMBERS:
            return forms.IntegerField(label=label, required=False, min_value=1, max_value=LARGEST)
        if offered is None:
            plain = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
            return forms.CharField(
                label=label, required=False, max_length=200, widget=plain, help_text=HINTS[name]
            )
        if (
            asked and len(asked) <= 200 and "\0" not in asked
        ):  # what is no longer installed may still be asked for
            offered.setdefault(asked, visible(asked))
        return forms.ChoiceField(label=label, required=False, choices=[("", "Any"), *offered.items()])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and since >= until:
            self.add_error("until", "It ends before it begins.")
        return cleaned

    def criteria(self, now: datetime) -> Criteria | None:
        """What a valid form asks for; None, with an error, where the time is longer than is looked at."""
        named = {name: self.cleaned_data.get(name) for name in LABELS}
        until = self.cleaned_data.get("until")
        since = self.cleaned_data.get("since") or max(until or now, EARLIEST) - USUAL
        if (min(until, now) if until else now) - since > LONGEST:
            self.add_error("since", f"That is longer than {LONGEST.days} days. Ask for a shorter time.")
            return None
        return Criteria(
            since=since,
            until=until,
            **{name: value for name, value in named.items() if value not in ("", None)},
        )


def _offered() -> dict[str, list[tuple[str, str]]]:
    known = registry.operations()
    return {
        "workflow": sorted((flow.name, f"{flow.title} ({flow.name})") for flow in registry.workflows()),
        "operation": sorted((one.name, f"{one.title} ({one.name})") for one in known),
        "policy": sorted({(one.policy.name, one.policy.name) for one in known}),
        "provider": sorted({(one.provider, one.provider) for one in known}),
    }


def _words(label: str, hint: str, *, required: bool = False, rows: int = 2) -> forms.CharField:
    return forms.CharField(
        label=label, required=required, max_length=LONGEST_WORDS, help_text=hint,
        widget=forms.Textarea(attrs={"rows": rows}),
    )  # fmt: skip


class OpenForm(forms.Form):
    """What looks wrong, and what is thought of it so far."""

    trouble = forms.CharField(
        label="What looks wrong", max_length=LONGEST_TITLE, help_text=f"In one line. {NO_NAMES}",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "Say in one line what looks wrong."},
    )  # fmt: skip

    def __init__(self, data: Any = None, **kwargs: Any) -> None:
        super().__init__(data, label_suffix="", auto_id="incident-%s", **kwargs)
        self.fields["hypothesis"] = _words("What you think it is", NO_NAMES)

    def texts(self) -> Texts:
        given = self.cleaned_data
        return Texts(given["trouble"], given["hypothesis"], given.get("remedy", ""), given.get("signal", ""))


class DescribeForm(OpenForm):
    """The same, with what is changed, how everybody will see that it worked, whose it is, and the three runs."""

    def __init__(self, incident: Incident, data: Any = None) -> None:
        self.incident = incident
        initial = {
            "trouble": incident.trouble, "hypothesis": incident.hypothesis, "remedy": incident.remedy,
            "signal": incident.signal, "owner": str(incident.owner_id),
            **{name: getattr(incident, f"trace_{name}_id") or "" for name in WORDS},
        }  # fmt: skip
        super().__init__(data, initial=initial)
        self.fields["remedy"] = _words(
            "What is changed, and how it is undone", "A change that can be taken back."
        )
        self.fields["signal"] = _words("The signal that it worked", "What everybody will see, and by when.")
        people = [(str(row.user_id), str(row.user)) for row in _people(incident.tenant_id)]
        people = people or [(str(incident.owner_id), str(incident.owner))]
        self.fields["owner"] = forms.ChoiceField(label="Owner", choices=people)
        for name, words in WORDS.items():
            self.fields[name] = forms.ChoiceField(
                label=words, required=False, choices=_traces(incident, name),
                error_messages={"invalid_choice": "Choose one of its runs."},
            )  # fmt: skip

    def traces(self) -> dict[str, UUID | None]:
        return {name: UUID(text) if (text := self.cleaned_data[name]) else None for name in WORDS}


def _traces(incident: Incident, name: str) -> list[tuple[str, Any]]:
    """Its runs, by what they are about, how they stand and when they began."""
    fit, others = offered(incident, name)
    targets = targets_of([*fit, *others])
    groups = [
        (words, [(str(run.pk), _run_words(run, targets.get(run.pk, ""))) for run in runs])
        for words, runs in (("Fits", fit), ("Other runs of it", others))
    ]
    return [("", "What is suggested"), *((words, rows) for words, rows in groups if rows)]


def _run_words(run: Run, target: str) -> str:
    stands = STATES["run"][run.status].word.lower()
    return f"{about(run, target)}, {stands}, {run.created_at:%d %b %H:%M} UTC, {short_id(run.pk)}"


def _people(tenant_id: UUID) -> list[Membership]:
    found = Membership.objects.filter(
        tenant_id=tenant_id, is_active=True, user__is_active=True,
        roles__overlap=[Role.OPERATOR, Role.OWNER, Role.ADMIN],
    )  # fmt: skip
    return list(found.select_related("user").order_by("user__display_name", "user__username"))


class WordsForm(forms.Form):
    """Words that are added, and stay."""

    def __init__(
        self, data: Any = None, *, label: str = "A note", hint: str = "It stays for good.", ids: str = "note"
    ) -> None:  # fmt: skip
        """``ids``: how the ids of its fields begin, of several such forms on one page."""
        super().__init__(data, label_suffix="", auto_id=f"{ids}-%s")
        self.fields["words"] = _words(label, hint, required=True)


class CloseForm(forms.Form):
    """The cause, and what is learned of it."""

    def __init__(self, tenant_id: UUID, data: Any = None) -> None:
        super().__init__(data, label_suffix="", auto_id="close-%s")
        known = [(title, title) for title in known_causes(tenant_id)]
        self.fields["cause"] = forms.ChoiceField(
            label="What was the cause", choices=[("", "Choose…"), *known, (NEW, "Something else…")],
            error_messages={"required": "Say what the cause was: what keeps coming back is found by it."},
        )  # fmt: skip
        self.fields["new_cause"] = forms.CharField(
            label="Another cause", required=False, max_length=LONGEST_CAUSE,
            widget=forms.TextInput(attrs={"autocomplete": "off"}),
            help_text="Only with “Something else…”. It joins the list for everybody here.",
        )  # fmt: skip
        self.fields["words"] = _words("What is left to do, or was learned", "It stays for good.")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("cause") == NEW:
            cleaned["cause"] = " ".join(cleaned.get("new_cause", "").split())
            if not cleaned["cause"]:
                self.add_error("new_cause", "Name the cause.")
        return cleaned


class MarkForm(forms.Form):
    """Which runs, as they were seen, and what was found."""

    mark = forms.ChoiceField(
        label="What was found", choices=Mark.choices, initial=Mark.FINE,
        help_text="Only what is fine goes for many at once.",
    )  # fmt: skip

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, label_suffix="", auto_id="mark-%s")
        self.fields["words"] = _words("In words", "Needed for all but fine. It stays with the run.")
        self.items = data.getlist("item")[: AT_ONCE + 1] if data is not None else []

    def rows(self) -> list[tuple[UUID, int]]:
        """What cannot be read is left out."""
        found = []
        for text in self.items:
            ident, _, version = text.partition(".")
            try:
                found.append((UUID(ident), int(version[:9])))
            except ValueError:
                continue
        return found


class FreezeForm(forms.Form):
    """Which way, and why."""

    def __init__(self, ways: list[str], data: Any = None) -> None:
        super().__init__(data, label_suffix="", auto_id="freeze-%s")
        self.fields["way"] = forms.ChoiceField(
            label="What to freeze", choices=[(way, way) for way in ways], initial=ways[0],
            error_messages={"required": "Choose what to freeze.", "invalid_choice": "Choose what to freeze."},
        )  # fmt: skip
        self.fields["why"] = forms.CharField(
            label="Why", max_length=500, widget=forms.Textarea(attrs={"rows": 2}),
            help_text="Everybody reads it on every page while it is frozen, and it stands in the history for good.",
            error_messages={"required": "Say why: whoever finds it later must know."},
        )  # fmt: skip
