"""A workflow whose operation pays an account and tells somebody: for what is compared with earlier actions."""

from typing import Annotated, Any, ClassVar

from common.fields import Account, Currency, Email, FileByHash, Iban, Identifier, Money, Person, TextType, Url
from tests.workflows.toy import ToyFlow, ToyPay, ToyPolicy
from workflows.authoring import Arguments, Facts, Operation, Policy, Stage, Workflow, arg, register
from workflows.definitions import Contract


class PayoutArguments(Arguments):
    supplier: Identifier = arg(label="Supplier", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    account: Account = arg(label="Account", data_class="business")
    receipt_to: Email = arg(label="Receipt goes to", data_class="business")
    payee: Annotated[str, TextType(max_length=80)] = arg("", label="Payee", data_class="business")
    copies: list[Email] = arg([], label="Copy to", data_class="business")
    message: Annotated[str, TextType(max_length=65_536)] = arg("", label="Message", data_class="business")
    iban: Iban | None = arg(None, label="IBAN", data_class="business")
    owner: Person | None = arg(None, label="Owner", data_class="business")
    fees: list[Money] = arg([], label="Fee", data_class="business", currency="currency")
    accounts: list[Account] = arg([], label="Pay also", data_class="business")
    file: FileByHash | None = arg(None, label="File", data_class="business")
    page: Url | None = arg(None, label="Page", data_class="business")


class PayoutPolicy(ToyPolicy):
    name: ClassVar[str] = "payout-policy"


class Payout(ToyPay):
    name: ClassVar[str] = "toy.payout"
    title: ClassVar[str] = "Pay a supplier"
    arguments: ClassVar[type[Arguments]] = PayoutArguments
    policy: ClassVar[Policy[Any]] = PayoutPolicy()

    def look(self, site: Any, arguments: Any) -> Facts:
        return {"tag": "v1"}

    def target(self, arguments: Any) -> str:
        return f"supplier:{arguments.supplier}"

    def business_key(self, arguments: Any) -> str:
        return f"pay {arguments.amount} to {arguments.account} for {arguments.supplier} {arguments.message}"

    def consequence(self, arguments: Any, facts: Facts) -> str:
        return f"Pay {arguments.currency} {arguments.amount} to {arguments.account}."


class PayoutDesk(Workflow):
    name: ClassVar[str] = "toy-payouts"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "Payouts that an agent proposes"
    contract: ClassVar[Contract] = ToyFlow.contract
    stages: ClassVar[tuple[Stage, ...]] = ()
    operations: ClassVar[tuple[type[Operation[Any]], ...]] = (Payout,)
    accepts_proposals: ClassVar[bool] = True


def install() -> None:
    register(PayoutDesk)


def arguments(**changes: Any) -> dict[str, Any]:
    least = {
        "supplier": "s-1", "amount": "100.00", "currency": "EUR", "account": "acct_12345",
        "receipt_to": "billing@harbour-lane.example",
    }  # fmt: skip
    return least | changes
