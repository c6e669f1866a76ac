"""What comes in: the requester's case, every field with its class of data."""

from typing import Annotated

from common.fields import Currency, Email, IdentifierType, Money, TextType
from workflows.authoring import Arguments, arg


class Claim(Arguments):
    """An amount that the requester names. It is a claim: what is refunded is computed from the payment."""

    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")


class RefundRequest(Arguments):
    """One message of one customer, with the order it is about where that is known."""

    customer_id: Annotated[str, IdentifierType(max_length=40)] = arg(label="Customer", data_class="business")
    requester_email: Email = arg(label="Requester", data_class="personal")
    message: Annotated[str, TextType(max_length=4000, min_length=1)] = arg(
        label="Message", data_class="personal"
    )
    order_id: Annotated[str, TextType(max_length=64)] | None = arg(
        None,
        label="Order",
        data_class="business",
        description="as the requester wrote it; asked for where it lacks",
    )
    claimed_amounts: list[Claim] = arg([], label="Claimed amounts", data_class="business")


class OutsideAction(Arguments):
    """What is kept of a proposal that came from outside: the operation and the arguments as they were sent."""

    operation: Annotated[str, TextType(max_length=60)] = arg(label="Operation", data_class="public")
