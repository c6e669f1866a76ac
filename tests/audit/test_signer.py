"""The signer signs what extends its last checkpoint, and nothing else; on its own role and its own folder."""

import json
import stat
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from audit.checkpoints import file_name, opened, parse_vkey
from audit.models import Checkpoint, Seal, SignerReport, SigningKey
from audit.tree import root
from signer import SignerError
from signer.folder import Folder, Signed
from signer.history import History, Refused
from tests.audit.events import tamper
from tests.audit.signing import as_signer, look, sealed, signer

pytestmark = pytest.mark.django_db
NORTH, SOUTH = UUID(int=1), UUID(int=2)
OTHER = "ab" * 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "signer"


def sizes(tenant: UUID) -> list[int]:
    found = Checkpoint.objects.filter(tenant_id=tenant).order_by("recorded_at")
    return list(found.values_list("size", flat=True))


def reports(tenant: UUID) -> list[tuple[str, str]]:
    found = SignerReport.objects.filter(tenant_id=tenant).order_by("recorded_at")
    return list(found.values_list("kind", "cause"))


def rehash(tenant: UUID, seq: int, value: str) -> None:
    """Somebody with the owner's rights rewrites a seal."""
    tamper("UPDATE audit_seal SET hash = %s WHERE tenant_id = %s AND seq = %s", value, tenant, seq)


def test_what_it_signs_is_the_root_over_all_seals(folder: Path) -> None:
    sealed(NORTH, 5)
    sealed(SOUTH, 2)
    look(folder)
    key = parse_vkey((folder / "signer.pub").read_text())
    assert SigningKey.objects.get().vkey == key.vkey
    for tenant, size in ((NORTH, 5), (SOUTH, 2)):
        row = Checkpoint.objects.get(tenant_id=tenant)
        found = opened(row.note, key)
        hashes = list(Seal.objects.filter(tenant_id=tenant).order_by("seq").values_list("hash", flat=True))
        assert (found.tenant, found.size, found.head) == (tenant, size, hashes[-1])
        assert found.root == root(bytes.fromhex(value) for value in hashes)
        assert (row.size, row.root, row.key_hash) == (size, found.root.hex(), key.hash.hex())
        assert row.signed_at == found.time
        file = folder / "checkpoints" / str(tenant) / file_name(tenant, size)
        assert file.read_text() == row.note


def test_a_second_start_signs_what_came_since_and_nothing_twice(folder: Path) -> None:
    sealed(NORTH, 3)
    look(folder)
    look(folder)
    assert sizes(NORTH) == [3]
    sealed(NORTH, 4)
    look(folder)
    assert sizes(NORTH) == [3, 7]
    assert reports(NORTH) == []


