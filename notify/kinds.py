"""Which kinds of messages there are, as declared by the apps that know what they mean when apps are loaded."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """``asks``: somebody is to do something, and the message is moot once its subject no longer waits.

    ``mail`` and ``chat`` say where it goes by default; in the app it always stands. ``at_once``: neither collected
    nor held back by quiet hours. ``alarm``: about telling itself, so that its own failure alarms nobody again.
    """

    name: str
    title: str
    """As a heading of a mail and of a row: *You are asked to decide*."""
    says: str
    """For the page of preferences: what is told."""
    asks: bool = False
    mail: bool = False
    chat: bool = False
    at_once: bool = False
    alarm: bool = False
    chosen: bool = True
    """Whether people may choose about it."""


_known: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """Declare a kind; the same name twice is a mistake, unless it says the same."""
    if _known.setdefault(kind.name, kind) != kind:
        raise ValueError(f"There is another kind {kind.name!r} already.")
    return kind


def kind_of(name: str) -> Kind:
    """The kind, also of a row whose kind this release no longer has."""
    return _known.get(name) or Kind(name, name.replace("_", " ").capitalize(), "", chosen=False)


def all_kinds() -> list[Kind]:
    return list(_known.values())


UNDELIVERED: Final = register(
    Kind(
        "undelivered",
        "Something could not be delivered",
        "a mail or chat message that was given up",
        alarm=True,
    )
)
CHECKPOINT: Final = register(
    Kind("checkpoint", "A checkpoint of the history", "checkpoints of the history, once a day", chosen=False)
)
"""To those who keep them outside, and to nobody else: an admin registers them."""
HISTORY: Final = register(
    Kind(
        "history_alarm", "The history is not what it was", "that the history was changed, or is refused by its signer",
        mail=True, chat=True, at_once=True, chosen=False,
    )
)  # fmt: skip
"""To the admins: it must not be missed by nobody's looking."""
TEST: Final = register(
    Kind("test", "A test", "a test that an admin sends", mail=True, at_once=True, alarm=True, chosen=False)
)
