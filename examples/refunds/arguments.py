"""What a refund says: the arguments that an approval binds to."""

from typing import Annotated

from common.fields import ChoiceType, Currency, Email, IdentifierType, Money, TextType
from workflows.authoring import Arguments, arg

REASONS = (
    "refund_missing", "charged_twice", "damaged", "not_received", "unwanted", "overcharged", "goodwill",
)  # fmt: skip


class RefundArguments(Arguments):
    """The customer reads ``message``, so it is part of what is approved; ``note`` reaches nobody outside."""

    order: Annotated[str, IdentifierType(max_length=32)] = arg(label="Order", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    reason: Annotated[str, ChoiceType(REASONS)] = arg(label="Reason", data_class="business")
    receipt_to: Email = arg(label="Receipt goes to", data_class="personal")
    message: Annotated[str, TextType(max_length=2000)] = arg(
        "", label="Message to the customer", data_class="personal"
    )
    note: Annotated[str, TextType(max_length=2000)] = arg(
        "", label="Note for the reviewer", data_class="personal", material=False
    )


class ReversalArguments(Arguments):
    """Which refund of which order is called back, and how much it was."""

    order: Annotated[str, IdentifierType(max_length=32)] = arg(label="Order", data_class="business")
    refund: Annotated[str, IdentifierType(max_length=32)] = arg(label="Refund", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
