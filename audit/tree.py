"""The Merkle tree of RFC 6962 over a tenant's chain: one root that names a whole history.

An entry is the 32 raw bytes of an event's link hash; the event at place ``seq`` is entry number ``seq - 1``.
``leaf = SHA-256(0x00 || entry)``, ``node = SHA-256(0x01 || left || right)``, and the root of no entries is
``SHA-256("")``. Nothing here knows of Django or of the database: the signer and the verifier use it as it is.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

EMPTY: Final = hashlib.sha256(b"").digest()
WIDTH: Final = 32
"""Bytes of a hash."""


def leaf_hash(entry: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def root(entries: Iterable[bytes]) -> bytes:
    """The root over all entries."""
    frontier = Frontier()
    for entry in entries:
        frontier.append(entry)
    return frontier.root()


class Frontier:
    """As much of a tree as is needed to go on: the roots of its complete subtrees, the largest first.

    There is one for each bit that is set in ``size``, so a history of a million events takes twenty hashes.
    """

    def __init__(self, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        if size < 0 or len(peaks) != size.bit_count() or any(len(peak) != WIDTH for peak in peaks):
            raise ValueError("These peaks are not those of a tree of this size.")
        self.size, self.peaks = size, list(peaks)

    def append(self, entry: bytes) -> None:
        fresh = leaf_hash(entry)
        for _ in range(_trailing_ones(self.size)):
            fresh = node_hash(self.peaks.pop(), fresh)
        self.peaks.append(fresh)
        self.size += 1

    def root(self) -> bytes:
        return _fold(self.peaks)

    def copy(self) -> "Frontier":
        return Frontier(self.size, self.peaks)

    def as_json(self) -> dict[str, Any]:
        return {"size": self.size, "peaks": [base64.b64encode(peak).decode() for peak in self.peaks]}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Frontier":
        """ValueError for peaks that cannot belong to that size."""
        return cls(int(stored["size"]), [base64.b64decode(peak, validate=True) for peak in stored["peaks"]])


class Tree:
    """A whole tree in memory, for proofs: 64 bytes an entry."""

    def __init__(self, entries: Iterable[bytes] = ()) -> None:
        self._levels = [bytearray()]  # of each level the hashes of its complete subtrees, one after the other
        self.size = 0
        for entry in entries:
            self.append(entry)

    def append(self, entry: bytes) -> None:
        fresh, level = leaf_hash(entry), 0
        self._add(level, fresh)
        for _ in range(_trailing_ones(self.size)):
            left = bytes(self._levels[level][-2 * WIDTH : -WIDTH])
            fresh, level = node_hash(left, fresh), level + 1
            self._add(level, fresh)
        self.size += 1

    def root(self, size: int | None = None) -> bytes:
        """The root over the first ``size`` entries; over all without it."""
        return self._range(0, self._known(size))

    def inclusion_proof(self, index: int, size: int | None = None) -> list[bytes]:
        """The audit path of RFC 6962 (2.1.1) for the entry ``index`` (from 0) among the first ``size``."""
        end = self._known(size)
        if not 0 <= index < end:
            raise ValueError("There is no such entry in a tree of this size.")
        return self._path(index, 0, end)

    def consistency_proof(self, old: int, new: int | None = None) -> list[bytes]:
        """The proof of RFC 6962 (2.1.2) that the tree of ``new`` entries begins with the one of ``old``."""
        end = self._known(new)
        if not 0 <= old <= end:
            raise ValueError("The older tree is not the smaller one.")
        return [] if old in (0, end) else self._subproof(old, 0, end, whole=True)

    def _known(self, size: int | None) -> int:
        if size is not None and not 0 <= size <= self.size:
            raise ValueError("The tree has fewer entries.")
        return self.size if size is None else size

    def _add(self, level: int, fresh: bytes) -> None:
        if level == len(self._levels):
            self._levels.append(bytearray())
        self._levels[level] += fresh

    def _range(self, start: int, end: int) -> bytes:
        """The root over the entries from ``start`` to before ``end``; ``start`` is where a subtree begins."""
        peaks = []
        while start < end:
            level = (end - start).bit_length() - 1
            place = (start >> level) * WIDTH
            peaks.append(bytes(self._levels[level][place : place + WIDTH]))
            start += 1 << level
        return _fold(peaks)

    def _path(self, index: int, start: int, end: int) -> list[bytes]:
        if end - start == 1:
            return []
        middle = start + _split(end - start)
        if index < middle:
            return [*self._path(index, start, middle), self._range(middle, end)]
        return [*self._path(index, middle, end), self._range(start, middle)]

    def _subproof(self, old: int, start: int, end: int, *, whole: bool) -> list[bytes]:
        """``whole``: the older tree is this very subtree, so its root is known to whoever checks."""
        if old == end:
            return [] if whole else [self._range(start, end)]
        middle = start + _split(end - start)
        if old <= middle:
            return [*self._subproof(old, start, middle, whole=whole), self._range(middle, end)]
        return [*self._subproof(old, middle, end, whole=False), self._range(start, middle)]


def inclusion_proof(entries: Iterable[bytes], index: int) -> list[bytes]:
    return Tree(entries).inclusion_proof(index)


def consistency_proof(entries: Iterable[bytes], old: int) -> list[bytes]:
    return Tree(entries).consistency_proof(old)


def verify_inclusion(entry: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether ``entry`` is number ``index`` (from 0) of the ``size`` entries under ``root`` (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    here, last, found = index, size - 1, leaf_hash(entry)
    for step in path:
        if last == 0:
            return False
        if here & 1 or here == last:
            found = node_hash(step, found)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            found = node_hash(found, step)
        here, last = here >> 1, last >> 1
    return last == 0 and found == root


def verify_consistency(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether the tree of ``new`` entries begins with the tree of ``old`` (RFC 9162, 2.1.4.2)."""
    if not 0 <= old <= new:
        return False
    if old in (0, new):
        return not proof and old_root == (EMPTY if old == 0 else new_root)
    steps = list(proof) if old & (old - 1) else [old_root, *proof]
    return bool(steps) and _climb(old - 1, new - 1, steps) == (old_root, new_root)


def _climb(here: int, last: int, steps: Sequence[bytes]) -> tuple[bytes, bytes] | None:
    """The two roots that the steps of a proof lead to; None where their number does not fit the sizes."""
    while here & 1:
        here, last = here >> 1, last >> 1
    older = newer = steps[0]
    for step in steps[1:]:
        if last == 0:
            return None
        if here & 1 or here == last:
            older, newer = node_hash(step, older), node_hash(step, newer)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            newer = node_hash(newer, step)
        here, last = here >> 1, last >> 1
    return (older, newer) if last == 0 else None


def _fold(peaks: Sequence[bytes]) -> bytes:
    """One root from the roots of complete subtrees, the largest first."""
    if not peaks:
        return EMPTY
    found = peaks[-1]
    for peak in reversed(peaks[:-1]):
        found = node_hash(peak, found)
    return found


def _split(size: int) -> int:
    """The largest power of two that is smaller than ``size`` (at least 2)."""
    return 1 << ((size - 1).bit_length() - 1)


def _trailing_ones(number: int) -> int:
    return ((number + 1) & ~number).bit_length() - 1
