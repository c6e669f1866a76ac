"""What this app says about things that it does not know, as told by the apps that do: they register here.

What it means for work in progress that a person stops counting; and which workflows and operations there are.
"""

from collections.abc import Callable, Collection
from uuid import UUID

Effects = Callable[[UUID, Collection[UUID]], list[str]]
"""Sentences for a page of confirmation, of the tenant and the accounts; they must not write."""

_registered: list[Effects] = []


def register(effects: Effects) -> None:
    if effects not in _registered:
        _registered.append(effects)


def effects_of(tenant_id: UUID, accounts: Collection[UUID]) -> list[str]:
    """What becomes of what these accounts decided and were asked, once they no longer count."""
    return [sentence for effects in _registered for sentence in effects(tenant_id, accounts)]


Names = tuple[list[str], list[str]]
_offered: list[Callable[[], Names]] = []


def offer(names: Callable[[], Names]) -> None:
    """Register who knows the names of the installed workflows and operations, for the form of an automation."""
    if names not in _offered:
        _offered.append(names)


def installed() -> Names:
    """The names of the workflows, and of the operations; empty where nobody has registered."""
    return _offered[0]() if _offered else ([], [])
