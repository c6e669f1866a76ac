"""A toy workflow whose payments can be taken back, and whose rest can be told where they happened in part."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, ClassVar

from common.clock import db_clock
from common.fields import Currency, Email, Identifier, Money
from tests.workflows.conftest import Desk
from tests.workflows.toy import ToyArguments, ToyFlow, ToyPay, ToyPolicy
from workflows import registry
from workflows.authoring import (
    REFERENCE,
    Arguments,
    Facts,
    Happened,
    Operation,
    Policy,
    Propose,
    Site,
    StageContext,
    arg,
    register,
)

FLOW = "toy-back"
RECIPIENT = "mara.lindqvist@example.com"


class BackArguments(Arguments):
    order: Identifier = arg(label="Order", data_class="business")
    payment: Identifier = arg(label="Payment", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    told: Email = arg(label="Who is told", data_class="personal")


class PaidArguments(ToyArguments):
    told: Email = arg(label="Who is told", data_class="personal")


class BackPolicy(ToyPolicy):
    name: ClassVar[str] = "toy-back-policy"


class TakeBack(ToyPay):
    """Takes a payment back. It shares the till, outcomes and look-up with what made it."""

    name: ClassVar[str] = "toy.take_back"
    title: ClassVar[str] = "Take back"
    arguments: ClassVar[type[Arguments]] = BackArguments
    policy: ClassVar[Policy[Any]] = BackPolicy()

    def business_key(self, arguments: Any) -> str:
        return f"back:{arguments.payment}"

    def consequence(self, arguments: Any, facts: Facts) -> str:
        return f"Take payment {arguments.payment} of {arguments.currency} {arguments.amount} back."

    def earlier_effects(self, site: Site, arguments: Any) -> tuple[str, ...]:
        return ()


class PayBack(ToyPay):
    """A payment that can be taken back; of one that happened in part, half is left."""

    name: ClassVar[str] = "toy.pay_back"
    arguments: ClassVar[type[Arguments]] = PaidArguments
    counter: ClassVar[type[Operation[Any]] | None] = TakeBack
    counter_from: ClassVar[dict[str, str]] = {
        "order": "order", "payment": REFERENCE, "amount": "amount", "currency": "currency", "told": "told",
    }  # fmt: skip

    def business_key(self, arguments: ToyArguments) -> str:
        return f"pay:{arguments.order}:{arguments.amount}"

    def remainder(self, arguments: Any, effect: Happened, facts: Facts) -> dict[str, Any] | None:
        half = f"{Decimal(arguments.amount) / 2:.2f}"
        return {
            "order": arguments.order,
            "amount": half,
            "currency": arguments.currency,
            "told": arguments.told,
        }


class ToyBack(ToyFlow):
    """On stage *execute*, where rules may approve."""

    name: ClassVar[str] = FLOW
    stage: ClassVar[Any] = "execute"
    operations: ClassVar[tuple[type[Operation[Any]], ...]] = (PayBack, TakeBack)


def pays(context: StageContext) -> Propose:
    arguments = {
        "order": context.input.order,
        "amount": context.input.amount,
        "currency": "EUR",
        "told": RECIPIENT,
    }
    return Propose("toy.pay_back", arguments, "the test wants it")


@contextmanager
def installed(desk: Desk) -> Iterator[Desk]:
    """The workflow is there for a test, and nobody else's list of what is installed has it afterwards."""
    workflows, operations = dict(registry._workflows), dict(registry._operations)
    register(ToyBack)
    registry.register_definitions(clock=db_clock)
    desk.till.stages["pay"] = pays
    try:
        yield desk
    finally:
        registry._workflows.clear()
        registry._workflows.update(workflows)
        registry._operations.clear()
        registry._operations.update(operations)
