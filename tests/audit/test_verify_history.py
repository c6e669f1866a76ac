"""The offline verifier, on its own: bundles of an invented history, good ones and tampered ones."""

import json
import quopri
import subprocess
import sys
import zipfile
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

import verify_history
from tests.audit import making, tampered
from tests.audit.tampered import CASES, Case
from tests.processes import ROOT


def put(case: Case, folder: Path, bundle: bytes | None = None) -> list[str]:
    """The files of a case in a folder; returns the arguments that name them."""
    (folder / "kept").mkdir()
    (folder / "key.pub").write_text(f"{making.VKEY}\n{making.RECEIPT_KEY}\n")
    (folder / "bundle.zip").write_bytes(making.zipped(case.files) if bundle is None else bundle)
    for size, note in case.checkpoints.items():
        (folder / "kept" / f"{size}.checkpoint").write_text(note)
    words = [
        str(folder / "bundle.zip"),
        "--checkpoints",
        str(folder / "kept"),
        "--pubkey",
        str(folder / "key.pub"),
    ]
    for number, receipt in enumerate(case.receipts):
        (folder / f"receipt-{number}.json").write_text(json.dumps(receipt))
        words += ["--receipt", str(folder / f"receipt-{number}.json")]
    if case.passkeys:
        (folder / "passkeys.txt").write_text(case.passkeys)
        words += ["--passkeys", str(folder / "passkeys.txt")]
    return words


def verified(words: list[str], capsys: Any) -> tuple[int, dict[str, Any]]:
    code = verify_history.main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, tmp_path: Path, capsys: Any) -> None:
    """Exit status, what is wrong in a word, and the first place at which it is."""
    case = CASES[name]()
    code, said = verified(put(case, tmp_path), capsys)
    wanted, what, seq = case.expected
    assert code == wanted, said
    if code == 1:
        assert (said["first"]["what"], said["first"]["seq"] if seq else None) == (what, seq), said["first"]
        assert said["first"]["seq"] or said["first"]["where"]
    else:
        assert said["first"] is None
        assert what in " ".join(said["lacks"])
        assert bool(said["lacks"]) == (code == 2)


@pytest.mark.parametrize("name", CASES)
def test_a_folder_is_as_good_as_a_zip_file(name: str, tmp_path: Path, capsys: Any) -> None:
    case = CASES[name]()
    words = put(case, tmp_path)
    _, zipped = verified(words, capsys)
    zipfile.ZipFile(words[0]).extractall(tmp_path / "folder")
    assert verified([str(tmp_path / "folder"), *words[1:]], capsys) == (case.expected[0], zipped)


def test_checkpoints_may_lie_in_a_folder_of_their_tenant(tmp_path: Path, capsys: Any) -> None:
    case = CASES["good-tenant"]()
    words = put(case, tmp_path)
    (tmp_path / "kept").rename(tmp_path / "tenant")
    (tmp_path / "kept").mkdir()
    (tmp_path / "tenant").rename(tmp_path / "kept" / "tenant")
    code, said = verified(words, capsys)
    assert (code, len(said["checkpoints_matched"])) == (0, len(case.checkpoints))


def test_the_fixtures_are_what_the_script_makes(tmp_path: Path) -> None:
    tampered.write(tmp_path)
    made = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    there = {
        str(p.relative_to(tampered.FOLDER)): p.read_bytes() for p in tampered.FOLDER.rglob("*") if p.is_file()
    }
    assert there.pop("README.md")
    assert made == there, "python -m tests.audit.tampered"


