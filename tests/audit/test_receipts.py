"""Receipts of single events: kept outside, they show what a database can no longer show."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from access.enums import Role, Scope
from audit.models import Event
from audit.receipts import events_of_decisions
from audit.sealer import seal
from common.clock import db_clock
from common.ids import new_id
from common.signing import key_id, public_key
from tests.api.callers import as_json, automation, token_for
from tests.audit.bundling import Auditor, found, sign, taken
from tests.audit.events import tamper
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import Desk, desk

__all__ = ["desk"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def auditor(tmp_path: Path) -> Auditor:
    made = Auditor(tmp_path)
    key = tmp_path / "key.pub"
    listed = {
        "keys": [{"key_id": key_id(), "alg": "Ed25519", "public_key": b64encode(public_key()).decode()}]
    }
    key.write_text(f"{key.read_text()}{json.dumps(listed)}\n")
    return made


def kept(desk: Desk, auditor: Auditor, event_id: Any) -> tuple[dict[str, Any], Path]:
    """The receipt of an event as a program gets it, in a file of somebody's own."""
    caller = automation(token_for(desk.tenant, f"keeps-{new_id()}"[:40], scopes=[Scope.AUDIT_READ]))
    document = as_json(caller.get(f"/audit/receipts/{event_id}"))
    file = auditor.folder / f"receipt-{new_id()}.json"
    file.write_text(json.dumps(document))
    return document, file


def test_the_answer_to_a_decision_names_its_event(desk: Desk) -> None:
    proposal = desk.proposed(order="200")
    outcome = desk.decide(proposal)
    event = Event.objects.get(pk=outcome.event_id)
    assert (event.kind, event.body["decision_id"]) == ("proposal.vote", str(outcome.decision_id))
    again = desk.decide(proposal)
    assert (again.replayed, again.event_id) == (True, outcome.event_id)


def test_a_receipt_grows_with_what_is_known(desk: Desk, auditor: Auditor) -> None:
    outcome = desk.decide(desk.proposed(order="200"))
    first, file = kept(desk, auditor, outcome.event_id)
    assert (first["seq"], first["hash"], first["proof"], first["checkpoint"]) == (None, None, None, None)
    seal(db_clock)
    second, _ = kept(desk, auditor, outcome.event_id)
    assert (second["seq"] > 0, second["proof"]) == (True, None)
    note = sign(desk.tenant.pk)
    third, whole = kept(desk, auditor, outcome.event_id)
    assert (third["checkpoint"], third["seq"], third["content_hash"]) == (
        note,
        second["seq"],
        first["content_hash"],
    )
    auditor.keep(note)
    report = auditor.verify(taken(desk.tenant), file, whole)
    assert (found(report), report.lacks) == ((0, ""), [])


def test_the_checkpoint_in_a_receipt_is_one_from_outside(desk: Desk, auditor: Auditor) -> None:
    outcome = desk.decide(desk.proposed(order="200"))
    sign(desk.tenant.pk)
    _, file = kept(desk, auditor, outcome.event_id)
    report = auditor.verify(taken(desk.tenant), file)
    assert report.facts["checkpoints_matched"] == [file.name]


