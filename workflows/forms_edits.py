"""The form in which a reviewer changes arguments: one field for each that the operation lets them, as text.

What is typed becomes JSON of the type that stood there: a whole number stays one, a text stays a text. What does not
is left as the text it is, and the operation's schema says so beside its field.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import QueryDict

from common.fields import (
    ArgumentSpec,
    ArgumentType,
    BooleanType,
    ChoiceType,
    IntegerType,
    ListType,
    OptionalType,
    StructureType,
    TextType,
)
from common.strictjson import JsonRefused, parse
from workflows.operations import Operation

WORDS: Final = "_text"
"""How the names of its fields end: what was typed into them is given back when the database is away."""
_INTEGER: Final = re.compile(r"-?[0-9]{1,40}", re.ASCII)
_TRUTH: Final = {"true": True, "false": False}
LONG: Final = 80


class EditForm(forms.Form):
    """Made for one operation and the arguments of one version of a proposal."""

    digest = forms.CharField(max_length=100, widget=forms.HiddenInput)

    def __init__(
        self,
        operation: Operation[Any],
        arguments: Mapping[str, Any],
        digest: str,
        data: QueryDict | None = None,
    ) -> None:
        super().__init__(data, initial={"digest": digest}, auto_id="edit-%s")
        self.arguments = arguments
        self.specs = [spec for spec in operation.arguments.specs if spec.name in operation.editable]
        for spec in self.specs:
            self.fields[f"{spec.name}{WORDS}"] = field_of(spec, as_text(arguments.get(spec.name)))

    def changes(self) -> dict[str, Any]:
        """The arguments whose field holds another text than the one it came with, as JSON."""
        changed = {}
        for spec in self.specs:
            text = self.cleaned_data[f"{spec.name}{WORDS}"]
            if _lines(text) != _lines(as_text(self.arguments.get(spec.name))):
                changed[spec.name] = from_text(spec.kind, _lines(text))
        return changed

    def tell(self, errors: list[Mapping[str, str]]) -> None:
        """What the schema refused, each beside its field."""
        for error in errors:
            name = error["path"].strip("/").partition("/")[0]
            field = f"{name}{WORDS}"
            self.add_error(field if field in self.fields else None, error.get("message") or error["code"])


def field_of(spec: ArgumentSpec, text: str) -> forms.Field:
    """The field of one argument, with ``text`` in it. ``strip`` is off: spaces are part of a value, and are shown on
    the next version's page.
    """
    kind = _innermost(spec.kind)
    options: dict[str, Any] = {"label": spec.label, "initial": text, "required": False}
    if isinstance(kind, BooleanType):
        return forms.ChoiceField(choices=[("true", "yes"), ("false", "no")], **options)
    if isinstance(kind, ChoiceType) and not isinstance(spec.kind, OptionalType | ListType):
        return forms.ChoiceField(choices=[(one, one) for one in kind.options], **options)
    large = isinstance(kind, TextType | StructureType) or isinstance(spec.kind, ListType) or len(text) > LONG
    widget = forms.Textarea(attrs={"rows": 6}) if large else forms.TextInput(attrs={"autocomplete": "off"})
    return forms.CharField(strip=False, widget=widget, help_text=_hint(spec.kind), **options)


def _hint(kind: ArgumentType) -> str:
    if isinstance(kind, OptionalType):
        return "Empty: none."
    return "As JSON." if isinstance(kind, ListType | StructureType) else ""


def as_text(value: Any) -> str:
    """A value as it stands in its field."""
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False, indent=1)


def from_text(kind: ArgumentType, text: str) -> Any:
    """The JSON that a text stands for in an argument of this kind; the text itself where it stands for none."""
    match kind:
        case OptionalType(inner=inner):
            return None if text == "" else from_text(inner, text)
        case IntegerType() if _INTEGER.fullmatch(text.strip()):
            return int(text)
        case BooleanType():
            return _TRUTH.get(text, text)
        case ListType() | StructureType():
            return _json(text)
        case _:
            return text


def _json(text: str) -> Any:
    """Strictly, as everything else that comes in; wrapped, because a document begins with an object."""
    try:
        return parse(f'{{"v":{text}}}'.encode())["v"]  # type: ignore[call-overload, index]
    except JsonRefused:
        return text


def _innermost(kind: ArgumentType) -> ArgumentType:
    return _innermost(kind.inner) if isinstance(kind, OptionalType) else kind


def _lines(text: str) -> str:
    """Browsers send line ends of their own."""
    return text.replace("\r\n", "\n")
