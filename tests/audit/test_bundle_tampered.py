"""Somebody who may do everything in the database changes a real history; a bundle of it does not hold elsewhere.

Each with triggers off, as only the owner of the tables or a superuser can. What is kept outside was signed before.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from approvals.models import Decision, Proposal
from audit.chain import GENESIS, SELECT_CONTENT, content_of, link_hash
from audit.models import Event, Seal
from audit.sealer import seal
from common.clock import db_clock
from common.ids import new_id
from tests.audit.bundling import Auditor, found, sign, taken
from tests.audit.events import tamper
from tests.workflows.conftest import Desk, desk
from workflows.models import Command

__all__ = ["desk"]
pytestmark = pytest.mark.django_db


class World:
    """Two runs that have ended, and one whose proposal waits; signed twice, and kept by somebody outside."""

    def __init__(self, desk: Desk, auditor: Auditor) -> None:
        self.desk, self.tenant, self.auditor = desk, desk.tenant.pk, auditor
        self.first = self.lived("201")
        auditor.keep(sign(self.tenant))
        self.signed = Seal.objects.filter(tenant_id=self.tenant).count()
        self.second = self.lived("202")
        self.waiting = desk.proposed(order="203")
        auditor.keep(sign(self.tenant))
        self.sealed = Seal.objects.filter(tenant_id=self.tenant).count()

    def lived(self, order: str) -> Command:
        command = self.desk.approved(order=order)
        self.desk.work()
        self.desk.advance()
        return Command.objects.get(pk=command.pk)

    def event_at(self, seq: int) -> Event:
        return Event.objects.get(pk=Seal.objects.get(tenant_id=self.tenant, seq=seq).event_id)

    def judged(self) -> tuple[int, str, int | None]:
        report = self.auditor.verify(taken(self.desk.tenant))
        code, what = found(report)
        return code, what, report.broken.seq if report.broken else None

    def order_anew(self) -> None:
        """All seals and the head, made anew of the events that are there: as by the sealer itself."""
        tamper("DELETE FROM audit_seal WHERE tenant_id = %s", self.tenant)
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {SELECT_CONTENT} FROM audit_event e WHERE tenant_id = %s ORDER BY at, id",
                [self.tenant],
            )
            contents = [content for row in cursor.fetchall() if (content := content_of(row))]
        previous = GENESIS
        for seq, content in enumerate(contents, 1):
            value = link_hash(seq, previous, content)
            tamper(
                "INSERT INTO audit_seal (event_id, tenant_id, seq, previous, hash, sealed_at)"
                " VALUES (%s, %s, %s, %s, %s, now())", content.id, self.tenant, seq, previous, value,
            )  # fmt: skip
            previous = value
        tamper(
            "UPDATE audit_head SET seq = %s, hash = %s WHERE tenant_id = %s",
            len(contents),
            previous,
            self.tenant,
        )


@pytest.fixture
def world(desk: Desk, tmp_path: Path) -> World:
    made = World(desk, Auditor(tmp_path))
    assert made.judged() == (0, "", None)
    return made


def test_an_edited_event(world: World) -> None:
    tamper("UPDATE audit_event SET performed_by = 'user:other' WHERE id = %s", world.event_at(7).pk)
    assert world.judged() == (1, "link", 7)


def test_an_edited_event_with_everything_made_anew(world: World) -> None:
    tamper(
        "UPDATE audit_event SET performed_by = 'user:other' WHERE id = %s",
        world.event_at(world.signed + 3).pk,
    )
    world.order_anew()
    assert world.judged() == (1, "root", world.signed + 1)


def test_a_deleted_event(world: World) -> None:
    tamper("DELETE FROM audit_event WHERE id = %s", world.event_at(7).pk)
    assert world.judged() == (1, "order", 7)


def test_a_deleted_event_with_everything_made_anew(world: World) -> None:
    tamper("DELETE FROM audit_event WHERE id = %s", world.event_at(2).pk)
    world.order_anew()
    code, what, seq = world.judged()
    assert (code, what) == (1, "root") or (code, what, seq) == (1, "state", 2)


INSERT = (
    "INSERT INTO audit_event SELECT gen_random_uuid(), tenant_id, 'user.signed_in', 'user', gen_random_uuid(), NULL,"
    " '', '', performed_by, on_behalf_of, via, owner, '', '', '', '{}', at, xid FROM audit_event WHERE id = %s"
)


def test_an_inserted_event_with_everything_made_anew(world: World) -> None:
    tamper(INSERT, world.event_at(7).pk)
    world.order_anew()
    assert world.judged() == (1, "root", 1)


def test_two_events_that_changed_places(world: World) -> None:
    for place, to in ((2, -2), (3, 2), (-2, 3)):
        tamper("UPDATE audit_seal SET seq = %s WHERE tenant_id = %s AND seq = %s", to, world.tenant, place)
    assert world.judged()[:2] == (1, "link")


def test_two_events_that_changed_places_with_everything_made_anew(world: World) -> None:
    one, other = world.event_at(2), world.event_at(3)
    tamper("UPDATE audit_event SET at = %s WHERE id = %s", other.at, one.pk)
    tamper("UPDATE audit_event SET at = %s WHERE id = %s", one.at, other.pk)
    world.order_anew()
    assert world.judged()[0] == 1


def test_a_rebuilt_history(world: World) -> None:
    tamper("UPDATE audit_event SET request_id = 'x' || request_id WHERE tenant_id = %s", world.tenant)
    world.order_anew()
    assert world.judged() == (1, "root", 1)


EVERYTHING = (
    "approvals_decision",
    "workflows_attempt",
    "workflows_command",
    "approvals_proposal",
    "workflows_step",
)


def restore(world: World, seq: int) -> None:
    """The state of before: what has been sealed since is gone, and the rows of runs that began since."""
    began = world.event_at(seq).at
    tamper("DELETE FROM audit_event WHERE tenant_id = %s AND at > %s", world.tenant, began)
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s AND seq > %s", world.tenant, seq)
    later = "SELECT id FROM workflows_run WHERE tenant_id = %s AND created_at > %s"
    for table, column in (
        ("approvals_decision", "proposal_id IN (SELECT id FROM approvals_proposal WHERE run_id IN ({}))"),
        ("workflows_attempt", "command_id IN (SELECT id FROM workflows_command WHERE run_id IN ({}))"),
        ("workflows_command", "run_id IN ({})"), ("approvals_proposal", "run_id IN ({})"),
        ("workflows_step", "run_id IN ({})"), ("workflows_run", "id IN ({})"),
    ):  # fmt: skip
        with connections["owner"].cursor() as cursor:
            cursor.execute(f"DELETE FROM {table} WHERE {column.format(later)}", [world.tenant, began])
    head = Seal.objects.get(tenant_id=world.tenant, seq=seq)
    tamper("UPDATE audit_head SET seq = %s, hash = %s WHERE tenant_id = %s", seq, head.hash, world.tenant)


def test_an_older_state_from_a_backup(world: World) -> None:
    restore(world, world.signed)
    assert world.judged() == (1, "cut", world.signed + 1)
    world.desk.proposed(order="299")
    seal(db_clock)
    assert world.judged()[:2] == (1, "cut")


def test_a_payload_that_was_changed(world: World) -> None:
    proposal = Proposal.objects.get(pk=world.second.proposal_id)
    plain = bytes(proposal.contract).replace(b"10.00", b"99.00")
    tamper("UPDATE approvals_proposal SET contract = %s WHERE id = %s", plain, proposal.pk)
    report = world.auditor.verify(taken(world.desk.tenant))
    assert found(report) == (1, "content")
    assert report.broken is not None and report.broken.where.startswith("contracts.jsonl:")


def test_a_sealed_payload_that_was_damaged(world: World) -> None:
    tamper(
        "UPDATE approvals_proposal SET contract = set_byte(contract, length(contract) - 1, 7) WHERE id = %s",
        world.second.proposal_id,
    )
    report = world.auditor.verify(taken(world.desk.tenant))
    assert found(report) == (1, "content")
    assert report.broken is not None and "could not be read" in report.broken.says


ROWS: dict[str, Callable[[World], tuple[str, Any]]] = {
    "UPDATE workflows_command SET status = 'refused', effect = 'none' WHERE id = %s": lambda w: w.first.pk,
    "UPDATE approvals_proposal SET status = 'approved', decided_at = created_at, execute_by = decide_by"
    " WHERE id = %s": lambda w: w.waiting.pk,
    "UPDATE approvals_proposal SET target = 'order:999' WHERE id = %s": lambda w: w.first.proposal_id,
    "UPDATE approvals_proposal SET needed = 1, mode = 'shadow' WHERE id = %s": lambda w: w.first.proposal_id,
    "UPDATE workflows_run SET status = 'failed' WHERE id = %s": lambda w: w.first.run_id,
    "UPDATE workflows_command SET idempotency_key = 'other' WHERE id = %s": lambda w: w.first.pk,
    "UPDATE approvals_decision SET performed_by = 'user:other' WHERE proposal_id = %s": lambda w: w.first.proposal_id,
    "UPDATE approvals_decision SET replaced_at = now() WHERE proposal_id = %s": lambda w: w.first.proposal_id,
    "DELETE FROM approvals_decision WHERE proposal_id = %s": lambda w: w.first.proposal_id,
    "DELETE FROM workflows_command WHERE id = %s": lambda w: w.first.pk,
    "UPDATE workflows_attempt SET command_id = gen_random_uuid() WHERE command_id = %s": lambda w: w.first.pk,
    "UPDATE workflows_step SET status = 'failed' WHERE run_id = %s AND key = 'pay'": lambda w: w.first.run_id,
}  # fmt: skip


@pytest.mark.parametrize("sql", ROWS)
def test_a_changed_row(world: World, sql: str) -> None:
    tamper(sql, ROWS[sql](world))
    assert world.judged() == (1, "row", None)


# --- an approval that nobody gave ------------------------------------------------------------------------------------


def forge(world: World, *, vote: bool, row: bool) -> None:
    """As a person would have approved it: by the events and rows that this leaves behind."""
    proposal, user = world.waiting, world.desk.ben
    decision = str(new_id())
    event = (
        "INSERT INTO audit_event (id, tenant_id, kind, subject_type, subject_id, run_id, from_state, to_state,"
        " performed_by, on_behalf_of, via, owner, reason, request_id, digest, body, at, xid, written)"
        " VALUES (gen_random_uuid(), %s, %s, 'proposal', %s, %s, %s, %s, %s, '', 'session', 'person', '', '', %s, %s,"
        " clock_timestamp(), txid_current(), nextval('audit_event_written'))"
    )
    same = (world.tenant, proposal.pk, proposal.run_id, f"user:{user.pk}", proposal.digest)
    if vote:
        body = f'{{"decision_id": "{decision}", "kind": "approve", "view_digest": "{proposal.view_digest}"}}'
        tamper(event, same[0], "proposal.vote", *same[1:3], "", "", *same[3:], body)
    if row:
        tamper(
            "INSERT INTO approvals_decision (id, tenant_id, proposal_id, kind, user_id, role, rule, digest,"
            " view_digest, parts_seen, acknowledged, reason_code, reason, performed_by, via, at)"
            " VALUES (%s, %s, %s, 'approve', %s, 'reviewer', '', %s, %s, '{}', '{}', '', '', %s, 'session', now())",
            decision, world.tenant, proposal.pk, user.pk, proposal.digest, proposal.view_digest, f"user:{user.pk}",
        )  # fmt: skip
    tamper(event, same[0], "proposal.approved", *same[1:3], "pending", "approved", *same[3:], "{}")
    tamper(
        "UPDATE approvals_proposal SET status = 'approved', decided_at = now(), execute_by = now() + '1 hour'"
        " WHERE id = %s", proposal.pk,
    )  # fmt: skip
    seal(db_clock)


def test_a_forged_approval_without_a_decision(world: World) -> None:
    forge(world, vote=False, row=False)
    assert world.judged() == (1, "quorum", world.sealed + 2)  # behind the event that the first export made


def test_a_forged_approval_whose_decision_has_no_row(world: World) -> None:
    forge(world, vote=True, row=False)
    assert world.judged()[:2] == (1, "row")


def test_a_forged_decision_without_an_event(world: World) -> None:
    forge(world, vote=False, row=True)
    assert world.judged() == (1, "quorum", world.sealed + 2)


def test_a_whole_forgery_behind_the_last_checkpoint_is_an_unproven_tail(world: World) -> None:
    """Nothing in the database tells it from the truth; that nobody has signed it yet is all that can be said."""
    forge(world, vote=True, row=True)
    report = world.auditor.verify(taken(world.desk.tenant))
    assert found(report) == (2, "")
    first, last = world.sealed + 1, world.sealed + 3
    assert report.lacks == [f"The last 3 events ({first} to {last}) stand under no signed checkpoint yet."]


def test_a_whole_forgery_dated_back_does_not_fit_what_was_signed(world: World) -> None:
    forge(world, vote=True, row=True)
    back = world.event_at(world.sealed).at
    tamper(
        "UPDATE audit_event SET at = %s WHERE kind IN ('proposal.vote') AND subject_id = %s",
        back,
        world.waiting.pk,
    )
    tamper("DELETE FROM audit_event WHERE kind = 'chain.exported'")
    tamper("UPDATE audit_event SET at = %s WHERE id = %s", db_clock(), world.event_at(world.sealed).pk)
    world.order_anew()
    assert world.judged()[0] == 1
    assert Decision.objects.filter(proposal=world.waiting).exists()
