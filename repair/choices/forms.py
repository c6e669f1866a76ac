"""Forms of choices: what a person types. They read, and decide nothing."""

import re
from collections.abc import Mapping
from typing import Any, Final

from django import forms

from access.enums import Role
from access.models import Group, Membership
from access.policies import can_role
from approvals.policies import SEES_PERSONAL
from common.disclosure import Recipient, may_see
from common.strictjson import JsonRefused, parse
from repair.choices.case import Case
from repair.choices.causes import NEW, known_causes
from workflows.actions.attesting import LONGEST_REASON, LONGEST_REFERENCE
from workflows.forms_edits import as_text, field_of, from_text

LONGEST_WORDS: Final = 500
LONGEST_CAUSE: Final = 80
READ: Final = "The reviewers read it, and it stays for good."
ASKED: Final = "asked_"
"""How the names of fields begin that somebody else named: they clash with none of ours."""


class ChoiceForm(forms.Form):
    """Words, and for what ends the case its cause: one of the team's list, or a new one."""

    words_label = "Why"
    words_required = True

    def __init__(self, case: Case, data: Any = None, *, asks_cause: bool = False) -> None:
        super().__init__(data, auto_id="choice-%s")
        self.case = case
        self.add_own()
        if asks_cause:
            known = [(title, title) for title in known_causes(case.tenant_id)]
            self.fields["cause"] = forms.ChoiceField(
                label="What was the cause", choices=[("", "Choose…"), *known, (NEW, "Something else…")],
                error_messages={"required": "Say what the cause was: what keeps coming back is found by it."},
            )  # fmt: skip
            self.fields["new_cause"] = forms.CharField(
                label="Another cause", required=False, max_length=LONGEST_CAUSE,
                widget=forms.TextInput(attrs={"autocomplete": "off"}),
                help_text="Only with “Something else…”. It joins the list for everybody here.",
            )  # fmt: skip
        self.fields["words"] = words_field(self.words_label, required=self.words_required)

    def add_own(self) -> None:
        """The fields of this very choice."""

    def typed(self) -> dict[str, Any]:
        """What a valid form says."""
        return self.cleaned_data

    def tell(self, details: Mapping[str, Any]) -> None:
        """What the action refused of it, each beside its field where there is one."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("cause") == NEW:
            cleaned["cause"] = " ".join(cleaned.get("new_cause", "").split())
            if not cleaned["cause"]:
                self.add_error("new_cause", "Name the cause.")
        return cleaned


def words_field(
    label: str, *, required: bool, stays: str = "It stays with the case for good."
) -> forms.CharField:
    return forms.CharField(
        label=label, required=required, max_length=LONGEST_WORDS, widget=forms.Textarea(attrs={"rows": 3}),
        help_text=stays,
        error_messages={"required": "Say why: whoever finds it later must be able to follow."},
    )  # fmt: skip


class WhyForm(forms.Form):
    """Words alone, where there is no case."""

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="choice-%s")
        self.fields["words"] = words_field("Why", required=True, stays=READ)


class QuietForm(ChoiceForm):
    """Words are welcome, and not needed."""

    words_label = "A note"
    words_required = False


class EffectForm(ChoiceForm):
    """It happened, as a whole or in part: the provider's own reference, and how one knows."""

    words_label = "How you know"

    def add_own(self) -> None:
        self.fields["reference"] = forms.CharField(
            label="The provider's reference", max_length=LONGEST_REFERENCE,
            widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
            help_text="As it stands at the provider, letter by letter.",
            error_messages={"required": "To say that it happened takes the provider's own reference of it."},
        )  # fmt: skip


class NoEffectForm(ChoiceForm):
    """It did not happen: how one knows."""

    words_label = "How you know"


assert LONGEST_REASON >= LONGEST_WORDS


class RouteForm(ChoiceForm):
    """To whom: a person of the repair desk, or a group as a queue."""

    words_label = "What they should know"
    words_required = False

    def add_own(self) -> None:
        self.people = {
            str(row.user_id): row
            for row in repairers(self.case)
            if row.user_id != self.case.packet.assignee_id
        }
        self.groups = {
            str(row.pk): row for row in Group.objects.filter(tenant_id=self.case.tenant_id).order_by("name")
        }
        people = [(f"user:{pk}", str(row.user)) for pk, row in self.people.items()]
        groups = [(f"group:{pk}", row.name) for pk, row in self.groups.items()]
        self.fields["to"] = forms.ChoiceField(
            label="To whom", choices=[("", "Choose…"), ("People", people), ("Queues", groups)],
            error_messages={"required": "Choose who is to look at it."},
        )  # fmt: skip


