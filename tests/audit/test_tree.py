"""The Merkle tree against the reference vectors of Certificate Transparency, and against RFC 6962's own recursion."""

import hashlib
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.tree import (
    EMPTY,
    Frontier,
    Tree,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root,
    verify_consistency,
    verify_inclusion,
)

ENTRIES = [
    bytes.fromhex(entry)
    for entry in (
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
    )
]  # fmt: skip
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
INCLUSIONS = [  # (index, size, path)
    (0, 1, []),
    (
        0, 8,
        [
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ],
    ),
    (
        5, 8,
        [
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    ),
    (2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
    (
        1, 5,
        [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ],
    ),
]  # fmt: skip
CONSISTENCIES = [  # (older size, newer size, proof)
    (1, 1, []),
    (
        1, 8,
        [
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ],
    ),
    (
        6, 8,
        [
            "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    ),
    (
        2, 5,
        [
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ],
    ),
]  # fmt: skip
entries = st.lists(st.binary(max_size=3).map(lambda data: hashlib.sha256(data).digest()), max_size=70)


def naive(leaves: Sequence[bytes]) -> bytes:
    """The definition of RFC 6962, 2.1, word by word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    split = max(2**power for power in range(8) if 2**power < len(leaves))
    return hashlib.sha256(b"\x01" + naive(leaves[:split]) + naive(leaves[split:])).digest()


@pytest.mark.parametrize("size", range(9))
def test_roots_are_those_of_the_reference(size: int) -> None:
    expected = bytes.fromhex(ROOTS[size])
    assert root(ENTRIES[:size]) == expected
    assert Tree(ENTRIES).root(size) == expected
    assert naive(ENTRIES[:size]) == expected


@pytest.mark.parametrize(("index", "size", "path"), INCLUSIONS)
def test_inclusion_proofs_are_those_of_the_reference(index: int, size: int, path: list[str]) -> None:
    expected = [bytes.fromhex(step) for step in path]
    assert Tree(ENTRIES).inclusion_proof(index, size) == expected
    assert inclusion_proof(ENTRIES[:size], index) == expected
    assert verify_inclusion(ENTRIES[index], index, size, expected, bytes.fromhex(ROOTS[size]))


@pytest.mark.parametrize(("old", "new", "proof"), CONSISTENCIES)
def test_consistency_proofs_are_those_of_the_reference(old: int, new: int, proof: list[str]) -> None:
    expected = [bytes.fromhex(step) for step in proof]
    assert Tree(ENTRIES).consistency_proof(old, new) == expected
    assert consistency_proof(ENTRIES[:new], old) == expected
    assert verify_consistency(old, new, bytes.fromhex(ROOTS[old]), bytes.fromhex(ROOTS[new]), expected)


@settings(deadline=None)
@given(entries)
def test_the_frontier_has_the_root_of_the_recursion_at_every_size(leaves: list[bytes]) -> None:
    frontier = Frontier()
    for size, leaf in enumerate(leaves, start=1):
        frontier.append(leaf)
        frontier = Frontier.from_json(json.loads(json.dumps(frontier.as_json())))
        assert (frontier.size, frontier.root()) == (size, naive(leaves[:size]))


@settings(deadline=None)
@given(entries.filter(bool), st.data())
def test_a_proof_of_inclusion_holds_for_its_own_entry_only(leaves: list[bytes], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, len(leaves)))
    index = data.draw(st.integers(0, size - 1))
    path, top = Tree(leaves).inclusion_proof(index, size), naive(leaves[:size])
    assert verify_inclusion(leaves[index], index, size, path, top)
    assert not verify_inclusion(leaves[index] + b"!", index, size, path, top)
    assert not verify_inclusion(leaves[index], index, size, [*path, EMPTY], top)
    assert not path or not verify_inclusion(leaves[index], index, size, path[:-1], top)
    assert not verify_inclusion(leaves[index], index, size, path, leaf_hash(top))
    assert not verify_inclusion(leaves[index], size, size, path, top)


@settings(deadline=None)
@given(entries, st.data())
def test_a_proof_of_consistency_holds_for_what_was_appended_only(
    leaves: list[bytes], data: st.DataObject
) -> None:
    new = data.draw(st.integers(0, len(leaves)))
    old = data.draw(st.integers(0, new))
    proof, older, newer = Tree(leaves).consistency_proof(old, new), naive(leaves[:old]), naive(leaves[:new])
    assert verify_consistency(old, new, older, newer, proof)
    assert not verify_consistency(old, new, older, newer, [*proof, EMPTY])
    if old:
        other = naive([b"other", *leaves[1:old]])
        assert not verify_consistency(old, new, other, newer, proof)
        assert not verify_consistency(old, new, older, leaf_hash(newer), proof)
    if 0 < old < new:
        assert not verify_consistency(old, new, older, newer, proof[:-1])


def test_peaks_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match="peaks"):
        Frontier(3, [EMPTY])
    with pytest.raises(ValueError, match="peaks"):
        Frontier(1, [b"short"])


def test_nothing_is_proven_beyond_the_tree() -> None:
    tree = Tree(ENTRIES)
    for ask in (
        lambda: tree.root(9),
        lambda: tree.inclusion_proof(8),
        lambda: tree.inclusion_proof(3, 3),
        lambda: tree.consistency_proof(5, 4),
    ):
        with pytest.raises(ValueError, match=r"tree"):
            ask()
