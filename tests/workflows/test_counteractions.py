"""Counter-actions are checked when a workflow is registered: what could not be proposed is refused at start-up."""

from typing import Any, ClassVar

import pytest

from common.fields import Currency, Email, Identifier, Money
from tests.workflows.toy import ToyFlow, ToyPay
from tests.workflows.toy_back import PayBack, TakeBack, ToyBack
from workflows.authoring import REFERENCE, Arguments, Operation, Stage, arg
from workflows.counteractions import check_follow_ups
from workflows.operations import Happened
from workflows.registry import _content_hash

NAMED = {"order": "order", "payment": REFERENCE, "amount": "amount", "currency": "currency", "told": "told"}


def flow(*operations: type[Operation[Any]]) -> type[ToyFlow]:
    return type("Flow", (ToyFlow,), {"operations": operations})


def paying(**changes: Any) -> type[Operation[Any]]:
    return type("Paying", (PayBack,), changes)


def test_what_fits_is_accepted() -> None:
    check_follow_ups(ToyBack)
    check_follow_ups(ToyFlow)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"counter": None}, "names none"),
        ({"counter": ToyPay}, "no operation of"),
        ({"counter_from": {}}, "missing"),
        ({"counter_from": {**NAMED, "other": "order"}}, r"unknown \['other'\]"),
        ({"counter_from": {**NAMED, "order": "nothing"}}, r"\['order'\]"),
        ({"counter_from": {**NAMED, "order": "amount"}}, r"\['order'\]"),
        ({"counter_from": {**NAMED, "amount": REFERENCE}}, r"\['amount'\]"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        check_follow_ups(flow(paying(**changes), TakeBack))


def test_no_operation_is_its_own_counter_action() -> None:
    own = paying()
    own.counter = own
    with pytest.raises(TypeError, match="its own counter-action"):
        check_follow_ups(flow(own, TakeBack))


def test_a_counter_action_shows_nothing_to_more_people() -> None:
    class Shown(Arguments):
        order: Identifier = arg(label="Order", data_class="business")
        payment: Identifier = arg(label="Payment", data_class="business")
        amount: Money = arg(label="Amount", data_class="business")
        currency: Currency = arg(label="Currency", data_class="business")
        told: Email = arg(label="Who is told", data_class="business")

    class Showing(TakeBack):
        arguments: ClassVar[type[Arguments]] = Shown

    with pytest.raises(TypeError, match=r"\['told'\]"):
        check_follow_ups(flow(paying(counter=Showing), Showing))


def test_who_makes_the_arguments_in_another_way_is_checked_when_they_are_made() -> None:
    class Making(PayBack):
        counter_from: ClassVar[dict[str, str]] = {}

        def counter_arguments(self, arguments: Any, effect: Happened) -> dict[str, Any]:
            return {"order": arguments.order, "payment": effect.reference}

    check_follow_ups(flow(Making, TakeBack))


@pytest.mark.parametrize("key", ["pay~undo", "p" * 41])
def test_no_stage_has_the_key_of_what_follows_an_effect(key: str) -> None:
    stages = (Stage(key, lambda context: None),)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="The key of a stage"):
        check_follow_ups(type("Flow", (ToyFlow,), {"stages": stages}))


def test_the_arguments_are_made_from_the_approved_ones_and_the_reference() -> None:
    arguments = PayBack.arguments.model_validate(
        {"order": "1042", "amount": "10.00", "currency": "EUR", "told": "mara.lindqvist@example.com"}
    )
    made = PayBack().counter_arguments(arguments, Happened("re_1"))
    assert made == {
        "order": "1042", "payment": "re_1", "amount": "10.00", "currency": "EUR",
        "told": "mara.lindqvist@example.com",
    }  # fmt: skip
    assert TakeBack.arguments.normalize(dict(made)).material == made


def plain() -> type[Operation[Any]]:
    class Paying(ToyPay):
        title: ClassVar[str] = "Pay"

    return Paying


def declaring() -> type[Operation[Any]]:
    class Paying(ToyPay):
        title: ClassVar[str] = "Pay"
        counter: ClassVar[type[Operation[Any]] | None] = TakeBack
        counter_from = NAMED

        def remainder(self, arguments: Any, effect: Happened, facts: Any) -> dict[str, Any] | None:
            return None

    return Paying


def other() -> type[Operation[Any]]:
    class Paying(ToyPay):
        title: ClassVar[str] = "Pay it"

    return Paying


def test_declaring_one_changes_no_version() -> None:
    """An approval binds to nothing of it; to a title it does."""
    assert _content_hash(plain()) == _content_hash(declaring())
    assert _content_hash(plain()) != _content_hash(other())
