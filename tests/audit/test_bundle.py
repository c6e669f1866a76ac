"""The export: what really happened, as a bundle that holds; and who gets what of it."""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

import verify_history
from access.enums import Role, Scope
from audit import exporting
from audit.bundle_reading import paths
from audit.models import Event, Seal
from audit.sealer import seal
from audit.tree import Tree
from common.clock import db_clock
from common.ids import new_id
from tests.api.callers import automation, token_for
from tests.audit.bundling import Auditor, bytes_of, found, lines, sign, taken
from tests.audit.signing import look
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import AGENT, Desk, desk, person
from workflows.actions.erasing import erase_content

__all__ = ["desk"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def auditor(tmp_path: Path) -> Auditor:
    return Auditor(tmp_path)


def lived(desk: Desk, order: str) -> Any:
    """A run from its event to its end; its command."""
    command = desk.approved(order=order)
    desk.work()
    desk.advance()
    return command


def test_what_really_happened_holds(desk: Desk, auditor: Auditor) -> None:
    for number in range(3):
        lived(desk, f"20{number}")
    desk.decide(desk.proposed(order="300"), "reject")
    desk.proposed(order="400")
    auditor.keep(sign(desk.tenant.pk))
    bundle = taken(desk.tenant)
    report = auditor.verify(bundle)
    assert (found(report), report.lacks) == ((0, ""), [])
    assert report.facts["events"] == len(lines(bundle, "events.jsonl")) > 80
    assert {line["table"] for line in lines(bundle, "tables.jsonl")} == {
        "run", "step", "proposal", "decision", "command", "attempt",
    }  # fmt: skip


def test_one_run_has_a_proof_for_each_event(desk: Desk, auditor: Auditor) -> None:
    lived(desk, "200")
    command = lived(desk, "201")
    lived(desk, "202")
    auditor.keep(sign(desk.tenant.pk))
    lived(desk, "203")
    seal(db_clock)
    bundle = taken(desk.tenant, run_id=command.run_id)
    report = auditor.verify(bundle)
    assert (found(report), report.lacks) == ((0, ""), [])
    assert report.facts["proven_events"] == len(lines(bundle, "events.jsonl")) == 24
    assert len(lines(bundle, "contracts.jsonl")) == len(lines(bundle, "views.jsonl")) == 1
    assert {line["run_id"] for line in lines(bundle, "tables.jsonl") if "run_id" in line} == {
        str(command.run_id)
    }


def test_events_of_a_run_behind_the_last_checkpoint_are_called_unproven(desk: Desk, auditor: Auditor) -> None:
    proposal = desk.proposed(order="200")
    auditor.keep(sign(desk.tenant.pk))
    before = Event.objects.filter(run_id=proposal.run_id).count()
    desk.decide(proposal)
    seal(db_clock)
    report = auditor.verify(taken(desk.tenant, run_id=proposal.run_id))
    every = report.facts["events"]
    assert (found(report), report.facts["proven_events"]) == ((2, ""), before)
    assert report.lacks == [f"{every - before} of {every} events stand under no signed checkpoint yet."]


def test_a_stretch_is_proven_by_its_last_event(desk: Desk, auditor: Auditor) -> None:
    lived(desk, "200")
    auditor.keep(sign(desk.tenant.pk))
    bundle = taken(desk.tenant, places=(5, 20))
    report = auditor.verify(bundle)
    assert (found(report), report.lacks, report.facts["proven_events"]) == ((0, ""), [], 16)
    assert [line["seq"] for line in lines(bundle, "proofs.jsonl")] == [20]


def test_what_is_not_sealed_yet_explains_the_rows(desk: Desk, auditor: Auditor) -> None:
    proposal = desk.proposed(order="200")
    auditor.keep(sign(desk.tenant.pk))
    desk.decide(proposal)
    report = auditor.verify(taken(desk.tenant))
    assert found(report) == (2, "")
    [lack] = report.lacks
    assert lack.endswith("newer events have no place in the chain yet.")


def test_erased_contents_are_no_gap(desk: Desk, auditor: Auditor) -> None:
    command = lived(desk, "200")
    lived(desk, "201")
    admin = make_user(desk.tenant, "root", roles=[Role.ADMIN])
    erase_content(
        tenant_id=desk.tenant.pk, run_id=command.run_id, why="file 17", by=person(admin), clock=db_clock
    )
    auditor.keep(sign(desk.tenant.pk))
    bundle = taken(desk.tenant)
    report = auditor.verify(bundle)
    assert (found(report), report.lacks) == ((0, ""), [])
    assert report.notes[0].startswith("1 contracts were erased")
    assert [line["erased"] for line in lines(bundle, "contracts.jsonl")] == [True, False]


def test_without_contents_their_digests_stand(desk: Desk, auditor: Auditor) -> None:
    lived(desk, "200")
    auditor.keep(sign(desk.tenant.pk))
    bundle = taken(desk.tenant, contracts=False, views=False)
    assert b"order:200" in bytes_of(bundle, "tables.jsonl")
    assert [line["contract"] for line in lines(bundle, "contracts.jsonl")] == [None]
    assert found(auditor.verify(bundle)) == (2, "")
    assert found(auditor.verify(bundle, contents_left_out=True)) == (0, "")


def test_taking_it_along_is_an_event(desk: Desk) -> None:
    command = lived(desk, "200")
    bundle = taken(desk.tenant, run_id=command.run_id)
    event = Event.objects.get(kind="chain.exported")
    assert (event.run_id, event.digest) == (command.run_id, hashlib.sha256(bundle).hexdigest())
    assert event.body["scope"] == {"kind": "run", "run_id": str(command.run_id)}
    assert event.body["bytes"] == len(bundle)


def test_nothing_of_another_tenant_is_in_it(desk: Desk) -> None:
    other = make_tenant("south")
    lived(desk, "200")
    seal(db_clock)
    bundle = taken(other)
    assert {name: lines(bundle, f"{name}.jsonl") for name in ("events", "tables", "contracts", "views")} == {
        "events": [], "tables": [], "contracts": [], "views": [],
    }  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 21, 33])