def test_it_waits_for_its_time_or_for_a_thousand_events(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signer.work.EVENTS", 10)
    sealed(NORTH, 3)
    with signer(folder, every_s=3600) as work:
        work.once()
        sealed(NORTH, 9)
        work.once()
        assert sizes(NORTH) == [3]
        sealed(NORTH, 1)
        work.once()
    assert sizes(NORTH) == [3, 13]


def test_the_folder_and_the_key_are_private(folder: Path) -> None:
    Folder(folder).key()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
    first = (folder / "key.pem").read_bytes()
    Folder(folder).key()
    assert (folder / "key.pem").read_bytes() == first
    (folder / "key.pem").chmod(0o640)
    with pytest.raises(SignerError, match="Others can read"):
        Folder(folder).key()
    folder.chmod(0o755)
    with pytest.raises(SignerError, match="Others can read"):
        Folder(folder)


# --- what it refuses --------------------------------------------------------------------------
@pytest.mark.parametrize("fresh", [True, False])
def test_a_rewritten_end_is_refused(folder: Path, fresh: bool) -> None:
    sealed(NORTH, 5)
    with signer(folder) as work:
        work.once()
        rehash(NORTH, 5, OTHER)
        if not fresh:
            work.once()
    if fresh:
        look(folder)
    assert reports(NORTH) == [("refused", "changed")]
    assert sizes(NORTH) == [5]


def test_a_rewritten_middle_is_found_at_the_next_start(folder: Path) -> None:
    """A forger with all rights recomputes every later link; the end that was signed is left as it was."""
    sealed(NORTH, 5)
    look(folder)
    rehash(NORTH, 2, OTHER)
    tamper("UPDATE audit_seal SET previous = %s WHERE tenant_id = %s AND seq = 3", OTHER, NORTH)
    look(folder)
    assert reports(NORTH) == [("refused", "changed")]
    assert "first 5 seals" in SignerReport.objects.get().detail


def test_a_rewritten_middle_is_found_every_hour(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(NORTH, 5)
    with signer(folder) as work:
        work.once()
        rehash(NORTH, 2, OTHER)
        tamper("UPDATE audit_seal SET previous = %s WHERE tenant_id = %s AND seq = 3", OTHER, NORTH)
        work.once()
        assert reports(NORTH) == []
        monkeypatch.setattr("signer.work.WHOLE_S", 0.0)
        work.once()
    assert reports(NORTH) == [("refused", "changed")]


def test_a_shorter_history_is_refused(folder: Path) -> None:
    """As after a restored backup."""
    sealed(NORTH, 5)
    look(folder)
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s AND seq > 3", NORTH)
    look(folder)
    assert reports(NORTH) == [("refused", "shorter")]


def test_a_history_that_is_gone_is_refused(folder: Path) -> None:
    sealed(NORTH, 2)
    look(folder)
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s", NORTH)
    look(folder)
    assert reports(NORTH) == [("refused", "shorter")]


def test_a_hole_and_a_loose_link_behind_the_last_checkpoint_are_refused(folder: Path) -> None:
    for tenant in (NORTH, SOUTH):
        sealed(tenant, 2)
    look(folder)
    for tenant in (NORTH, SOUTH):
        sealed(tenant, 3)
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s AND seq = 4", NORTH)
    tamper("UPDATE audit_seal SET previous = %s WHERE tenant_id = %s AND seq = 4", OTHER, SOUTH)
    look(folder)
    assert reports(NORTH) == [("refused", "missing")]
    assert reports(SOUTH) == [("refused", "unlinked")]


def test_a_refusal_of_one_tenant_does_not_stop_the_others(folder: Path) -> None:
    for tenant in (NORTH, SOUTH):
        sealed(tenant, 2)
    look(folder)
    rehash(NORTH, 2, OTHER)
    for tenant in (NORTH, SOUTH):
        sealed(tenant, 1)
    look(folder)
    assert (sizes(NORTH), sizes(SOUTH)) == ([2], [2, 3])


def test_it_goes_on_refusing_when_the_rows_are_as_they_were(folder: Path) -> None:
    """Whoever puts a rewritten row back has still rewritten it: a person looks at it first."""
    sealed(NORTH, 3)
    look(folder)
    before = Seal.objects.get(tenant_id=NORTH, seq=3).hash
    rehash(NORTH, 3, OTHER)
    look(folder)
    rehash(NORTH, 3, before)
    sealed(NORTH, 1)
    look(folder)
    assert (sizes(NORTH), reports(NORTH)) == ([3], [("refused", "changed")])
    assert json.loads((folder / "refused" / f"{NORTH}.json").read_text())["cause"] == "changed"
    assert "refused changed" in (folder / "journal.log").read_text()


# --- how a person resolves it -----------------------------------------------------------------
def test_an_accepted_history_is_signed_with_what_was_signed_before(folder: Path) -> None:
    sealed(NORTH, 5)
    look(folder)
    signed_root = Checkpoint.objects.get().root
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s AND seq > 3", NORTH)
    look(folder)
    with signer(folder) as work:
        note = work.accept(NORTH, "Restored the backup of Sunday", "anna").note
        work.once()
    found = opened(note, parse_vkey((folder / "signer.pub").read_text()))
    assert (found.size, found.breaks) == (3, f"5 {signed_root} Restored the backup of Sunday")
    assert reports(NORTH) == [("refused", "shorter"), ("accepted", "shorter")]
    assert "anna: Restored the backup" in SignerReport.objects.get(kind="accepted").detail
    assert sizes(NORTH) == [5, 3]
    assert "accepted by anna: Restored" in (folder / "journal.log").read_text()


def test_after_an_acceptance_it_signs_on(folder: Path) -> None:
    sealed(NORTH, 3)
    look(folder)
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s AND seq > 2", NORTH)
    look(folder)
    with signer(folder) as work:
        work.accept(NORTH, "Restored", "anna")
    tamper("UPDATE audit_head SET seq = 2, hash = (SELECT hash FROM audit_seal WHERE tenant_id = %s AND seq = 2)"
           " WHERE tenant_id = %s", NORTH, NORTH)  # fmt: skip
    sealed(NORTH, 2)
    look(folder)
    assert sizes(NORTH) == [3, 2, 4]


def test_a_checkpoint_that_was_signed_is_never_overwritten(folder: Path) -> None:
    """A restored backup ends where an earlier checkpoint stands: both are kept."""
    sealed(NORTH, 2)
    look(folder)
    sealed(NORTH, 2)
    look(folder)
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s AND seq > 2", NORTH)
    look(folder)
    with signer(folder) as work:
        work.accept(NORTH, "Restored", "anna")
    names = sorted(path.name for path in (folder / "checkpoints" / str(NORTH)).iterdir())
    assert names == sorted(
        [file_name(NORTH, 2), file_name(NORTH, 2).replace(".", "-2."), file_name(NORTH, 4)]
    )


def test_a_repaired_history_needs_no_statement_of_a_break(folder: Path) -> None:
    sealed(NORTH, 3)
    look(folder)
    before = Seal.objects.get(tenant_id=NORTH, seq=3).hash
    rehash(NORTH, 3, OTHER)
    look(folder)
    rehash(NORTH, 3, before)
    with signer(folder) as work:
        note = work.accept(NORTH, "The row was put back", "anna").note
    assert opened(note, parse_vkey((folder / "signer.pub").read_text())).more == ()


def test_what_does_not_hang_together_is_not_accepted(folder: Path) -> None:
    sealed(NORTH, 4)
    look(folder)
    rehash(NORTH, 2, OTHER)
    look(folder)
    with signer(folder) as work:
        with pytest.raises(Refused, match="does not follow"):
            work.accept(NORTH, "Never mind", "anna")
        work.once()
    assert reports(NORTH) == [("refused", "unlinked")]


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "x" * 301])
def test_an_acceptance_needs_a_reason_of_one_line(folder: Path, reason: str) -> None:
    with signer(folder) as work, pytest.raises(SignerError, match="reason in one line"):
        work.accept(NORTH, reason, "anna")


