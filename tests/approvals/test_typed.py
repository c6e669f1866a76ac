"""Every type of argument as the page shows it: typed, exact, and read back as what is bound."""

import string
from typing import Annotated, Any
from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.viewdoc import ViewDocument, build_view, parse_back
from common.display import hidden_kind
from common.fields import (
    Account,
    Arguments,
    ArgumentsRefused,
    ArgumentType,
    Date,
    Duration,
    FileByHash,
    Host,
    Iban,
    Percentage,
    Person,
    Rendered,
    ZonedTime,
    arg,
    arguments_from,
)
from common.fields.parsers import PARSERS, NoRenderer, check_can_be_shown
from common.strictjson import canonicalize
from tests.workflows.toy import ToyOutside
from workflows.operations import Operation
from workflows.registry import installed, register


class Things(Arguments):
    """One argument of each type that is not in the other property test."""

    account: Account = arg(label="Account", data_class="business")
    iban: Iban | None = arg(None, label="IBAN", data_class="business")
    host: Host | None = arg(None, label="Host", data_class="business")
    person: Person | None = arg(None, label="Person", data_class="personal")
    people: list[Person] = arg([], label="Person", data_class="personal")
    file: FileByHash | None = arg(None, label="File", data_class="business")
    files: list[FileByHash] = arg([], label="Attachment", data_class="business")
    length: Duration = arg(0, label="For", data_class="business")
    share: Percentage = arg("0", label="Share", data_class="business")
    day: Date | None = arg(None, label="Day", data_class="business")
    at: ZonedTime | None = arg(None, label="At", data_class="business")


def view(raw: dict[str, Any]) -> ViewDocument:
    normalized = Things.normalize({"account": "acct_1", **raw})
    return build_view(
        operation="x", operation_version=1, contract_digest="0" * 64, headline="h", consequence="c", schema=Things,
        arguments=normalized.material,
    )  # fmt: skip