def test_proofs_are_made_without_the_whole_tree(size: int) -> None:
    entries = [bytes([number]) * 32 for number in range(size)]
    tree, wanted = Tree(entries), {0, size // 2, size - 1}
    assert paths(entries, wanted) == {index: tree.inclusion_proof(index) for index in wanted}


def test_with_the_signer_itself(desk: Desk, tmp_path: Path) -> None:
    """Its own files are what an auditor keeps: the key, and the checkpoints."""
    lived(desk, "200")
    seal(db_clock)
    look(tmp_path / "signer")
    lived(desk, "201")
    seal(db_clock)
    look(tmp_path / "signer")
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(taken(desk.tenant))
    signed = tmp_path / "signer" / "checkpoints" / str(desk.tenant.pk)
    report = verify_history.verify(bundle, signed, [tmp_path / "signer" / "signer.pub"])
    assert (found(report), report.lacks, len(report.facts["checkpoints_matched"])) == ((0, ""), [], 2)
    assert report.facts["checkpoints_along"] == 1


def test_as_of_a_time_nothing_newer_is_missed(desk: Desk, tmp_path: Path) -> None:
    """On a busy system events come between the last checkpoint and the export, and checkpoints after it."""
    lived(desk, "200")
    seal(db_clock)
    look(tmp_path / "signer")
    closed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    signed = tmp_path / "signer" / "checkpoints" / str(desk.tenant.pk)
    lived(desk, "201")
    seal(db_clock)
    bundle, keys = tmp_path / "bundle.zip", [tmp_path / "signer" / "signer.pub"]
    bundle.write_bytes(taken(desk.tenant))
    lived(desk, "202")
    seal(db_clock)
    sleep(1.1)  # checkpoints tell whole seconds
    look(tmp_path / "signer")
    report = verify_history.verify(bundle, signed, keys)
    assert (found(report)[0], len(report.lacks)) == (2, 2)
    report = verify_history.verify(bundle, signed, keys, as_of=closed)
    assert (found(report), report.lacks) == ((0, ""), [])
    assert any("stand under no signed checkpoint yet" in note for note in report.notes)
    before = verify_history.verify(bundle, signed, keys, as_of="2020-01-01T00:00:00Z")
    [lack] = before.lacks
    assert (found(before)[0], "of 2020-01-01T00:00:00Z or before" in lack) == (2, True)


# --- who gets it -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "contents"), [(Role.AUDITOR, True), (Role.ADMIN, False)])
def test_the_page_gives_contents_to_whom_personal_values_are_shown(
    desk: Desk, client: Client, role: Role, contents: bool
) -> None:
    command = lived(desk, "200")
    client.force_login(make_user(desk.tenant, "reader", roles=[role]))
    answer: Any = client.post("/history/bundle/", {"run_id": str(command.run_id)})
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    assert answer["Content-Disposition"] == f'attachment; filename="history-harbour-run-{command.run_id}.zip"'
    [line] = lines(answer.content, "contracts.jsonl")
    assert (line["contract"] is not None) is contents
    assert Event.objects.get(kind="chain.exported").body["contracts"] is contents


def test_a_run_of_another_tenant_is_missing(desk: Desk, client: Client) -> None:
    command = lived(desk, "200")
    client.force_login(make_user(make_tenant("south"), "reader", roles=[Role.AUDITOR]))
    for named in (str(command.run_id), str(new_id()), "x"):
        assert client.post("/history/bundle/", {"run_id": named}).status_code == 404


def test_too_many_exports_are_told_so(desk: Desk, client: Client) -> None:
    client.force_login(make_user(desk.tenant, "reader", roles=[Role.AUDITOR]))
    answers = [client.post("/history/bundle/") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 302]
    assert "Too many exports" in client.get("/history/").content.decode()


@pytest.mark.parametrize(
    ("scopes", "status", "contracts"),
    [
        ([Scope.AUDIT_READ], 200, False), ([Scope.AUDIT_READ, Scope.PROPOSALS_READ], 200, True),
        ([Scope.PROPOSALS_READ], 403, None),
    ],
)  # fmt: skip
def test_the_api_goes_by_scopes(desk: Desk, scopes: list[Scope], status: int, contracts: bool | None) -> None:
    command = lived(desk, "200")
    caller = automation(token_for(desk.tenant, "reads", scopes=scopes))
    answer = caller.get("/audit/bundle", run_id=str(command.run_id))
    assert answer.status_code == status
    if status == 200:
        bundle = answer.content
        assert [line["contract"] is not None for line in lines(bundle, "contracts.jsonl")] == [contracts]
        assert [line["view"] for line in lines(bundle, "views.jsonl")] == [None]


def test_a_large_one_is_sent_as_it_is_read(
    desk: Desk, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "IN_MEMORY", 1000)
    lived(desk, "200")
    seal(db_clock)
    client.force_login(make_user(desk.tenant, "reader", roles=[Role.AUDITOR]))
    answer: Any = client.post("/history/bundle/")
    bundle = b"".join(answer.streaming_content)
    answer.close()
    assert len(lines(bundle, "events.jsonl")) > 20
    assert int(answer["Content-Length"]) == len(bundle)


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_a_file(desk: Desk, auditor: Auditor, capsys: Any) -> None:
    lived(desk, "200")
    auditor.keep(sign(desk.tenant.pk))
    file = auditor.folder / "out.zip"
    call_command("export_bundle", str(file), tenant="harbour")
    assert "SHA-256" in capsys.readouterr().out
    assert found(auditor.verify(file.read_bytes())) == (0, "")
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("export_bundle", str(file), tenant="harbour")
    with pytest.raises(CommandError, match="no such thing"):
        call_command("export_bundle", str(auditor.folder / "x.zip"), tenant="harbour", run=str(new_id()))
    assert not (auditor.folder / "x.zip").exists()


def test_the_manifest_says_what_it_is(desk: Desk) -> None:
    lived(desk, "200")
    seal(db_clock)
    manifest = json.loads(bytes_of(taken(desk.tenant), "manifest.json"))
    last = Seal.objects.filter(tenant_id=desk.tenant.pk).count()
    assert (manifest["first_seq"], manifest["last_seq"], manifest["counts"]["events"]) == (1, last, last)
    assert (manifest["format"], manifest["scope"]) == ("placet.bundle.v1", {"kind": "tenant"})
    assert AGENT.performed_by not in manifest["made_by"]
