"""Bundles made to break the verifier: a clear answer each time, and never a traceback."""

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rfc8785

import verify_history
from tests.audit import making
from tests.audit.tampered import CASES
from tests.audit.test_verify_history import put, verified

GOOD = CASES["good-tenant"]


def event_line(**changed: Any) -> Callable[[bytes], bytes]:
    """Another third line of the events."""

    def change(lines: bytes) -> bytes:
        those = lines.splitlines()
        those[2] = rfc8785.dumps(json.loads(those[2]) | changed)
        return b"\n".join(those) + b"\n"

    return change


def spelled(before: bytes, after: bytes) -> Callable[[bytes], bytes]:
    def change(lines: bytes) -> bytes:
        assert before in lines
        return lines.replace(before, after, 1)

    return change


SPELLINGS = {
    "a space": (spelled(b'"v":1,', b'"v": 1,'), "one spelling"),
    "a fraction that is whole": (spelled(b'"v":1,', b'"v":1.0,'), "one spelling"),
    "an exponent": (spelled(b'"v":1,', b'"v":1e0,'), "one spelling"),
    "a fraction spelled otherwise": (spelled(b'"score":0.25', b'"score":0.250'), "one spelling"),
    "an escape": (spelled(b'"kind":"run', b'"kind":"\\u0072un'), "one spelling"),
    "a name twice": (spelled(b'"v":1,', b'"v":1,"v":1,'), "stands twice"),
    "other order": (spelled(b'{"at"', b'{"via":"x","at"'), "stands twice"),
    "half a character": (spelled(b'"reason":""', b'"reason":"\\ud800"'), "half a character"),
    "no UTF-8": (spelled(b'"reason":""', b'"reason":"\xff"'), "not UTF-8"),
    "no number": (spelled(b'"v":1,', b'"v":NaN,'), "no number"),
    "a huge integer": (spelled(b'"v":1,', b'"v":' + b"9" * 5000 + b","), "too large"),
    "nested": (spelled(b'"body":{}', b'"body":' + b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
    "no object": (spelled(b'"at"', b'"At"'), "members of an event"),
    "an empty line": (spelled(b"\n", b"\n\n"), "not JSON"),
    "a number as text": (event_line(seq="3"), "members of an event"),
    "true as a number": (event_line(seq=True), "members of an event"),
    "another tenant": (event_line(tenant="x"), "another tenant"),
    "a list as kind": (event_line(kind=[1]), "does not follow"),
    "too long": (event_line(reason="x" * 2_000_000), "longer than any export"),
    "no end": (lambda lines: lines[:-1], "has no end"),
}  # fmt: skip


@pytest.mark.parametrize("how", SPELLINGS)
def test_an_event_that_is_not_spelled_as_it_was_hashed(how: str, tmp_path: Path, capsys: Any) -> None:
    case = GOOD()
    change, says = SPELLINGS[how]
    case.files["events.jsonl"] = change(case.files["events.jsonl"])
    code, said = verified(put(case, tmp_path), capsys)
    assert code == 1
    assert says in said["first"]["says"] or says == "does not follow"
    assert said["first"]["where"].startswith("events.jsonl:")


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "events.jsonl/../x", "checkpoints/../x", "x\x1b[2J"]
)
def test_a_member_that_does_not_belong_there(name: str, tmp_path: Path, capsys: Any) -> None:
    case = GOOD()
    case.files[name] = b"x"
    code, said = verified(put(case, tmp_path), capsys)
    assert (code, said["first"]["what"]) == (1, "member")
    assert "\x1b" not in said["first"]["says"]
    assert {path.name for path in tmp_path.iterdir()} == {"bundle.zip", "kept", "key.pub"}


def test_a_member_twice(tmp_path: Path, capsys: Any) -> None:
    case, out = GOOD(), io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in [*case.files.items(), ("events.jsonl", b"")]:
            archive.writestr(f"{name}.", content) if name in archive.namelist() else archive.writestr(
                name, content
            )
    bundle = out.getvalue().replace(b"events.jsonl.", b"events.jsonl\0")
    code, said = verified(put(case, tmp_path, bundle), capsys)
    assert (code, said["first"]["what"]) == (1, "member")


@pytest.mark.parametrize("name", ["manifest.json", "events.jsonl"])
def test_a_missing_member_is_evidence_that_is_missing(name: str, tmp_path: Path, capsys: Any) -> None:
    case = GOOD()
    del case.files[name]
    code, said = verified(put(case, tmp_path), capsys)
    assert (code, said["lacks"]) == (2, [f"The bundle has no {name}."])


@pytest.mark.parametrize("name", ["tables.jsonl", "contracts.jsonl", "views.jsonl"])
def test_without_a_part_the_rest_is_judged(name: str, tmp_path: Path, capsys: Any) -> None:
    case = GOOD()
    del case.files[name]
    code, said = verified(put(case, tmp_path), capsys)
    assert (code, said["first"], len(said["lacks"]), said["proven_events"]) == (2, None, 1, 40)