def test_nothing_refused_nothing_accepted(folder: Path) -> None:
    sealed(NORTH, 1)
    with signer(folder) as work:
        work.once()
        with pytest.raises(SignerError, match="Nothing is refused"):
            work.accept(NORTH, "To be sure", "anna")


# --- what survives a kill ---------------------------------------------------------------------
def test_what_was_kept_before_a_kill_is_added_at_the_next_start(folder: Path) -> None:
    """The folder comes first, so that a later history must extend it, whether or not the row was added."""
    sealed(NORTH, 3)
    look(folder)
    tamper("DELETE FROM audit_checkpoint")
    [file] = (folder / "checkpoints" / str(NORTH)).iterdir()
    file.unlink()
    look(folder)
    look(folder)
    assert sizes(NORTH) == [3]
    assert file.read_text() == Checkpoint.objects.get().note


def test_a_refusal_that_was_kept_before_a_kill_is_reported_at_the_next_start(folder: Path) -> None:
    sealed(NORTH, 1)
    look(folder)
    Folder(folder).refuse(NORTH, "changed", "Said before the kill")
    look(folder)
    look(folder)
    assert reports(NORTH) == [("refused", "changed")]


def test_a_damaged_memory_signs_nothing(folder: Path) -> None:
    sealed(NORTH, 1)
    look(folder)
    (folder / "tenants" / f"{NORTH}.json").write_text("{")
    sealed(NORTH, 1)
    look(folder)
    assert sizes(NORTH) == [1]


def test_two_signers_at_once_agree(folder: Path) -> None:
    sealed(NORTH, 2)
    with signer(folder) as one, signer(folder) as two:
        assert one.database.alone()
        assert not two.database.alone()
        one.once()
        two.once()
        sealed(NORTH, 2)
        two.once()
        one.once()
        sealed(NORTH, 1)
        one.once()
    assert (sizes(NORTH), reports(NORTH)) == ([2, 4, 5], [])