SHOWN: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "iban": ("gb82 west 12345698765432", "GB82 WEST 1234 5698 7654 32", ("country GB",)),
    "host": ("Pay.Example.COM", "pay.example.com", ()),
    "person": ({"id": "u-7", "name": "Ann  B.\u200b"}, "u-7 Ann··B.⟦U+200B⟧", ()),
    "file": (
        {"name": "photo.jpg", "size": 2101234, "sha256": "4" * 64}, f"sha256:{'4' * 64} 2,101,234 bytes photo.jpg", ()
    ),
    "length": (93_784, "93,784 s", ("1 day 2 hours 3 minutes 4 seconds",)),
    "share": ("12.50", "12.5 %", ()),
    "day": ("2026-10-25", "2026-10-25", ("Sunday",)),
    "at": (
        {"at": "2026-10-25T02:30:00+01:00", "zone": "Europe/Berlin"}, "2026-10-25 01:30:00 UTC, Europe/Berlin",
        ("Sunday, 2026-10-25 02:30:00 there (+0100)",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_how_a_type_is_shown(name: str) -> None:
    value, text, sub = SHOWN[name]
    (field,) = [field for field in view({name: value}).fields if field.pointer == f"/{name}"]
    assert (field.text, field.sub) == (text, sub)


@pytest.mark.parametrize(
    ("kind", "value", "code"),
    [
        ("iban", "GB83WEST12345698765432", "iban_format"),
        ("iban", "GB82", "iban_format"),
        ("host", "localhost", "host_internal_name"),
        ("host", "127.0.0.1", "host_ip_literal"),
        ("host", "pay.example.com.", "host_host"),
        ("person", "Ann", "person_format"),
        ("person", {"id": "a b", "name": "Ann"}, "identifier_charset"),
        ("person", {"id": "a", "name": "Ann\nB"}, "person_format"),
        ("file", {"name": "x", "size": 1}, "file_format"),
        ("file", {"name": "x", "size": -1, "sha256": "0" * 64}, "file_format"),
        ("file", {"name": "x", "size": 1, "sha256": "A" * 64}, "file_format"),
        ("duration", 1.5, "number_not_integer"),
        ("duration", -1, "integer_out_of_range"),
        ("percentage", 12.5, "decimal_must_be_string"),
        ("date", "2026-02-30", "date_value"),
        ("date", "20260228", "date_format"),
        ("zoned-time", {"at": "2026-10-25T02:30:00", "zone": "Europe/Berlin"}, "datetime_format"),
        ("zoned-time", {"at": "2026-10-25T02:30:00Z", "zone": "Mars/Olympus"}, "zone_unknown"),
        ("account", "acct 1", "identifier_charset"),
    ],
)
def test_what_a_type_refuses(kind: str, value: Any, code: str) -> None:
    with pytest.raises(ArgumentsRefused) as refused:
        arguments_from({"x": kind}).normalize({"x": value})
    assert refused.value.code == code


def test_a_file_that_runs_must_be_seen() -> None:
    names = {
        "a.jpg": False,
        "invoice.pdf.exe": True,
        "x.html": True,
        "photo\u202egpj.exe": True,
        "a.exe\u200b ": True,
        "exe": False,
    }
    for name, runs in names.items():
        codes = {w.code for w in view({"file": {"name": name, "size": 1, "sha256": "0" * 64}}).warnings}
        assert ("file_runs" in codes) == runs


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0\n"), min_size=1, max_size=60) | st.text(
    "ab ⟦⟧·⇥\u202e\u200b bytes sha256:0123", min_size=1, max_size=40
)
IDS = st.text(string.ascii_letters + string.digits + "_.:~-", min_size=1, max_size=20).filter(
    lambda text: text[0].isalnum()
)
PEOPLE = st.fixed_dictionaries({"id": IDS, "name": NAMES})
FILES = st.fixed_dictionaries(
    {
        "name": NAMES,
        "size": st.integers(0, 2**53 - 1),
        "sha256": st.text("0123456789abcdef", min_size=64, max_size=64),
    }
)
RAW = st.fixed_dictionaries(
    {"account": IDS},
    optional={
        "iban": st.sampled_from(["GB82WEST12345698765432", "DE89370400440532013000"]),
        "host": st.sampled_from(["pay.example.com", "xn--80ak6aa92e.com"]),
        "person": PEOPLE,
        "people": st.lists(PEOPLE, max_size=3) | st.lists(PEOPLE, min_size=51, max_size=53),
        "file": FILES,
        "files": st.lists(FILES, max_size=3),
        "length": st.integers(0, 10**10),
        "share": st.decimals(-(10**9), 10**9, places=6).map(lambda number: f"{number:f}"),
        "day": st.dates().map(lambda day: day.isoformat()),
        "at": st.fixed_dictionaries(
            {
                "at": st.datetimes().map(lambda at: at.isoformat() + "Z"),
                "zone": st.sampled_from(sorted(available_timezones())),
            }
        ),
    },
)


@given(RAW)
def test_any_of_them_reads_back_from_what_is_shown(raw: dict[str, Any]) -> None:
    try:
        material = Things.normalize(raw).material
    except ArgumentsRefused:
        return  # a code point that I-JSON refuses
    document = view(raw)
    assert document.uninspectable is False
    assert canonicalize(parse_back(document)) == canonicalize(material)
    assert not any(hidden_kind(character) for character in document.to_bytes().decode())
    assert ViewDocument.from_bytes(document.to_bytes()) == document


# -- no type without a renderer --------------------------------------------------------------------------------


class Mute(ArgumentType):
    """A type whose author forgot to say how it is shown."""

    name = "mute"

    def normalize(self, value: Any) -> Any:
        return value

    def json_schema(self) -> dict[str, Any]:
        return {}


class Spoken(Mute):
    name = "spoken"

    def render(self, value: Any, siblings: Any) -> Rendered:
        return Rendered(f"says {value}")

    def parse(self, text: str) -> Any:
        return text.removeprefix("says ")


class Impostor(Spoken):
    name = "money"


class Opaque(Arguments):
    payload: dict[str, Any] = arg(label="Payload", data_class="business")


class OfMute(Arguments):
    inner: list[Annotated[str, Mute()]] = arg(label="Inner", data_class="business")


class Nested(Arguments):
    outer: OfMute = arg(label="Outer", data_class="business")


class OfSpoken(Arguments):
    words: Annotated[str, Spoken()] = arg(label="Words", data_class="business")


class OfImpostor(Arguments):
    amount: Annotated[str, Impostor()] = arg(label="Amount", data_class="business")


@pytest.mark.parametrize("schema", [Opaque, OfMute, Nested, OfImpostor])
def test_an_operation_whose_arguments_cannot_be_shown_is_not_registered(schema: type[Arguments]) -> None:
    class Payload(Operation[Any]):
        name, version, arguments = "cannot.show", 1, schema

    class Flow(ToyOutside):
        name, operations = "cannot-show", (Payload,)

    with pytest.raises(NoRenderer):
        register(Flow)
    assert installed("cannot-show") is None


def test_a_type_of_an_authors_own_is_shown_and_read_back() -> None:
    check_can_be_shown(OfSpoken)
    document = build_view(
        operation="x", operation_version=1, contract_digest="0" * 64, headline="h", consequence="c", schema=OfSpoken,
        arguments={"words": "yes"},
    )  # fmt: skip
    try:
        assert document.uninspectable is False
        assert document.fields[0].text == "says yes"
    finally:
        PARSERS.pop("spoken")
