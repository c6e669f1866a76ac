"""The view document: it shows everything that is bound, in parts, and reads back as what is bound."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.viewdoc import (
    MAIN,
    ViewChange,
    ViewDocument,
    ViewEvidence,
    ViewWarning,
    build_view,
    parse_back,
)
from common.digests import view_digest
from common.display import hidden_kind
from common.fields import (
    SCALES,
    Arguments,
    Boolean,
    ChoiceType,
    Currency,
    Decimal,
    Email,
    Identifier,
    Instant,
    Integer,
    Money,
    SecretRef,
    Text,
    Url,
    arg,
)
from common.strictjson import JsonRefused, canonicalize


class Item(Arguments):
    sku: Identifier = arg(label="SKU", data_class="business")
    price: Money | None = arg(None, label="Price", data_class="business")
    currency: Currency = arg("EUR", label="Currency", data_class="business")


class Everything(Arguments):
    """One argument of every type."""

    order: Identifier = arg(label="Order", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    fees: list[Money] = arg([], label="Fee", data_class="business")
    count: Integer = arg(0, label="Count", data_class="business")
    rate: Decimal = arg("0", label="Rate", data_class="business")
    notify: Boolean = arg(default=False, label="Notify", data_class="business")
    at: Instant | None = arg(None, label="At", data_class="business")
    link: Url | None = arg(None, label="Link", data_class="public")
    mail: Email | None = arg(None, label="Receipt to", data_class="personal")
    reason: Annotated[str, ChoiceType(("late", "·", "↵"))] = arg(
        "late", label="Reason", data_class="business"
    )
    token: SecretRef | None = arg(None, label="Token", data_class="secret")
    items: list[Item] = arg([], label="Item", data_class="business")
    first: Item | None = arg(None, label="First item", data_class="business")
    message: Text = arg("", label="Message", data_class="personal")
    note: Text = arg("", label="Note", data_class="personal", material=False)


LEAST: dict[str, Any] = {"order": "order:1042", "amount": "1284.50", "currency": "EUR"}


def view(
    schema: type[Arguments] = Everything, raw: dict[str, Any] | None = None, **more: Any
) -> ViewDocument:
    normalized = schema.normalize({**LEAST, **(raw or {})} if schema is Everything else raw or {})
    texts = {"headline": "Refund EUR 1,284.50", "consequence": "Refund EUR 1,284.50 for order:1042."}
    return build_view(
        operation="refunds.issue",
        operation_version=2,
        contract_digest="0" * 64,
        schema=schema,
        arguments=normalized.material,
        volatile=normalized.volatile,
        **{**texts, **more},
    )


def field(document: ViewDocument, pointer: str) -> Any:
    (found,) = [field for field in document.fields if field.pointer == pointer]
    return found


def test_fields_come_in_the_order_of_the_schema_with_money_in_words() -> None:
    document = view()

    assert [row.label for row in document.fields][:3] == ["Order", "Amount", "Fee"]
    amount = field(document, "/amount")
    assert amount.text == "EUR 1,284.50"
    assert amount.sub == ("one thousand two hundred eighty-four euro and fifty cent",)
    assert amount.covers == ("currency",)
    assert amount.id == "f-amount"


def test_every_type_is_shown_as_plain_text() -> None:
    document = view(
        raw={
            "fees": ["1", "2.5"],
            "count": 1234567,
            "rate": "-1234.5",
            "notify": True,
            "at": "2026-09-22T10:00:00+02:00",
            "link": "https://pay.example.com/x",
            "mail": "Ann@example.com",
            "token": {"secret_ref": "vault:x", "fingerprint": "hmac:" + "0" * 64},
            "items": [{"sku": "a", "price": "2"}, {"sku": "b"}],
        }
    )

    assert {row.pointer: row.text for row in document.fields if row.pointer != "/order"} == {
        "/amount": "EUR 1,284.50",
        "/fees/0": "EUR 1.00",
        "/fees/1": "EUR 2.50",
        "/count": "1,234,567",
        "/rate": "-1,234.5",
        "/notify": "yes",
        "/at": "2026-09-22 08:00:00 UTC",
        "/link": "https://pay.example.com/x",
        "/mail": "Ann@example.com",
        "/reason": "late",
        "/token": "vault:x hmac:" + "0" * 64,
        "/items/0/sku": "a",
        "/items/0/price": "EUR 2.00",
        "/items/1/sku": "b",
        "/items/1/price": "⟦none⟧",
        "/items/1/currency": "EUR",
        "/first": "⟦none⟧",
        "/message": "",
    }
    assert field(document, "/items/1/sku").label == "Item 2 of 2 › SKU"
    assert field(document, "/link").around_strong == ("", "https://pay.example.com", "/x")
    assert field(document, "/mail").around_strong == ("Ann@", "example.com", "")
    assert field(document, "/at").instant == "2026-09-22T08:00:00Z"


def test_a_text_cannot_imitate_what_is_not_there() -> None:
    document = view(raw={"message": "⟦none⟧"})

    assert field(document, "/message").text != field(document, "/at").text
    assert parse_back(document)["message"] == "⟦none⟧"


def test_a_long_value_is_a_part_of_its_own() -> None:
    document = view(raw={"message": "Refund 10 EUR" + "\n" * 60 + "and wire 99999 EUR to acct_evil"})

    message = field(document, "/message")
    assert document.parts == (MAIN, "part-message")
    assert message.folded
    assert (message.lines, message.characters) == (61, 104)
    assert message.preview == "Refund 10 EUR↵\n↵\n↵"
    assert document.fields_of_part("part-message") == (message,)
    assert document.fields_of_part(MAIN) == ()


def test_a_preview_never_cuts_a_sign_in_two() -> None:
    for length in range(225, 241):
        preview = field(view(raw={"message": "x" * length + "\u202e" * 200}), "/message").preview
        assert len(preview) <= 240
        assert preview.count("⟦") == preview.count("⟧")


def test_short_values_are_in_the_main_part() -> None:
    assert view(raw={"message": "x" * 1000}).parts == (MAIN,)
    assert view(raw={"message": "x" * 1001}).parts == (MAIN, "part-message")


def test_warnings_name_their_field_and_say_whether_they_need_a_tick() -> None:
    extra = ViewWarning(
        code="never_seen",
        pointer="/link",
        label="Link\u202e",
        sentence="Never seen before.",
        acknowledge=True,
    )
    document = view(raw={"message": "a\u202eb  c", "link": "https://аррӏе.com/"}, warnings=[extra])

    assert [(warning.id, warning.acknowledge) for warning in document.warnings] == [
        ("idn_host:/link", True),
        ("lookalike_host:/link", True),
        ("bidi_control:/message", True),
        ("whitespace:/message", False),
        ("never_seen:/link", True),
    ]
    assert document.to_acknowledge == (
        "idn_host:/link",
        "lookalike_host:/link",
        "bidi_control:/message",
        "never_seen:/link",
    )
    assert document.warnings[-1].label == "Link⟦U+202E⟧"


def test_everything_around_the_arguments_is_made_visible_too() -> None:
    evil = "x\u202ey"
    document = view(
        headline=evil,
        consequence=evil,
        raw={"note": evil},
        bound=[("Policy", evil)],
        changes=[ViewChange(record=evil, field=evil, before=evil, after=evil)],
        evidence=[
            ViewEvidence(
                kind=evil, title=evil, source=evil, captured_at="2026-09-19T17:00:00Z", digest="sha256:0"
            )
        ],
    )

    assert document.unbound[0].text == "x⟦U+202E⟧y"
    assert document.to_bytes().decode().count("x⟦U+202E⟧y") == 11
    assert not any(hidden_kind(character) for character in document.to_bytes().decode())


def test_an_empty_note_is_called_empty() -> None:
    """*Cannot be shown* is kept for what has no faithful text."""
    assert [row.text for row in view(raw={"note": ""}).unbound] == ["empty"]


def test_the_arguments_in_the_consequence_are_the_strong_ones() -> None:
    assert view().consequence_runs == (
        ("Refund ", False),
        ("EUR 1,284.50", True),
        (" for ", False),
        ("order:1042", True),
        (".", False),
    )


def test_stored_bytes_give_the_same_document_and_digest() -> None:
    document = view(raw={"items": [{"sku": "a"}], "message": "x" * 2000})
    stored = document.to_bytes()

    assert ViewDocument.from_bytes(stored) == document
    assert ViewDocument.from_bytes(stored).to_bytes() == stored
    assert document.digest == view_digest(stored)
    with pytest.raises(JsonRefused):
        ViewDocument.from_bytes(stored[:-1])


def test_each_shown_thing_counts_in_the_digest() -> None:
    digests = {
        view().digest,
        view(raw={"amount": "1284.51"}).digest,
        view(headline="Refund").digest,
        view(raw={"note": "n"}).digest,
        view(bound=[("Policy", "7")]).digest,
    }

    assert len(digests) == 5


def test_what_cannot_be_shown_cannot_be_approved() -> None:
    class Opaque(Arguments):
        order: Identifier = arg(label="Order", data_class="business")
        payload: dict[str, Any] = arg(label="Payload", data_class="business")

    document = view(Opaque, {"order": "o", "payload": {"amount": 1}})

    assert document.uninspectable
    assert field(document, "/payload").text is None
    assert document.warnings[0].code == "uninspectable"
    with pytest.raises(ValueError, match="/payload is not shown"):
        parse_back(document)


def test_a_document_that_shows_other_arguments_is_not_approvable() -> None:
    class Deceiving(Arguments):
        order: Identifier = arg(label="Order", data_class="business")

    arguments = {"order": "o", "amount": "1000000.00"}
    document = build_view(
        operation="x",
        operation_version=1,
        contract_digest="0" * 64,
        headline="h",
        consequence="c",
        schema=Deceiving,
        arguments=arguments,
    )

    assert document.uninspectable


def test_amounts_of_two_currencies_in_one_field_contradict_each_other() -> None:
    document = view(raw={"fees": ["1"]})
    forged = document.model_copy(
        update={
            "fields": tuple(
                row.model_copy(update={"text": "USD 1.00"}) if row.pointer == "/fees/0" else row
                for row in document.fields
            )
        }
    )

    with pytest.raises(ValueError, match="contradict"):
        parse_back(forged)


ODD_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0")) | st.text(
    "ab \n\t⟦⟧↵⇥·\u202e\u200b\u00a0U+none", max_size=30
)
CURRENCIES = st.sampled_from(sorted(SCALES))
IDENTIFIERS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.:~-]{0,20}", fullmatch=True)


@st.composite
def amounts(draw: st.DrawFn, currency: str) -> str:
    whole = draw(st.integers(0, 10**18 - 1))
    fraction = draw(st.text("0123456789", min_size=0, max_size=SCALES[currency]))
    return f"{whole}.{fraction}" if fraction else str(whole)


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    currency = draw(CURRENCIES)
    price = draw(st.none() | amounts(currency))
    return {"sku": draw(IDENTIFIERS), "price": price, "currency": currency}


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    currency = draw(CURRENCIES)
    return {
        "order": draw(IDENTIFIERS),
        "amount": draw(amounts(currency)),
        "currency": currency,
        "fees": draw(st.lists(amounts(currency), max_size=3)),
        "count": draw(st.integers(-(2**53) + 1, 2**53 - 1)),
        "rate": draw(st.decimals(-(10**9), 10**9, places=6).map(lambda number: f"{number:f}")),
        "notify": draw(st.booleans()),
        "at": draw(st.none() | st.datetimes().map(lambda at: at.isoformat() + "Z")),
        "link": draw(
            st.none() | st.sampled_from(["https://pay.example.com/x?y=1#z", "https://аррӏе.com:8443"])
        ),
        "mail": draw(st.none() | st.just("Ann.B@example.com")),
        "reason": draw(st.sampled_from(["late", "·", "↵"])),
        "items": draw(st.lists(items(), max_size=3)),
        "first": draw(st.none() | items()),
        "message": draw(ODD_TEXT),
    }


def accepted(raw: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return dict(Everything.normalize(raw).material)
    except ValueError:
        return None  # the text holds a code point that I-JSON refuses


@given(arguments())
def test_any_arguments_read_back_from_what_is_shown(raw: dict[str, Any]) -> None:
    material = accepted(raw)
    if material is None:
        return

    document = view(raw=raw)

    assert document.uninspectable is False
    assert canonicalize(parse_back(document)) == canonicalize(material)
    assert not any(hidden_kind(character) for character in document.to_bytes().decode())
    assert ViewDocument.from_bytes(document.to_bytes()) == document
