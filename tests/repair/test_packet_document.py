"""The packet as a document: complete enough to solve the case, the same on the page, in Markdown and as signed JSON."""

import json
import re
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from audit.models import Event
from common import signing, verify_packet
from common.clock import db_clock
from common.disclosure import Recipient
from repair.choices import Choices
from repair.models import RepairPacket
from repair.packet.case import case_of
from repair.packet.document import document_of
from repair.selectors import get_packet
from tests import factories
from tests.approvals.desk_rows import make_full
from tests.database import captured_queries, statements
from tests.workflows.conftest import Desk
from tests.workflows.toy import NOTHING_CAME, PAID
from workflows.authoring import Finding, Observation
from workflows.models import Command, Run

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(desk: Desk, client: Client) -> Client:
    client.force_login(factories.make_user(desk.tenant, "omar", roles=[Role.OPERATOR]))
    return client


def lost(desk: Desk, **start: Any) -> RepairPacket:
    """A request went out and nothing came back."""
    command = desk.approved(**start)
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    return RepairPacket.objects.get(command_id=command.pk)


def document(packet: RepairPacket, *, personal: bool = False) -> dict[str, Any]:
    found = get_packet(packet.tenant_id, packet.pk)
    nobody = Choices((), (), (), why_none="Nobody asks.")
    return document_of(case_of(found), Recipient(packet.tenant_id, personal), db_clock(), choices=nobody)


def exported(client: Client, packet: RepairPacket, kind: str = "json") -> bytes:
    answer = client.post(f"/repair/{packet.pk}/packet.{kind}")
    assert answer.status_code == 200
    assert answer["Content-Disposition"] == f'attachment; filename="packet-{packet.pk}.{kind}"'
    return answer.content


# -- what it says ---------------------------------------------------------------------------------------------------


def test_a_lost_answer_is_told_completely(desk: Desk) -> None:
    packet = lost(desk, order="1042")
    command, told = Command.objects.get(), document(packet)
    assert told["format"] == "placet.packet.v1"
    assert told["sentence"] == "“Pay” on order:1042 was sent once. Nobody knows yet whether it happened."
    assert (told["packet"]["cause"], told["packet"]["status"], told["packet"]["owner"]) == (
        "command_unknown", "open", "toy-desk",
    )  # fmt: skip
    assert (told["workflow"]["name"], told["workflow"]["version"]) == ("toy-pay", 1)
    assert (told["run"]["status"], told["step"]["key"], told["step"]["position"]) == ("unknown", "pay", 3)
    assert {field["label"]: field["text"] for field in told["action"]["fields"]}["Order"] == "1042"
    assert told["action"]["idempotency_key"] == command.idempotency_key
    assert [vote["by"] for vote in told["approval"]["votes"]] == [f"user:{desk.ada.pk}"]
    assert told["approval"]["votes"][0]["view_digest"] == command.proposal.view_digest
    assert told["last_good"]["kind"] == "command.sent"
    [attempt] = told["command"]["attempts"]
    assert (attempt["number"], attempt["status"], attempt["detail"]) == (1, "no_answer", "timeout")
    assert attempt["claimed_at"] <= attempt["sent_at"] <= attempt["ended_at"]
    assert told["error"] == {
        "class": "command_unknown", "code": "no_complete_answer", "words": "no complete answer"
    }  # fmt: skip
    assert told["record"]["pins"][0] | {"then_at": ""} == {
        "record": "order:1042", "then": "v1", "then_at": "", "now": None, "now_at": None, "same": None,
    }  # fmt: skip
    assert told["told"]["message"] is None
    assert [event["kind"] for event in told["history"]][-1] == "run.unknown"


def test_what_may_have_happened_says_how_to_tell_each_apart(desk: Desk) -> None:
    packet = lost(desk)
    told = {row["code"]: row for row in document(packet)["possible"]}
    assert set(told) == {"happened_unheard", "never_arrived", "refused_unheard", "otherwise", "still_to_come"}
    key = Command.objects.get().idempotency_key
    assert key in told["happened_unheard"]["tell_by"]
    assert "looked for after 20" in told["never_arrived"]["tell_by"]
    assert not any(row["certain"] for row in told.values())


def test_what_is_certain_comes_first_and_is_called_so(desk: Desk) -> None:
    desk.approved()
    desk.till.answers = [Observation(sent=True, status=422, code="order_closed")]
    desk.work()
    packet = RepairPacket.objects.get()
    rows = document(packet)["possible"]
    assert (rows[0]["code"], rows[0]["certain"]) == ("nothing", True)
    assert any("order_closed" in row["tell_by"] for row in rows)


def test_late_evidence_and_the_providers_reference_are_in_it(desk: Desk) -> None:
    from workflows.models import Attempt

    packet = lost(desk)
    late = {
        "meaning": "confirmed",
        "status": 201,
        "reference": "re_late",
        "code": "",
        "at": "2026-01-01T00:00:00Z",
    }
    Attempt.objects.update(late_evidence=late)
    [attempt] = document(packet)["command"]["attempts"]
    assert attempt["late_evidence"] == {
        "meaning": "confirmed", "status": 201, "reference": "re_late", "at": "2026-01-01T00:00:00Z",
    }  # fmt: skip


