"""What a history is to the signer: how many seals, the root over them, the last one's hash. And when it is another."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from audit.chain import GENESIS
from audit.tree import Frontier

CHANGED: Final = "changed"
SHORTER: Final = "shorter"
MISSING: Final = "missing"
UNLINKED: Final = "unlinked"
REMOVED: Final = "removed"
"""A row with what was signed was taken out of the database, or changed."""
DAMAGED: Final = "damaged"
"""What the signer's own folder remembers of this tenant cannot be read."""


class Seal(NamedTuple):
    """A place in the chain as it is stored."""

    seq: int
    previous: str
    hash: str


class Refused(Exception):
    """The stored history does not extend the one that was signed: ``cause`` is a code, ``detail`` a sentence."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause, self.detail = cause, detail


@dataclass(frozen=True, slots=True)
class History:
    """A history up to one event. The empty one is the default."""

    frontier: Frontier = field(default_factory=Frontier)
    head: str = GENESIS

    @property
    def size(self) -> int:
        return self.frontier.size

    @property
    def root(self) -> bytes:
        return self.frontier.root()

    def same(self, other: "History") -> bool:
        return (self.size, self.root, self.head) == (other.size, other.root, other.head)


def follow(begin: History, seals: Iterable[Seal], signed: History | None = None) -> History:
    """The history after ``begin`` and all ``seals``.

    Raises Refused where a seal is missing or does not follow the one before it, and, with ``signed``, where the
    history at its size is not the one that was signed, or does not reach it.
    """
    frontier, head = begin.frontier.copy(), begin.head
    for seal in seals:
        _check_link(seal, frontier.size, head)
        frontier.append(bytes.fromhex(seal.hash))
        head = seal.hash
        if signed is not None and frontier.size == signed.size:
            _check_same(History(frontier, head), signed)
    if signed is not None and frontier.size < signed.size:
        raise Refused(SHORTER, f"It ends at event {frontier.size:,}, and {signed.size:,} were signed.")
    return History(frontier, head)


def check_place(signed: History, stored: str | None) -> None:
    """``stored`` is the hash of the seal at the size that was signed; None where there is no such seal."""
    if signed.size and stored is None:
        raise Refused(SHORTER, f"There is no seal of event {signed.size:,}, which was signed.")
    if signed.size and stored != signed.head:
        raise Refused(CHANGED, f"The seal of event {signed.size:,} is not the one that was signed.")


def _check_link(seal: Seal, size: int, head: str) -> None:
    if seal.seq != size + 1:
        raise Refused(MISSING, f"There is no seal of event {size + 1:,}.")
    if seal.previous != head:
        raise Refused(UNLINKED, f"The seal of event {seal.seq:,} does not follow the one before it.")
    if len(seal.hash) != 64 or not set(seal.hash) <= set("0123456789abcdef"):
        raise Refused(UNLINKED, f"The seal of event {seal.seq:,} has no hash.")


def _check_same(found: History, signed: History) -> None:
    if not found.same(signed):
        raise Refused(CHANGED, f"Some of the first {signed.size:,} seals are not those that were signed.")