def test_it_is_one_file_that_needs_nothing_of_ours(tmp_path: Path) -> None:
    """Copied elsewhere, and run without this checkout: in words that name the place."""
    words = put(CASES["edited"](), tmp_path)
    copy = tmp_path / "verify_history.py"
    copy.write_bytes((ROOT / "verify_history.py").read_bytes())
    done = subprocess.run(
        [sys.executable, "-I", str(copy), *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "DOES NOT HOLD at event 7" in done.stdout
    modules = {
        line.split()[1].split(".")[0]
        for line in copy.read_text().splitlines()
        if line.startswith(("import ", "from "))
    }
    assert modules - set(sys.stdlib_module_names) == {"cryptography"}


def test_a_checkpoint_is_found_in_a_saved_mail(tmp_path: Path, capsys: Any) -> None:
    case = CASES["good-tenant"]()
    words = put(case, tmp_path)
    note = case.checkpoints.pop(tampered.LAST)
    (tmp_path / "kept" / f"{tampered.LAST}.checkpoint").unlink()
    coded = quopri.encodestring(note.encode()).decode().replace("\n", "\r\n")
    mail = (
        "From: placet@example.com\r\nSubject: Checkpoint\r\nMIME-Version: 1.0\r\nContent-Type: text/plain;"
        f" charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nKeep this.\r\n\r\n{coded}"
    )
    (tmp_path / "kept" / "mail.eml").write_text(mail, newline="")
    code, said = verified(words, capsys)
    assert (code, said["checkpoints_matched"]) == (0, ["20.checkpoint", "mail.eml"])


def attached(note: str) -> bytes:
    """As the product mails it: in the text, and as a file."""
    mail = EmailMessage()
    mail["Subject"] = "Checkpoint"
    mail.set_content(f"Keep this.\n\n{note}\n")
    mail.add_attachment(
        note.encode(), maintype="application", subtype="octet-stream", filename="x.checkpoint"
    )
    return mail.as_bytes()


def posted(note: str) -> bytes:
    """As a room shows it, and as a program stored what was posted."""
    return json.dumps({"blocks": [{"type": "section", "text": {"text": f"```\n{note}```"}}]}).encode()


@pytest.mark.parametrize("saved", [attached, posted, lambda note: f"> Hello\r\n```\r\n{note}```".encode()])
def test_a_checkpoint_is_found_as_it_was_saved(saved: Any, tmp_path: Path, capsys: Any) -> None:
    case = CASES["good-tenant"]()
    note = case.checkpoints.pop(tampered.LAST)
    words = put(case, tmp_path)
    assert verified(words, capsys)[0] == 2
    (tmp_path / "kept" / "saved").write_bytes(saved(note))
    code, said = verified(words, capsys)
    assert (code, said["checkpoints_matched"]) == (0, ["20.checkpoint", "saved"])


def test_a_break_that_somebody_accepted_is_said_whatever_is_found(tmp_path: Path, capsys: Any) -> None:
    case = CASES["good-tenant"]()
    lines = case.files["events.jsonl"].splitlines()
    case.checkpoints[40] = making.checkpoint(lines, 40, more=("break 60 x Restored the backup of Sunday",))
    words = put(case, tmp_path)
    code, said = verified(words, capsys)
    assert code == 0
    assert said["notes"] == ["At event 40 a person accepted a break: 60 x Restored the backup of Sunday."]
    (tmp_path / "kept" / "before").write_text(
        making.checkpoint(making.linked(tampered.pending()[0].events), 44)
    )
    code, broken = verified(words, capsys)
    assert (code, broken["first"]["what"], broken["notes"]) == (1, "cut", said["notes"])


def test_what_another_key_has_signed_counts_for_nothing(tmp_path: Path, capsys: Any) -> None:
    case = CASES["good-tenant"]()
    lines = case.files["events.jsonl"].splitlines()
    case.checkpoints = {40: making.checkpoint(lines, 40, making.RECEIPTS)}
    code, said = verified(put(case, tmp_path), capsys)
    assert (code, said["proven_events"]) == (2, 0)
    assert said["notes"] == ["40.checkpoint holds no checkpoint that the key has signed."]


def test_two_histories_under_one_key_are_shown(tmp_path: Path, capsys: Any) -> None:
    case = CASES["good-tenant"]()
    words = put(case, tmp_path)
    other = making.Made()
    making.whole_life(other, "1001")
    making.whole_life(other, "9999")
    (tmp_path / "kept" / "other").write_text(making.checkpoint(making.linked(other.events), 20))
    code, said = verified(words, capsys)
    assert (code, said["first"]["what"], said["first"]["seq"]) == (1, "signer", 20)


def test_a_checkpoint_that_came_along_counts_only_beside_one_from_outside(
    tmp_path: Path, capsys: Any
) -> None:
    case = CASES["good-tenant"]()
    name = f"checkpoints/{making.TENANT}-000000000040.checkpoint"
    case.files[name] = case.checkpoints.pop(40).encode()
    words = put(case, tmp_path)
    assert verified(words, capsys)[0] == 0
    (tmp_path / "kept" / "20.checkpoint").unlink()
    code, said = verified(words, capsys)
    assert (code, said["proven_events"]) == (2, 40)


def test_a_bundle_older_than_a_checkpoint_is_called_so(tmp_path: Path, capsys: Any) -> None:
    made, _ = tampered.history()
    before = making.linked(made.events)
    shorter = making.Made()
    making.whole_life(shorter, "1001")
    making.whole_life(shorter, "1002", (making.ADA, making.BEN))
    files = making.members(shorter, made_at="2026-11-02T08:00:30Z")
    case = Case(files, tampered.kept(before), (2, "", None))
    code, said = verified(put(case, tmp_path), capsys)
    assert code == 2
    assert "The history went on to event 40" in said["lacks"][1]


@pytest.mark.parametrize("changed", [{"content_hash": "0" * 64}, {"seq": 3}, {"signature": None}])
def test_a_receipt_that_does_not_fit(changed: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    """A receipt that somebody has changed is worth nothing; one of another event shows that the event was changed."""
    case = CASES["good-tenant"]()
    made, lives = tampered.history()
    line = making.linked(made.events)[4]
    case.receipts = [making.receipt(made.events[4], lives[0].run, 5, making.hash_of(line))]
    words = put(case, tmp_path)
    assert verified(words, capsys)[0] == 0
    path = tmp_path / "receipt-0.json"
    path.write_text(json.dumps(case.receipts[0] | changed))
    code, said = verified(words, capsys)
    assert (code, said["first"]) == (2, None)
    made.events[4]["reason"] = "something else"
    path.write_text(json.dumps(making.receipt(made.events[4], lives[0].run)))
    code, said = verified(words, capsys)
    assert (code, said["first"]["what"], said["first"]["seq"]) == (1, "receipt", 5)


def test_an_event_without_a_place_explains_a_row_and_proves_nothing(tmp_path: Path, capsys: Any) -> None:
    made, _ = tampered.history()
    life = making.propose(made, "1004")
    before = making.linked(made.events)
    making.moved(made, life, "run", life.run, "cancelled")
    made.unsealed = [made.events.pop()]
    case = Case(making.members(made), tampered.kept(before, 20, 44), (2, "no place", None))
    code, said = verified(put(case, tmp_path), capsys)
    assert (code, said["lacks"]) == (2, ["1 newer events have no place in the chain yet."])
    case.files.pop("unsealed.jsonl")
    (tmp_path / "bundle.zip").write_bytes(making.zipped(case.files))
    code, said = verified(
        [str(tmp_path / "bundle.zip"), *put(case, (tmp_path / "x").mkdir() or tmp_path / "x")[1:]], capsys
    )
    assert (code, said["first"]["what"]) == (1, "row")