# --- its role ---------------------------------------------------------------------------------
def test_its_role_sees_places_and_adds_what_it_signed(folder: Path) -> None:
    sealed(NORTH, 2)
    assert len(as_signer("SELECT tenant_id, seq, previous, hash FROM audit_seal")) == 2
    for statement in (
        "SELECT * FROM audit_seal",
        "SELECT event_id FROM audit_seal",
        "SELECT sealed_at FROM audit_seal",
        "SELECT 1 FROM audit_event",
        "SELECT 1 FROM audit_head",
        "SELECT 1 FROM common_tenant",
        "SELECT 1 FROM access_user",
        "UPDATE audit_seal SET seq = 1",
        "DELETE FROM audit_seal",
        "DELETE FROM audit_checkpoint",
        "UPDATE audit_checkpoint SET size = 1",
        "TRUNCATE audit_checkpoint",
        "UPDATE audit_signing_key SET vkey = ''",
        "DELETE FROM audit_signer_report",
        "CREATE TABLE mine (id int)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_signer(statement)


def test_only_the_signer_adds_checkpoints() -> None:
    from django.db import ProgrammingError, connections, transaction

    for alias in ("app", "system"):
        for table in ("audit_checkpoint", "audit_signing_key", "audit_signer_report"):
            for words in ("INSERT INTO {} DEFAULT VALUES", "DELETE FROM {}"):
                with (
                    pytest.raises(ProgrammingError, match="permission denied"),
                    transaction.atomic(alias),
                    connections[alias].cursor() as cursor,
                ):
                    cursor.execute(words.format(table))


def test_the_state_of_a_tenant_is_what_it_signed(folder: Path) -> None:
    sealed(NORTH, 3)
    look(folder)
    signed = Folder(folder).signed(NORTH)
    assert isinstance(signed, Signed)
    assert isinstance(signed.history, History)
    assert signed.note == Checkpoint.objects.get().note


# --- what is wrong with its folder, or with the rows that it added ----------------------------
@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("{"), lambda path: path.write_text("{}"), lambda path: path.unlink(),
        lambda path: path.write_text(path.read_text().replace('"size": 2', '"size": 1')),
        lambda path: path.write_bytes(b"\xff\xfe"),
    ],
)  # fmt: skip
def test_a_damaged_memory_stops_its_own_tenant_and_no_other(folder: Path, spoil: Any) -> None:
    for tenant in (NORTH, SOUTH):
        sealed(tenant, 2)
    look(folder)
    spoil(folder / "tenants" / f"{NORTH}.json")
    (folder / "tenants" / "nobody.json").write_text("{}")
    for tenant in (NORTH, SOUTH):
        sealed(tenant, 1)
    look(folder)
    assert (sizes(NORTH), sizes(SOUTH)) == ([2], [2, 3])
    assert (reports(NORTH), reports(SOUTH)) == ([("refused", "damaged")], [])
    with signer(folder) as work:
        note = work.accept(NORTH, "The disk was full", "anna").note
        work.once()
    assert opened(note, parse_vkey((folder / "signer.pub").read_text())).breaks.startswith("2 ")
    assert sizes(NORTH) == [2, 3]


def test_a_damaged_refusal_is_a_refusal(folder: Path) -> None:
    for tenant in (NORTH, SOUTH):
        sealed(tenant, 2)
    (Folder(folder).path / "refused" / f"{NORTH}.json").write_text("[]")
    look(folder)
    assert (sizes(NORTH), sizes(SOUTH)) == ([], [2])


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM audit_checkpoint", "UPDATE audit_checkpoint SET root = repeat('0', 64)",
        "UPDATE audit_checkpoint SET note = note || 'x'", "UPDATE audit_checkpoint SET size = 1",
    ],
)  # fmt: skip
def test_a_checkpoint_that_is_taken_out_of_the_database_is_missed(folder: Path, sql: str) -> None:
    sealed(NORTH, 2)
    with signer(folder) as work:
        work.once()
        tamper(sql)
        work.once()
    assert reports(NORTH) == [("refused", "removed")]