def test_an_end_cut_off_behind_the_last_checkpoint_is_shown_by_a_receipt(
    desk: Desk, auditor: Auditor
) -> None:
    """The last window: without the receipt nothing tells the shorter history from a true one."""
    proposal = desk.proposed(order="200")
    _, _ = kept(desk, auditor, Event.objects.earliest("at").pk)
    auditor.keep(sign(desk.tenant.pk))
    size = Event.objects.filter(tenant_id=desk.tenant.pk).count()
    outcome = desk.decide(proposal, "reject")
    seal(db_clock)
    _, file = kept(desk, auditor, outcome.event_id)
    last = "SELECT event_id FROM audit_seal WHERE tenant_id = %s AND seq > %s"
    tamper(f"DELETE FROM audit_event WHERE tenant_id = %s AND (id IN ({last}) OR NOT EXISTS"
           " (SELECT FROM audit_seal s WHERE s.event_id = audit_event.id))",
           desk.tenant.pk, desk.tenant.pk, size)  # fmt: skip
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s AND seq > %s", desk.tenant.pk, size)
    tamper(
        "UPDATE audit_head SET seq = s.seq, hash = s.hash FROM audit_seal s WHERE s.tenant_id = audit_head.tenant_id"
        " AND s.tenant_id = %s AND s.seq = %s", desk.tenant.pk, size,
    )  # fmt: skip
    tamper("DELETE FROM approvals_decision WHERE proposal_id = %s", proposal.pk)
    tamper(
        "UPDATE approvals_proposal SET status = 'pending', decided_at = NULL, ended_at = NULL WHERE id = %s",
        proposal.pk,
    )
    tamper(
        "UPDATE workflows_run SET status = 'waiting_for_approval', finished_at = NULL, wait_id = gen_random_uuid(),"
        " waiting_until = now(), on_expiry = 'fail' WHERE id = %s", proposal.run_id,
    )  # fmt: skip
    tamper(
        "UPDATE workflows_step SET status = 'waiting', waiting_for = 'approval', finished_at = NULL,"
        " wait_id = gen_random_uuid(), waiting_until = now(), on_expiry = 'fail' WHERE proposal_id = %s", proposal.pk,
    )  # fmt: skip
    assert found(auditor.verify(taken(desk.tenant))) == (0, "")
    report = auditor.verify(taken(desk.tenant), file)
    assert found(report) == (1, "receipt")
    assert report.broken is not None and "cut off" in report.broken.says


def test_an_event_that_was_changed_since_is_shown(desk: Desk, auditor: Auditor) -> None:
    outcome = desk.decide(desk.proposed(order="200"))
    _, file = kept(desk, auditor, outcome.event_id)
    tamper("UPDATE audit_event SET performed_by = 'user:other' WHERE id = %s", outcome.event_id)
    report = auditor.verify(taken(desk.tenant), file)
    assert found(report) == (1, "receipt")
    assert report.broken is not None and report.broken.event == str(outcome.event_id)


# --- who gets it -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scopes", "proposal", "run"),
    [
        ([Scope.AUDIT_READ], 200, 200), ([Scope.PROPOSALS_READ], 200, 404), ([Scope.RUNS_READ], 404, 200),
        ([Scope.RESULTS_READ], 403, 403),
    ],
)  # fmt: skip
def test_whoever_may_see_the_thing_gets_the_receipt(
    desk: Desk, scopes: list[Scope], proposal: int, run: int
) -> None:
    made = desk.proposed(order="200")
    caller = automation(token_for(desk.tenant, "reads", scopes=scopes))
    for kind, status in (("proposal.made", proposal), ("run.queued", run)):
        event = Event.objects.get(run_id=made.run_id, kind=kind)
        assert caller.get(f"/audit/receipts/{event.pk}").status_code == status
    assert caller.get(f"/audit/receipts/{new_id()}").status_code in (404, 403)


def test_the_page_of_a_proposal_offers_the_receipts_of_its_decisions(desk: Desk, client: Client) -> None:
    proposal = desk.proposed(order="200")
    outcome = desk.decide(proposal)
    client.force_login(make_user(desk.tenant, "reader", roles=[Role.OPERATOR]))
    address = f"/history/receipts/{proposal.pk}/{outcome.decision_id}/"
    assert address in client.get(f"/review/{proposal.pk}/").content.decode()
    answer = client.get(address)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert json.loads(answer.content)["event_id"] == str(outcome.event_id)
    assert client.get(f"/history/receipts/{proposal.pk}/{new_id()}/").status_code == 404
    assert client.get(f"/history/{outcome.event_id}/receipt/").status_code == 403
    client.force_login(make_user(make_tenant("south"), "other", roles=list(Role)))
    assert (
        client.get(address).status_code
        == client.get(f"/history/{outcome.event_id}/receipt/").status_code
        == 404
    )
    assert events_of_decisions(desk.tenant.pk, proposal.pk) == {str(outcome.decision_id): outcome.event_id}
