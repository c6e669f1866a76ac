"""What leaves: a value whole, its fingerprint, or only that it is there, by its declared class and by who gets it.

Every way out asks here: pages, API, packets, mails, exports, logs. *Public* and *business* go to everybody who may open
the thing they belong to. *Personal* goes to roles that are shown it, and to others as a fingerprint, by which equal
values can be told from different ones and no value can be guessed. *Secret* goes to nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import UUID

from common.digests import tenant_hmac
from common.fields import Arguments, DataClass

A = TypeVar("A", bound=Arguments)
_SHORT: Final = 8


@dataclass(frozen=True, slots=True)
class Recipient:
    """Who gets it: people of which tenant, and whether personal values are for them.

    Whatever is sent or kept outside the desks (mails, packets, exports, logs) has one to whom they are not shown.
    """

    tenant_id: UUID
    personal: bool = False


def fingerprint(tenant_id: UUID, value: str) -> str:
    """Eight hexadecimal digits under the tenant's key: equal for equal values, and no help in guessing them."""
    return tenant_hmac(tenant_id, "personal", value.encode()).removeprefix("hmac:")[:_SHORT]


def is_open(data_class: str) -> bool:
    """Whether everybody who may open the thing may see a value of this class."""
    return DataClass(data_class) in (DataClass.PUBLIC, DataClass.BUSINESS)


def may_see(data_class: str, to: Recipient) -> bool:
    return is_open(data_class) or (DataClass(data_class) is DataClass.PERSONAL and to.personal)


def hides(data_class: str, to: Recipient) -> bool:
    """Whether a shown text is personal and not for them. (That of a secret is its reference, never its value.)"""
    return DataClass(data_class) is DataClass.PERSONAL and not to.personal


def disclosed(value: str, data_class: str, to: Recipient) -> str:
    """The value, or what stands in its place."""
    if may_see(data_class, to):
        return value
    return f"⟦{_instead(value, data_class, to.tenant_id)}⟧"


def _instead(value: str, data_class: str, tenant_id: UUID) -> str:
    if DataClass(data_class) is DataClass.SECRET:
        return "secret"
    return f"personal, fingerprint {fingerprint(tenant_id, value)}"


def for_lists(arguments: A, tenant_id: UUID) -> A:
    """The arguments as the words of lists, mails and packets are made of: without personal and secret values.

    In their place stands a text, also where the type is another: code that computes with a personal value has no
    business to do so in words that everybody reads.
    """
    model = type(arguments)
    hidden = {spec.attribute: spec.data_class for spec in model.specs if not is_open(spec.data_class)}
    nested = _nested(arguments, tenant_id)
    changed: Mapping[str, Any] = nested | {
        name: f"({_instead(str(getattr(arguments, name)), data_class, tenant_id)})"
        for name, data_class in hidden.items() if getattr(arguments, name) not in (None, "")
    }  # fmt: skip
    return arguments.model_copy(update=changed) if changed else arguments


def _nested(arguments: Arguments, tenant_id: UUID) -> dict[str, Any]:
    values = {spec.attribute: getattr(arguments, spec.attribute) for spec in type(arguments).specs}
    return {name: _inside(value, tenant_id) for name, value in values.items() if _holds_arguments(value)}


def _holds_arguments(value: Any) -> bool:
    return isinstance(value, Arguments) or (isinstance(value, list) and any(map(_holds_arguments, value)))


def _inside(value: Any, tenant_id: UUID) -> Any:
    if isinstance(value, list):
        return [_inside(item, tenant_id) for item in value]
    return for_lists(value, tenant_id) if isinstance(value, Arguments) else value
