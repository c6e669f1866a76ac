"""Typed arguments: one spelling for each value, stable codes for what is refused."""

from typing import Annotated, Any

import pytest

from common.fields import (
    SCALES,
    Arguments,
    ArgumentsRefused,
    Boolean,
    ChoiceType,
    Currency,
    DataClass,
    Decimal,
    Email,
    Identifier,
    Instant,
    Integer,
    Money,
    SchemaUnknown,
    SecretRef,
    SignedMoney,
    Text,
    TextType,
    Url,
    amount_in_words,
    arg,
    arguments_from,
)


class Item(Arguments):
    sku: Identifier = arg(label="SKU", data_class="business")
    count: Integer = arg(1, label="Count", data_class="business")


class Refund(Arguments):
    """The arguments that most tests use."""

    order: Identifier = arg(label="Order", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    notify: Boolean = arg(default=True, label="Notify", data_class="business")
    items: list[Item] = arg([], label="Item", data_class="business")
    message: Annotated[str, TextType(max_length=10)] | None = arg(
        None, label="Message", data_class="personal"
    )
    trace: Text = arg("", label="Trace", data_class="business", material=False)


LEAST: dict[str, Any] = {"order": "order:1042", "amount": "10", "currency": "EUR"}


def errors_of(schema: type[Arguments], raw: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(ArgumentsRefused) as caught:
        schema.normalize(raw)
    return [(error.path, error.code) for error in caught.value.errors]


def test_defaults_are_written_out_and_volatile_arguments_kept_apart() -> None:
    normalized = Refund.normalize({**LEAST, "trace": "t-1"})

    assert normalized.material == {
        "order": "order:1042",
        "amount": "10.00",
        "currency": "EUR",
        "notify": True,
        "items": [],
        "message": None,
    }
    assert normalized.volatile == {"trace": "t-1"}


def test_every_error_is_reported_with_its_place() -> None:
    raw = {"order": "о:1", "amount": 10, "items": [{"sku": "a", "count": True}, {"skU": "b"}], "extra": 1}

    assert errors_of(Refund, raw) == [
        ("/order", "identifier_charset"),
        ("/amount", "money_must_be_string"),
        ("/currency", "missing_field"),
        ("/items/0/count", "type"),
        ("/items/1/sku", "missing_field"),
        ("/items/1/skU", "unknown_field"),
        ("/extra", "unknown_field"),
    ]


def test_no_message_quotes_a_value() -> None:
    with pytest.raises(ArgumentsRefused) as caught:
        Refund.normalize({"order": "geheim €", "amount": "geheim", "currency": "geheim", "items": "geheim"})

    assert len(caught.value.errors) == 4
    assert "geheim" not in str(caught.value) + repr(caught.value.errors)


def test_arguments_from_code_pass_the_same_gate_as_bytes() -> None:
    assert errors_of(Refund, {**LEAST, "message": "\ud800"}) == [("", "not_canonical")]
    assert errors_of(Refund, {**LEAST, "message": "a\0"}) == [("/message", "nul")]
    assert Refund.normalize_bytes(
        b'{"order":"order:1042","amount":"10","currency":"EUR"}'
    ) == Refund.normalize(LEAST)


@pytest.mark.parametrize(
    ("amount", "currency", "spelled"),
    [
        ("10", "EUR", "10.00"),
        ("10.5", "EUR", "10.50"),
        ("0", "EUR", "0.00"),
        ("1000", "JPY", "1000"),
        ("1.5", "KWD", "1.500"),
        ("999999999999999999.99", "USD", "999999999999999999.99"),
    ],
)
def test_money_has_the_scale_of_its_currency(amount: str, currency: str, spelled: str) -> None:
    normalized = Refund.normalize({**LEAST, "amount": amount, "currency": currency})

    assert normalized.material["amount"] == spelled


@pytest.mark.parametrize(
    ("amount", "currency", "error"),
    [
        ("10.001", "EUR", ("/amount", "decimal_scale")),
        ("10.0", "JPY", ("/amount", "decimal_scale")),
        (10, "EUR", ("/amount", "money_must_be_string")),
        (10.5, "EUR", ("/amount", "money_must_be_string")),
        (True, "EUR", ("/amount", "type")),
        ("-10.00", "EUR", ("/amount", "money_negative")),
        ("1" * 19, "EUR", ("/amount", "money_out_of_range")),
        ("1,000.00", "EUR", ("/amount", "decimal_format")),
        ("10.00\n", "EUR", ("/amount", "decimal_format")),
        (" 10", "EUR", ("/amount", "decimal_format")),
        ("1_0", "EUR", ("/amount", "decimal_format")),
        ("+1", "EUR", ("/amount", "decimal_format")),
        ("010", "EUR", ("/amount", "decimal_format")),
        ("1e2", "EUR", ("/amount", "decimal_format")),
        ("NaN", "EUR", ("/amount", "decimal_format")),
        ("١٠", "EUR", ("/amount", "decimal_format")),
        ("10", "eur", ("/currency", "currency_unknown")),
        ("10", "ЕUR", ("/currency", "currency_unknown")),
        ("10", "XTS", ("/currency", "currency_unknown")),
    ],
)
def test_money_refusals(amount: Any, currency: str, error: tuple[str, str]) -> None:
    assert errors_of(Refund, {**LEAST, "amount": amount, "currency": currency}) == [error]


def test_the_table_of_currencies_has_the_known_exceptions() -> None:
    assert len(SCALES) > 150
    assert {code for code, scale in SCALES.items() if scale == 3} == {
        "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND",
    }  # fmt: skip
    assert all(SCALES[code] == 0 for code in ("JPY", "KRW", "CLP", "VND", "ISK", "XAF"))
    assert SCALES["EUR"] == SCALES["USD"] == SCALES["GBP"] == 2


@pytest.mark.parametrize(
    ("amount", "currency", "words"),
    [
        ("1284.50", "EUR", "one thousand two hundred eighty-four euro and fifty cent"),
        ("0.00", "EUR", "zero euro"),
        ("1000000.01", "USD", "one million US dollars and one cents"),
        ("19", "JPY", "nineteen yen"),
        ("21.007", "BHD", "twenty-one BHD and seven thousandths"),
    ],
)
def test_amounts_in_words(amount: str, currency: str, words: str) -> None:
    assert amount_in_words(amount, currency) == words


def test_negative_money_has_to_be_declared() -> None:
    class Correction(Arguments):
        by: SignedMoney = arg(label="By", data_class="business")
        currency: Currency = arg(label="Currency", data_class="business")

    assert Correction.normalize({"by": "-1.5", "currency": "EUR"}).material["by"] == "-1.50"
    assert Correction.normalize({"by": "-0", "currency": "EUR"}).material["by"] == "0.00"


def test_a_field_needs_a_data_class() -> None:
    with pytest.raises(TypeError, match=r"Careless.order is not declared with arg\(\)"):

        class Careless(Arguments):
            order: Identifier


def test_money_needs_one_clear_material_currency() -> None:
    with pytest.raises(TypeError, match="which field holds its currency is not clear"):

        class Without(Arguments):
            amount: Money = arg(label="Amount", data_class="business")

    with pytest.raises(TypeError, match="which field holds its currency is not clear"):

        class Two(Arguments):
            amount: Money = arg(label="Amount", data_class="business")
            one: Currency = arg(label="One", data_class="business")
            other: Currency = arg(label="Other", data_class="business")

    with pytest.raises(TypeError, match="so its currency must be too"):

        class Unbound(Arguments):
            amount: Money = arg(label="Amount", data_class="business")
            currency: Currency = arg(label="Currency", data_class="business", material=False)


def test_two_moneys_may_have_a_currency_each() -> None:
    class Exchange(Arguments):
        sold: Money = arg(label="Sold", data_class="business", currency="from_currency")
        from_currency: Currency = arg(label="From", data_class="business")
        bought: Money = arg(label="Bought", data_class="business", currency="to_currency")
        to_currency: Currency = arg(label="To", data_class="business")

    normalized = Exchange.normalize(
        {"sold": "1", "from_currency": "EUR", "bought": "160", "to_currency": "JPY"}
    )

    assert normalized.material["sold"] == "1.00"
    assert normalized.material["bought"] == "160"


def test_members_of_a_structure_cannot_be_left_out_of_the_signature() -> None:
    class Loose(Arguments):
        note: Text = arg(label="Note", data_class="business", material=False)

    with pytest.raises(TypeError, match="not material"):

        class Holder(Arguments):
            inner: Loose = arg(label="Inner", data_class="business")


def test_a_secret_is_of_the_class_secret_whatever_is_declared() -> None:
    class Call(Arguments):
        token: SecretRef = arg(label="Token", data_class="business")

    assert Call.specs[0].data_class is DataClass.SECRET


def test_the_schema_says_what_is_material_and_who_may_see_it() -> None:
    document = Refund.schema_document()

    assert document["additionalProperties"] is False
    assert document["required"] == ["order", "amount", "currency"]
    assert "trace" not in document["x-placet-material"]
    assert document["properties"]["order"] == {
        "type": "string",
        "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:~-]*$",
        "maxLength": 128,
        "title": "Order",
        "x-placet-type": "identifier",
        "x-placet-label": "Order",
        "x-placet-data-class": "business",
        "x-placet-material": True,
    }


def described(label: str = "Order", **changes: Any) -> type[Arguments]:
    class Described(Arguments):
        order: Annotated[str, TextType(**changes)] = arg(label=label, data_class="business")

    return Described


def test_the_content_hash_covers_schema_and_display_and_no_class_names() -> None:
    class Renamed(Arguments):
        """Another docstring."""

        order: Text = arg(label="Order", data_class="business")

    assert Renamed.content_hash() == described().content_hash()
    assert described(max_length=5).content_hash() != described().content_hash()
    assert described(label="Other").content_hash() != described().content_hash()
    assert Renamed.content_hash_source()["display"] == {"order:text": 1}


def test_a_changed_display_changes_the_content_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    before = described().content_hash()

    monkeypatch.setattr(TextType, "display_version", 2)

    assert described().content_hash() != before


def test_described_schemas_take_any_name() -> None:
    schema = arguments_from(
        {"schema": "text", "_id": "identifier", "model_config": "text", "copy": "bool=true"}
    )

    normalized = schema.normalize({"schema": "s", "_id": "i", "model_config": "m"})

    assert normalized.material == {"schema": "s", "_id": "i", "model_config": "m", "copy": True}
    assert errors_of(schema, {"schema": 1, "_id": "i", "model_config": "m"}) == [("/schema", "type")]


@pytest.mark.parametrize(
    "schema", [{"a": "float"}, {"a": 1}, {"a": "bool=yes"}, {"a": "money"}, {"a": "choice:"}, {"a": "list:"}]
)
def test_described_schemas_that_are_not_understood(schema: Any) -> None:
    with pytest.raises(SchemaUnknown):
        arguments_from(schema)


def test_a_choice_is_one_of_the_words() -> None:
    class Pick(Arguments):
        reason: Annotated[str, ChoiceType(("late", "damaged"))] = arg(label="Reason", data_class="business")
        when: Instant | None = arg(None, label="When", data_class="business")
        link: Url | None = arg(None, label="Link", data_class="public")
        mail: Email | None = arg(None, label="Mail", data_class="personal")
        rate: Decimal | None = arg(None, label="Rate", data_class="business")

    assert Pick.normalize({"reason": "late"}).material == {
        "reason": "late", "when": None, "link": None, "mail": None, "rate": None,
    }  # fmt: skip
    assert errors_of(Pick, {"reason": "lost", "rate": 1}) == [
        ("/reason", "choice_unknown"),
        ("/rate", "decimal_must_be_string"),
    ]
