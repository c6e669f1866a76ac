"""Bundles crafted by somebody who can compute every hash: what stands behind the chain is reached, and answered too."""

import io
import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

import verify_history
from tests.audit import making
from tests.audit.tampered import CASES, Case
from tests.audit.test_verify_history import put, verified
from tests.processes import ROOT

LAST, FIRST = "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+23:59"
Changed = Callable[[dict[str, Any]], object]


def linked(lines: list[bytes]) -> list[bytes]:
    """The same events, each naming the hash of the one before it as it is now."""
    made: list[bytes] = []
    for line in lines:
        document = json.loads(line)
        if made:
            document["previous"] = making.hash_of(made[-1])
        made.append(verify_history.canonical(document))
    return made


def crafted(name: str, kind: str, change: Changed) -> Case:
    """A case in which the first event of a kind says something else, and everything after it fits that."""
    case = CASES[name]()
    lines = case.files["events.jsonl"].splitlines()
    number = next(n for n, line in enumerate(lines) if json.loads(line)["kind"] == kind)
    document = json.loads(lines[number])
    change(document)
    lines[number] = verify_history.canonical(document)
    case.files["events.jsonl"] = b"\n".join(linked(lines)) + b"\n"
    return unsigned(case)


def unsigned(case: Case) -> Case:
    """Without what is signed over it: nobody has to be asked for a tail."""
    for name in [name for name in case.files if name.startswith("checkpoints/")]:
        del case.files[name]
    case.checkpoints.clear()
    return case


LACKING: dict[str, tuple[str, str, Changed]] = {
    "no time until which it may be sent": (
        "good-tenant", "proposal.approved", lambda it: it["body"].update(decided_at=LAST),
    ),
    "the end of all times, to decide": ("good-tenant", "proposal.made", lambda it: it["body"].update(decide_by=LAST)),
    "the end of all times, to send": (
        "good-tenant", "proposal.approved", lambda it: it["body"].update(decided_at=FIRST, execute_by=LAST),
    ),
    "a signature of no key": ("good-signed", "proposal.signed", lambda it: it["body"].pop("credential_id")),
    "a signature of no version": ("good-signed", "proposal.signed", lambda it: it["body"]["document"].pop("version")),
    "a time that is a list": ("good-tenant", "proposal.made", lambda it: it["body"].update(decide_by=[LAST])),
    "an operation that is a list": ("good-tenant", "proposal.made", lambda it: it["body"].update(operation=[1])),
}  # fmt: skip


@pytest.mark.parametrize("how", LACKING)
def test_an_event_that_lacks_what_is_reckoned_with(how: str, tmp_path: Path, capsys: Any) -> None:
    name, kind, change = LACKING[how]
    case = crafted(name, kind, change)
    code, said = verified([*put(case, tmp_path), "--signed", "x"], capsys)
    assert (code, said["first"]["what"]) in ((1, "line"), (1, "signature")), said
    assert said["first"]["where"].startswith("events.jsonl:")