def test_without_proofs_nothing_of_a_run_is_proven(tmp_path: Path, capsys: Any) -> None:
    case = CASES["good-run"]()
    del case.files["proofs.jsonl"]
    code, said = verified(put(case, tmp_path), capsys)
    assert (code, said["lacks"]) == (2, ["14 of 14 events stand under no signed checkpoint yet."])


def test_proofs_of_other_places(tmp_path: Path, capsys: Any) -> None:
    case = CASES["good-run"]()
    lines = [json.loads(line) for line in case.files["proofs.jsonl"].splitlines()]
    lines[3]["path"] = lines[4]["path"]
    case.files["proofs.jsonl"] = making.jsonl(lines)
    code, said = verified(put(case, tmp_path), capsys)
    assert (code, said["first"]["what"], said["first"]["seq"]) == (1, "proof", lines[3]["seq"])


def test_an_event_of_another_run(tmp_path: Path, capsys: Any) -> None:
    case = CASES["good-run"]()
    manifest = json.loads(case.files["manifest.json"])
    manifest["scope"]["run_id"] = "another"
    case.files["manifest.json"] = rfc8785.dumps(manifest)
    code, said = verified(put(case, tmp_path), capsys)
    assert (code, said["first"]["what"]) == (1, "tenant")


def bomb() -> bytes:
    """Two hundred megabytes of one line, in two hundred kilobytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", GOOD().files["manifest.json"])
        with archive.open("events.jsonl", "w", force_zip64=True) as member:
            for _ in range(200):
                member.write(b" " * 1_000_000)
    return out.getvalue()


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, capsys: Any) -> None:
    words = put(GOOD(), tmp_path, bomb())
    code, said = verified(words, capsys)
    assert (code, said["first"]["where"]) == (1, "events.jsonl:1")


UNREADABLE = {
    "empty": lambda bundle: b"",
    "no zip": lambda bundle: b"PK\x03\x04 nothing of the kind" * 100,
    "cut": lambda bundle: bundle[: len(bundle) // 2],
    "encrypted": lambda bundle: bundle.replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01").replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"
    ),
    "unknown compression": lambda bundle: bundle.replace(b"\x08\x00\x00\x40", b"\x63\x00\x00\x40"),
}


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_file_that_cannot_be_read(how: str, tmp_path: Path, capsys: Any) -> None:
    bundle = making.zipped(GOOD().files)
    code, said = verified(put(GOOD(), tmp_path, UNREADABLE[how](bundle)), capsys)
    assert (code, said["first"]) == (2, None)
    assert "cannot be read" in said["lacks"][-1]


def test_arguments_that_name_nothing(tmp_path: Path, capsys: Any) -> None:
    words = put(GOOD(), tmp_path)
    for place in (0, 2, 4):
        wrong = [*words]
        wrong[place] = str(tmp_path / "nothing")
        code, said = verified(wrong, capsys)
        assert (code, said["first"], len(said["lacks"])) == (2, None, 1)
    assert verified([*words, "--receipt", str(tmp_path / "nothing")], capsys)[0] == 2
    (tmp_path / "key.pub").write_text("placet/signer+00000000+AAAA")
    assert verified(words, capsys)[1]["lacks"][0].startswith("The file of --pubkey holds no key")


def test_what_people_read_cannot_move_their_cursor(tmp_path: Path, capsys: Any) -> None:
    case = GOOD()
    manifest = json.loads(case.files["manifest.json"])
    case.files["manifest.json"] = rfc8785.dumps(manifest | {"tenant_name": "x\x1b[2J\u202ePROVEN\n"})
    words = put(case, tmp_path)
    assert verify_history.main(words) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\u202e" not in out and "x\\u001b[2J\\u202ePROVEN\\u000a" in out


VALUES = [None, True, -1, 2**53, 0.5, "", "x", "\x00", [], [[]], {}, {"": {}}, "é" * 300]


@pytest.mark.parametrize("seed", range(150))
def test_anything_may_stand_anywhere(seed: int, tmp_path: Path, capsys: Any) -> None:
    """Values of any kind in any place of any member, and bytes turned over: an answer, and it is not *proven*."""
    chance = random.Random(seed)
    case = CASES[chance.choice(["good-tenant", "good-run", "good-erased", "good-range"])]()
    name = chance.choice([name for name in case.files if name != "keys.txt"])
    lines = case.files[name].splitlines()
    number = chance.randrange(len(lines))
    if chance.random() < 0.3:
        raw = bytearray(lines[number])
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        lines[number] = bytes(raw)
    else:
        document = json.loads(lines[number])
        inner = chance.choice(
            [document, *(value for value in document.values() if isinstance(value, dict) and value)]
        )
        inner[chance.choice(list(inner))] = chance.choice(VALUES)
        lines[number] = json.dumps(
            document, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode()
    changed = b"\n".join(lines) + (b"\n" if name != "manifest.json" else b"")
    same = case.files[name] == changed
    case.files[name] = changed
    code, said = verified(put(case, tmp_path), capsys)
    assert code in (0, 1, 2)
    assert (said["first"] is not None) == (code == 1)
    if name in ("events.jsonl", "contracts.jsonl", "views.jsonl", "proofs.jsonl") and not same:
        assert code != 0, lines[number]
