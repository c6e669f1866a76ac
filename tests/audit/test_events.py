"""Recording: one event with its change, stamped by the database, never changed again."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.db import DatabaseError, IntegrityError, connection, connections, transaction

from audit.actions import EventTooLarge, record, record_many
from audit.actors import Actor, Owner, Via, clock_actor
from audit.models import Event, Head, Seal, Watermark
from audit.sealer import seal
from common.clock import db_clock
from common.ids import new_id
from common.strictjson import JsonRefused
from common.tx import NoTransaction
from tests.audit.events import entry, write, write_one

pytestmark = pytest.mark.django_db
TENANT = UUID("0190b7a6-0000-7000-8000-000000000001")


def test_an_event_holds_all_that_was_said() -> None:
    person = Actor(
        performed_by="user:7", on_behalf_of="user:8", via=Via.SESSION, owner=Owner.PERSON, request_id="req-1"
    )
    subject, run = new_id(), new_id()
    with transaction.atomic():
        event_id = record(
            by=person, kind="proposal.approved", tenant_id=TENANT, subject_type="proposal", subject_id=subject,
            run_id=run, from_state="pending", to_state="approved", reason="fits", digest="ab", body={"votes": 2},
        )  # fmt: skip
    event = Event.objects.get()
    assert event.id == event_id
    assert (event.kind, event.subject_type, event.subject_id, event.run_id) == (
        "proposal.approved", "proposal", subject, run,
    )  # fmt: skip
    assert (event.from_state, event.to_state, event.reason, event.digest) == (
        "pending",
        "approved",
        "fits",
        "ab",
    )
    assert (event.performed_by, event.on_behalf_of, event.via, event.owner, event.request_id) == (
        "user:7", "user:8", "session", "person", "req-1",
    )  # fmt: skip
    assert event.body == {"votes": 2}


def test_several_events_in_one_statement_keep_their_order(django_assert_num_queries) -> None:
    with transaction.atomic(), django_assert_num_queries(1):
        ids = record_many([entry(TENANT, number) for number in range(5)])
    assert [event.id for event in Event.objects.order_by("at", "id")] == ids
    assert [event.body["number"] for event in Event.objects.order_by("at", "id")] == [0, 1, 2, 3, 4]


def test_no_entries_are_no_statement(django_assert_num_queries) -> None:
    with transaction.atomic(), django_assert_num_queries(0):
        assert record_many([]) == []


def test_outside_a_transaction_nothing_is_recorded() -> None:
    with pytest.raises(NoTransaction):
        record(by=clock_actor(), kind="x.y", tenant_id=TENANT, subject_type="x", subject_id=new_id())
    with pytest.raises(NoTransaction):
        record_many([entry(TENANT)])


def test_an_event_goes_with_its_transaction() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record_many([entry(TENANT)])
        raise ZeroDivisionError
    assert not Event.objects.exists()


def test_long_reasons_are_cut_and_large_bodies_refused() -> None:
    write_one(TENANT, reason="x" * 900)
    assert len(Event.objects.get().reason) == 500
    with pytest.raises(EventTooLarge):
        write_one(TENANT, body={"text": "x" * 9000})
    with pytest.raises(JsonRefused):
        write_one(TENANT, body={"number": 2**60})
    assert Event.objects.count() == 1


def test_time_and_transaction_are_the_databases_whatever_the_application_says() -> None:
    before = db_clock()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::text::bigint")
        xid = cursor.fetchone()[0]
        Event.objects.create(
            tenant_id=TENANT, kind="x.y", subject_type="x", subject_id=new_id(), performed_by="user:1",
            via="session", owner="person", at=datetime(2001, 1, 1, tzinfo=UTC), xid=5,
        )  # fmt: skip
    event = Event.objects.get()
    assert before <= event.at <= db_clock()
    assert event.xid == xid


REFUSED = [
    "UPDATE audit_event SET reason = 'other'",
    "DELETE FROM audit_event",
    "TRUNCATE audit_event",
    "UPDATE audit_seal SET hash = 'other'",
    "DELETE FROM audit_seal",
    "TRUNCATE audit_seal",
    "DELETE FROM audit_head",
    "TRUNCATE audit_head",
    "DELETE FROM audit_watermark",
    "ALTER TABLE audit_event DISABLE TRIGGER ALL",
    "DROP TRIGGER pgtrigger_audit_event_append_only_f64b1 ON audit_event",
    "DROP TABLE audit_event",
    "SET session_replication_role = replica",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_the_application_role_can_only_add(sql: str) -> None:
    write(TENANT)
    seal(db_clock)
    with pytest.raises(DatabaseError), connection.cursor() as cursor:
        cursor.execute(sql)
    assert (Event.objects.count(), Seal.objects.count(), Head.objects.count(), Watermark.objects.count()) == (
        1,
    ) * 4
    assert Event.objects.get().reason == ""


@pytest.mark.parametrize("table", ["audit_event", "audit_seal"])
@pytest.mark.parametrize("sql", ["UPDATE {} SET tenant_id = tenant_id", "DELETE FROM {}", "TRUNCATE {}"])
def test_even_the_owner_is_stopped_by_the_triggers(table: str, sql: str) -> None:
    """Triggers protect against mistakes; here with the owner's rights and replication off again."""
    write(TENANT)
    seal(db_clock)
    stopped = pytest.raises(IntegrityError, match="append-only")
    with stopped, transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("SET LOCAL pgtrigger.ignore = '{pgtrigger_audit_event_append_only_f64b1}'")
        cursor.execute(sql.format(table))
    assert Seal.objects.count() == Event.objects.count() == 1


def test_who_did_it_is_never_empty() -> None:
    nobody = Actor(performed_by="", via=Via.CLOCK, owner=Owner.CLOCK)
    with pytest.raises(IntegrityError, match="audit_event_has_performed_by"), transaction.atomic():
        record_many([entry(TENANT, by=nobody)])