VALUES = [None, True, 0, -1, 2**53 - 1, 0.5, "", "x", FIRST, LAST, [], [[]], {}, {"a": 1}, "é" * 300]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a document: what holds it, and under which name."""
    named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for name, inner in named for place in ((value, name), *places(inner))]


@pytest.mark.parametrize("seed", range(120))
def test_a_chain_that_holds_may_say_anything(seed: int, tmp_path: Path, capsys: Any) -> None:
    """Values of any kind in any place of an event, or none; the links fit, and it is never proven."""
    chance = random.Random(seed)
    case = CASES[chance.choice(["good-tenant", "good-signed", "good-run", "good-range"])]()
    lines = case.files["events.jsonl"].splitlines()
    number = chance.randrange(len(lines))
    document = json.loads(lines[number])
    for _ in range(chance.choice([1, 1, 3])):
        holder, name = chance.choice(places(document))
        if chance.random() < 0.4:
            del holder[name]
        else:
            holder[name] = chance.choice(VALUES)
    lines[number] = verify_history.canonical(document)
    case.files["events.jsonl"] = b"\n".join(linked(lines)) + b"\n"
    code, said = verified(put(unsigned(case), tmp_path), capsys)
    assert code in (1, 2)
    assert (said["first"] is not None) == (code == 1)
    assert not any("cannot go on" in lack for lack in said["lacks"])


# -- files ------------------------------------------------------------------------------------------------------------


def packed(method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in CASES["good-tenant"]().files.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("at", [None, 60, 80, 100, 3000])
def test_other_compression_is_not_unpacked(method: int, at: int | None, tmp_path: Path, capsys: Any) -> None:
    """It may ask for gigabytes, and ends with errors of its own."""
    bundle = bytearray(packed(method))
    if at is not None:
        bundle[at] ^= 0xFF
    code, said = verified(put(CASES["good-tenant"](), tmp_path, bytes(bundle)), capsys)
    assert (code, said["first"]) == (2, None)
    assert "cannot be read" in said["lacks"][-1]


@pytest.mark.parametrize(("member", "line", "what"), [
    ("tables.jsonl", {"table": "x", "id": "a" * 1_000_000}, "row"),
    ("tables.jsonl", {"table": "x" * 1_000_000, "id": "a"}, "row"),
    ("views.jsonl", {"digest": "a" * 1_000_000, "view": None, "erased": True}, "content"),
    ("contracts.jsonl", {"contract": None, "erased": True}, "content"),
])  # fmt: skip
def test_nothing_large_is_remembered(
    member: str, line: dict[str, Any], what: str, tmp_path: Path, capsys: Any
) -> None:
    """A thousand such lines are a small file, and would be a gigabyte of memory."""
    case = CASES["good-tenant"]()
    case.files[member] = making.jsonl([line]) + case.files[member]
    code, said = verified(put(case, tmp_path), capsys)
    assert (code, said["first"]["what"], said["first"]["where"]) == (1, what, f"{member}:1")


def test_texts_that_almost_are_checkpoints_take_no_time(tmp_path: Path, capsys: Any) -> None:
    """Each begins like one, and none ends: they are not read again from each beginning to the end."""
    begun = f"placet/{'0' * 36}\n1\n{'A' * 43}=\ntime 2026-01-01T00:00:00Z\nhead {'0' * 64}\n"
    case = CASES["good-tenant"]()
    words = put(case, tmp_path)
    (tmp_path / "kept" / "almost").write_text(begun * (3_900_000 // len(begun)))
    began = monotonic()
    assert verified(words, capsys)[0] == 0
    assert monotonic() - began < 20, "it took minutes"
    case.files[f"checkpoints/{'0' * 36}-000000000001.checkpoint"] = begun.encode() * 1_000
    (tmp_path / "bundle.zip").write_bytes(making.zipped(case.files))
    code, said = verified(words, capsys)
    assert (code, "larger than any export makes it" in said["lacks"][-1]) == (2, True)


def test_a_key_that_takes_for_ever_is_no_key() -> None:
    assert verify_history.signed_by_cose(b"\x9b" + b"\0" * 7 + b"\xff" * 700_000, b"", b"") is None


def run(words: list[str], **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "verify_history.py", *words]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, check=False, timeout=60
    )


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_that_lacks_the_letters(encoding: str, tmp_path: Path) -> None:
    case = CASES["good-tenant"]()
    manifest = json.loads(case.files["manifest.json"])
    case.files["manifest.json"] = verify_history.canonical(manifest | {"tenant_name": "Łódź"})
    words = put(case, tmp_path)
    (tmp_path / "kept" / os.fsdecode(b"\xff\xfe")).write_text("no checkpoint")
    done = run(words, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u0141\\xf3d\\u017a" in done.stdout or "ó".encode(encoding) in done.stdout
    missing = run(
        [*words, "--receipt", os.fsdecode(os.fsencode(tmp_path) + b"/\xff")], PYTHONIOENCODING=encoding
    )
    assert (missing.returncode, missing.stderr) == (2, b"")


def test_a_time_that_is_written_short_is_that_time(tmp_path: Path, capsys: Any) -> None:
    """As texts, *2026-9-1* would lie behind *2026-12*."""
    words = put(CASES["good-tenant"](), tmp_path)
    short, full = (
        verified([*words, "--as-of", at], capsys) for at in ("2026-1-2T3:4:5Z", "2026-01-02T03:04:05Z")
    )
    assert short == full
    assert "2026-01-02T03:04:05Z" in " ".join(short[1]["lacks"])


def test_a_mail_that_is_nested_without_end_spoils_nothing(tmp_path: Path, capsys: Any) -> None:
    """It holds no checkpoint, and the others beside it count."""
    words = put(CASES["good-tenant"](), tmp_path)
    parts = (f"Content-Type: multipart/mixed; boundary=a{n}\n\n--a{n}\n" for n in range(3000))
    (tmp_path / "kept" / "mail.eml").write_text("".join(parts))
    code, said = verified(words, capsys)
    assert (code, said["notes"]) == (0, ["mail.eml holds no checkpoint that the key has signed."])