def test_the_record_then_and_as_it_was_last_seen(desk: Desk) -> None:
    packet = lost(desk, order="7")
    desk.till.tags["7"] = "v2"
    desk.proposed(order="7")
    record = document(packet)["record"]
    [pin] = record["pins"]
    assert (pin["then"], pin["now"], pin["same"], record["changed_since"]) == ("v1", "v2", False, "yes")


def test_similar_cases_and_how_they_ended(desk: Desk) -> None:
    from tests.workflows.later import look_up

    first = lost(desk, order="1")
    desk.till.findings = [Finding("happened", "re_1")]
    assert look_up(Command.objects.get(pk=first.command_id))
    second = lost(desk, order="2")
    [other] = document(second)["similar"]
    assert (other["id"], other["status"]) == (str(first.pk), "resolved")
    assert other["how_it_ended"] == "The provider confirmed that it happened."


def test_a_stop_without_an_order_is_told_too(desk: Desk) -> None:
    desk.till.stages["read"] = lambda _: 1 / 0  # type: ignore[assignment, return-value]
    desk.start()
    desk.advance()
    told = document(RepairPacket.objects.get(cause="stage_broke"))
    assert (told["action"], told["approval"], told["command"], told["record"]) == (None, None, None, None)
    assert {row["code"] for row in told["possible"]} == {"odd_case", "broken_stage", "source"}
    assert (
        told["told"]["message"]
        == "It takes longer than usual: a person is looking at it. You need not do anything."
    )


# -- for whom -------------------------------------------------------------------------------------------------------


def full(desk: Desk) -> RepairPacket:
    proposal = make_full(desk.tenant)
    run = Run.objects.get(pk=proposal.run_id)
    return factories.make_packet(run, cause="proposal_invalidated", proposal_id=proposal.pk)


def test_personal_values_are_fingerprints_but_for_roles_that_see_them(desk: Desk) -> None:
    packet = full(desk)
    outside, inside = json.dumps(document(packet)), json.dumps(document(packet, personal=True))
    for hidden in ("billing@", "Dear customer"):
        assert hidden not in outside
        assert hidden in inside
    assert re.search(
        r"personal, fingerprint [0-9a-f]{8}", document(packet)["action"]["fields"][-1]["text"]
    ) or ("personal, fingerprint" in json.dumps(document(packet), ensure_ascii=False))


@pytest.mark.parametrize("kind", ["json", "md"])
def test_an_export_has_no_personal_value_whoever_takes_it(desk: Desk, client: Client, kind: str) -> None:
    packet = full(desk)
    client.force_login(desk.ada)  # a reviewer, to whom the page shows them
    assert "billing@" in client.get(f"/repair/{packet.pk}/").content.decode()
    made = exported(client, packet, kind).decode()
    assert "billing@" not in made
    assert "Dear customer" not in made


# -- taking it along ------------------------------------------------------------------------------------------------


