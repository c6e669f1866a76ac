"""The amount of money that lists show and sort by."""

from decimal import Decimal

from common.disclosure import is_open
from common.fields import Arguments, MoneyType


def amount_of(arguments: Arguments) -> tuple[Decimal, str] | None:
    """The one amount of money that is moved, without its sign, and its currency; None for none or several.

    Lists show it to everybody: an amount of a class that they are not shown is none.
    """
    found = [spec for spec in type(arguments).specs if isinstance(spec.kind, MoneyType) and spec.material]
    if len(found) != 1 or not is_open(found[0].data_class):
        return None
    [spec] = found
    names = {other.name: other.attribute for other in type(arguments).specs}
    currency = getattr(arguments, names[spec.currency]) if spec.currency else ""
    return abs(Decimal(getattr(arguments, spec.attribute))), str(currency)