def repairers(case: Case) -> list[Membership]:
    found = Membership.objects.filter(
        tenant_id=case.tenant_id, is_active=True, user__is_active=True,
        roles__overlap=[Role.OPERATOR, Role.OWNER, Role.ADMIN],
    )  # fmt: skip
    return list(found.select_related("user").order_by("user__display_name", "user__username"))


class DataForm(ChoiceForm):
    """What the step asked for, one field for each property of its schema."""

    words_label = "Where it comes from"

    def add_own(self) -> None:
        asks = (self.case.step.asks if self.case.step is not None else None) or {}
        schema = asks.get("schema", {})
        self.properties: Mapping[str, Any] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        for name, spec in self.properties.items():
            self.fields[ASKED + name] = _schema_field(name, spec, required=name in required)

    def typed(self) -> dict[str, Any]:
        """With ``data``: as JSON of the declared types. What was left empty is left out."""
        texts = {name: self.cleaned_data.get(ASKED + name, "") for name in self.properties}
        data = {
            name: _json(self.properties[name], text) for name, text in texts.items() if text not in ("", None)
        }
        return {**self.cleaned_data, "data": data}

    def tell(self, details: Mapping[str, Any]) -> None:
        """What the schema refused, each beside its field; the values stay unsaid."""
        for code, words in (("missing", "This is needed."), ("invalid", "This is not what was asked for.")):
            for name in details.get(code, ()):
                self.add_error(ASKED + name if ASKED + name in self.fields else None, words)


def _schema_field(name: str, spec: Mapping[str, Any], *, required: bool) -> forms.Field:
    options: dict[str, Any] = {
        "label": str(spec.get("title") or name.replace("_", " ").capitalize()), "required": required,
        "help_text": str(spec.get("description") or ("" if required else "May stay empty.")),
    }  # fmt: skip
    if "enum" in spec:
        return forms.ChoiceField(
            choices=[("", "Choose…"), *((str(one), str(one)) for one in spec["enum"])], **options
        )
    if spec.get("type") == "boolean":
        return forms.ChoiceField(choices=[("", "Choose…"), ("true", "yes"), ("false", "no")], **options)
    if spec.get("type") in ("array", "object"):
        options["help_text"] += " As JSON."
        return forms.CharField(widget=forms.Textarea(attrs={"rows": 4}), **options)
    longest = spec.get("maxLength", 4000)
    widget = (
        forms.Textarea(attrs={"rows": 3})
        if longest > 200 and "maxLength" in spec
        else forms.TextInput(attrs={"autocomplete": "off"})
    )
    return forms.CharField(strip=False, max_length=longest, widget=widget, **options)


_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


def _json(spec: Mapping[str, Any], text: str) -> Any:
    """The JSON that a text stands for; the text itself where it stands for none, and the schema says so."""
    kind = spec.get("type")
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind in ("integer", "number") and _NUMBER.fullmatch(text.strip()):
        number = text.strip()
        return float(number) if "." in number else int(number)
    if kind in ("array", "object"):
        try:
            return parse(f'{{"v":{text}}}'.encode())["v"]  # type: ignore[call-overload, index]
        except JsonRefused:
            return text
    if "enum" in spec:
        return next((one for one in spec["enum"] if str(one) == text), text)
    return text


class CorrectForm(ChoiceForm):
    """The values that the operation lets people change, as they stand in the last proposal."""

    words_label = "What was wrong"

    def add_own(self) -> None:
        self.values: Mapping[str, Any] = {}
        self.specs: list[Any] = []
        operation = self.case.newest_operation
        if operation is None or self.case.proposal is None:
            return
        self.values = self.case.values
        to = Recipient(self.case.tenant_id, can_role(self.case.membership, *SEES_PERSONAL))
        self.specs = [
            spec
            for spec in operation.arguments.specs
            if spec.name in self.case.editable and may_see(spec.data_class, to)
        ]
        for spec in self.specs:
            self.fields[ASKED + spec.name] = field_of(spec, as_text(self.values.get(spec.name)))

    def typed(self) -> dict[str, Any]:
        """With ``changes``: the arguments whose field holds another text than the one it came with, as JSON."""
        changed = {}
        for spec in self.specs:
            text = self.cleaned_data.get(ASKED + spec.name, "").replace("\r\n", "\n")
            if text != as_text(self.values.get(spec.name)).replace("\r\n", "\n"):
                changed[spec.name] = from_text(spec.kind, text)
        return {**self.cleaned_data, "changes": changed}

    def tell(self, details: Mapping[str, Any]) -> None:
        """What the operation's schema refused, each beside its field."""
        for error in details.get("errors", ()):
            name = ASKED + error["path"].strip("/").partition("/")[0]
            self.add_error(name if name in self.fields else None, error.get("message") or error["code"])