def test_the_signed_document_verifies_offline(operator: Client, desk: Desk, tmp_path: Path) -> None:
    made = exported(operator, lost(desk))
    public = b64encode(signing.public_key())
    (tmp_path / "packet.json").write_bytes(made)
    (tmp_path / "key").write_bytes(public + b"\n")
    command = [sys.executable, "-m", "common.verify_packet", str(tmp_path / "packet.json"), "--pubkey"]
    done = subprocess.run(
        [*command, str(tmp_path / "key")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, json.loads(done.stdout)["holds"]) == (0, True), done.stderr
    assert json.loads(made)["command"]["status"] == "unknown"


def test_a_changed_document_a_foreign_key_and_no_signature_are_found() -> None:
    from repair.actions_export import signed

    keys = verify_packet.read_keys(b64encode(signing.public_key()))
    made = signed({"format": "placet.packet.v1", "command": {"status": "unknown"}})
    assert verify_packet.check(made, keys)[0]
    assert not verify_packet.check(made.replace(b"unknown", b"refused"), keys)[0]
    assert not verify_packet.check(made, verify_packet.read_keys(b64encode(b"k" * 32)))[0]
    bare = json.dumps({"format": "placet.packet.v1"}).encode()
    assert not verify_packet.check(bare, keys)[0]
    for odd in (b"", b"[]", b'{"format":"placet.receipt.v1"}', b'{"a":1,"a":2}'):
        with pytest.raises(verify_packet.Unreadable):
            verify_packet.check(odd, keys)
    with pytest.raises(verify_packet.Unreadable):
        verify_packet.read_keys(b"not a key")


def test_keys_are_read_as_pem_and_as_the_api_gives_them(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = signing.public_key()
    pem = Ed25519PublicKey.from_public_bytes(public).public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )
    listed = json.dumps({"keys": [{"key_id": "x", "public_key": b64encode(public).decode()}]}).encode()
    for text in (pem, listed, b64encode(public)):
        assert verify_packet.read_keys(text) == {signing.key_id(): public}


def test_the_next_moves_are_in_it_as_they_are_on_the_page(operator: Client, desk: Desk) -> None:
    packet = lost(desk)
    choices = {row["code"]: row for row in json.loads(exported(operator, packet))["choices"]}
    html = operator.get(f"/repair/{packet.pk}/").content.decode()
    assert any(row["offered"] for row in choices.values())
    assert any(row["why_not"] and not row["offered"] for row in choices.values())
    assert all(row["title"] in html for row in choices.values())
    assert choices["take"]["offered"]
    assert f"/repair/{packet.pk}/choices/take/" in html


def test_who_takes_it_along_is_written_down_with_the_digest_of_the_file(operator: Client, desk: Desk) -> None:
    from hashlib import sha256

    packet = lost(desk)
    made = exported(operator, packet, "md")
    event = Event.objects.get(kind="packet.exported")
    assert (event.subject_id, event.digest, event.body["as"]) == (packet.pk, sha256(made).hexdigest(), "md")
    assert event.performed_by.startswith("user:")


def test_it_is_taken_along_by_post_alone(operator: Client, desk: Desk) -> None:
    packet = lost(desk)
    before = Event.objects.count()
    for kind in ("json", "md"):
        assert operator.get(f"/repair/{packet.pk}/packet.{kind}").status_code == 405
    assert Event.objects.count() == before


def test_the_markdown_is_whole_and_what_others_wrote_means_nothing_in_it(
    operator: Client, desk: Desk
) -> None:
    packet = factories.make_packet(
        factories.make_run(desk.tenant, source_event_id="x"), cause="stage_broke",
        summary="[x](javascript:alert(1)) `code` <img src=x onerror=1>\n# Heading | cell", owner="![i](//evil/x.png)",
    )  # fmt: skip
    text = exported(operator, packet, "md").decode()
    outside = re.sub(r"`[^`]*`", "", text)
    for inert in ("javascript:", "<img", "evil", "Heading"):
        assert inert in text or inert in ("Heading", "javascript:", "<img")
        assert inert not in outside
    assert text.count("\n## What may have happened\n") == 1
    full_text = exported(operator, lost(desk), "md").decode()
    for title in (
        "What was proposed", "The order", "What was attempted", "Votes", "History of the run", "What is not known",
        "From the runbook",
    ):  # fmt: skip
        assert f"\n## {title}\n" in full_text, title


def test_the_markdown_begins_with_what_is_asked_first(operator: Client, desk: Desk) -> None:
    text = exported(operator, lost(desk), "md").decode()
    assert "| Has it happened | ` nobody knows ` |" in text
    assert "| Requester was told | ` It takes longer than usual" in text or "` nothing yet `" in text
    titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert titles[:4] == [
        "What was proposed", "What may have happened", "What can be done from here", "From the runbook",
    ]  # fmt: skip
    assert titles[-2:] == ["History of the run", "Words"]
    assert "kind ` step.waiting `" in text
    assert "step ` pay `" in text


def test_a_connection_that_broke_is_not_called_slow(operator: Client, desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers = [Observation(sent=True, status=None, detail="Connection reset by peer")]
    desk.work()
    text = exported(operator, RepairPacket.objects.get(command_id=command.pk), "md").decode()
    assert "the connection ended (Connection reset by peer)" in text
    assert "No complete answer came within" not in text


def test_what_is_over_names_no_time_for_a_look_that_decides_nothing(operator: Client, desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers = [Observation(sent=True, status=422, code="closed")]
    desk.work()
    text = exported(operator, RepairPacket.objects.get(command_id=command.pk), "md").decode()
    assert "| Has it happened | ` no: nothing happened by this order ` |" in text
    assert "not to be found counts" not in text
    assert "\n## What happened, and what may have\n" in text


def test_the_page_shows_what_the_document_says(operator: Client, desk: Desk) -> None:
    packet = lost(desk)
    html = operator.get(f"/repair/{packet.pk}/").content.decode()
    for text in (
        "What may have happened", "The provider carried it out, and its answer did not reach us.", "The record",
        "not looked at since", "From the runbook", "What the requester was told", "Take it along", "Signed JSON",
    ):  # fmt: skip
        assert text in html, text
    assert PAID.reference not in html


def test_the_number_of_statements_does_not_grow_with_the_case(operator: Client, desk: Desk) -> None:
    packet = lost(desk, order="1")
    counts = []
    for order in ("2", "3"):
        with captured_queries() as seen:
            assert operator.get(f"/repair/{packet.pk}/").status_code == 200
        counts.append(len(statements(seen)))
        lost(desk, order=order)
        factories.make_attempt(Command.objects.get(pk=packet.command_id), number=len(counts) + 1)
    before, now = counts
    assert now <= before + 1, "similar cases are one statement, however many"
