"""Verification: every tampering of a sealed history is found, and named."""

from io import StringIO
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection

from audit.chain import SELECT_CONTENT, content_of, link_hash
from audit.models import Event, Seal
from audit.sealer import seal
from audit.tasks import verify_daily
from audit.verify import Cause, Verdict, verify, verify_all
from common.clock import db_clock
from tests.access import people
from tests.audit.events import tamper, write

pytestmark = pytest.mark.django_db
NORTH, SOUTH = UUID(int=1), UUID(int=2)


@pytest.fixture
def ids() -> list[UUID]:
    """Six sealed events of one tenant, and three of another that stay whole."""
    found = write(NORTH, 6)
    write(SOUTH, 3)
    seal(db_clock)
    return found


def found(tenant_id: UUID = NORTH) -> tuple[Cause | None, int | None]:
    assert verify(SOUTH).holds
    verdict = verify(tenant_id)
    return verdict.cause, verdict.seq


def test_an_untouched_chain_holds(ids: list[UUID]) -> None:
    head = Seal.objects.get(tenant_id=NORTH, seq=6).hash
    assert verify(NORTH) == Verdict(NORTH, 6, head)
    assert [verdict.sealed for verdict in verify_all()] == [6, 3]
    assert verify_daily() is True


COLUMNS = {
    "kind": "'other.kind'",
    "subject_type": "'other'",
    "subject_id": "gen_random_uuid()",
    "run_id": "gen_random_uuid()",
    "from_state": "'pending'",
    "to_state": "'approved'",
    "performed_by": "'user:other'",
    "on_behalf_of": "'user:other'",
    "via": "'token'",
    "owner": "'rule'",
    "reason": "'other'",
    "request_id": "'other'",
    "through": "'token:other'",
    "digest": "'other'",
    "body": """'{"number": 99}'""",
    "at": "at + interval '1 microsecond'",
}


def test_the_hash_covers_every_column_but_those_of_the_sealer() -> None:
    assert {field.attname for field in Event._meta.fields} - set(COLUMNS) == {
        "id",
        "tenant_id",
        "written",
        "xid",
    }


@pytest.mark.parametrize("column", COLUMNS)
def test_an_edited_event_is_found(ids: list[UUID], column: str) -> None:
    tamper(f"UPDATE audit_event SET {column} = {COLUMNS[column]} WHERE id = %s", ids[2])
    assert found() == (Cause.CHANGED, 3)
    assert verify(NORTH).event_id == ids[2]


def test_a_deleted_event_is_found(ids: list[UUID]) -> None:
    tamper("DELETE FROM audit_event WHERE id = %s", ids[3])
    assert found() == (Cause.MISSING, 4)


def test_an_event_deleted_with_its_seal_is_found(ids: list[UUID]) -> None:
    tamper("DELETE FROM audit_event WHERE id = %s", ids[3])
    tamper("DELETE FROM audit_seal WHERE event_id = %s", ids[3])
    assert found() == (Cause.SEAL_MISSING, 4)


def test_a_gap_that_was_closed_is_found(ids: list[UUID]) -> None:
    tamper("DELETE FROM audit_event WHERE id = %s", ids[3])
    tamper("DELETE FROM audit_seal WHERE event_id = %s", ids[3])
    tamper("UPDATE audit_seal SET seq = seq - 1 WHERE tenant_id = %s AND seq = 5", NORTH)
    tamper("UPDATE audit_seal SET seq = seq - 1 WHERE tenant_id = %s AND seq = 6", NORTH)
    assert found() == (Cause.REORDERED, 4)


def test_a_cut_end_is_found(ids: list[UUID]) -> None:
    tamper("DELETE FROM audit_event WHERE id = %s", ids[5])
    tamper("DELETE FROM audit_seal WHERE event_id = %s", ids[5])
    assert found() == (Cause.HEAD, 5)


def test_a_deleted_chain_is_found(ids: list[UUID]) -> None:
    tamper("DELETE FROM audit_event WHERE tenant_id = %s", NORTH)
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s", NORTH)
    assert found() == (Cause.HEAD, 0)


def test_an_event_put_in_is_found(ids: list[UUID]) -> None:
    tamper(
        "INSERT INTO audit_event SELECT gen_random_uuid(), tenant_id, 'proposal.approved', subject_type, subject_id,"
        " run_id, from_state, to_state, performed_by, on_behalf_of, via, owner, reason, request_id, digest, body, at,"
        " xid FROM audit_event WHERE id = %s",
        ids[1],
    )
    assert seal(db_clock) == 0
    verdict = verify(NORTH)
    assert (verdict.cause, verdict.event_id) == (
        Cause.NOT_SEALED,
        Event.objects.get(kind="proposal.approved").id,
    )


def test_an_event_put_in_out_of_the_sealers_sight_is_found(ids: list[UUID]) -> None:
    tamper(
        "INSERT INTO audit_event SELECT gen_random_uuid(), tenant_id, kind, subject_type, subject_id, run_id,"
        " from_state, to_state, performed_by, on_behalf_of, via, owner, reason, request_id, digest, body,"
        " at - interval '1 hour', 4000000000000000 FROM audit_event WHERE id = %s",
        ids[1],
    )
    assert seal(db_clock) == 0
    assert found() == (Cause.NOT_SEALED, None)


def test_a_forged_event_with_a_seal_at_the_end_is_found(ids: list[UUID]) -> None:
    tamper(
        "INSERT INTO audit_event SELECT gen_random_uuid(), tenant_id, 'forged', subject_type, subject_id, run_id,"
        " from_state, to_state, performed_by, on_behalf_of, via, owner, reason, request_id, digest, body, at, xid"
        " FROM audit_event WHERE id = %s",
        ids[1],
    )
    forged, last = Event.objects.get(kind="forged"), Seal.objects.get(tenant_id=NORTH, seq=6)
    tamper(
        "INSERT INTO audit_seal VALUES (%s, %s, 7, %s, %s, now())",
        forged.id, NORTH, last.hash, sealed_as(forged, 7, last.hash),
    )  # fmt: skip
    assert found() == (Cause.HEAD, 7)


def test_two_events_that_changed_places_are_found(ids: list[UUID]) -> None:
    tamper(
        "UPDATE audit_seal SET event_id = CASE WHEN event_id = %s THEN %s ELSE %s END WHERE event_id IN (%s, %s)",
        ids[1], UUID(int=99), ids[1], ids[1], ids[2],
    )  # fmt: skip
    tamper("UPDATE audit_seal SET event_id = %s WHERE event_id = %s", ids[2], UUID(int=99))
    assert found() == (Cause.REORDERED, 2)


def test_two_seals_that_changed_places_are_found(ids: list[UUID]) -> None:
    for place, to in ((2, -2), (3, 2), (-2, 3)):
        tamper("UPDATE audit_seal SET seq = %s WHERE tenant_id = %s AND seq = %s", to, NORTH, place)
    assert found() == (Cause.REORDERED, 2)


def test_an_edited_event_with_a_new_hash_is_found_by_the_next_one(ids: list[UUID]) -> None:
    tamper("UPDATE audit_event SET reason = 'other' WHERE id = %s", ids[2])
    before = Seal.objects.get(tenant_id=NORTH, seq=2)
    changed = sealed_as(Event.objects.get(id=ids[2]), 3, before.hash)
    tamper("UPDATE audit_seal SET hash = %s WHERE event_id = %s", changed, ids[2])
    assert found() == (Cause.CHANGED, 3)


def test_an_event_of_another_tenant_cannot_take_a_place(ids: list[UUID]) -> None:
    tamper("UPDATE audit_event SET tenant_id = %s WHERE id = %s", UUID(int=3), ids[2])
    assert (verify(NORTH).cause, verify(NORTH).seq) == (Cause.CHANGED, 3)


def test_a_quick_look_covers_the_last_links_only(ids: list[UUID]) -> None:
    tamper("UPDATE audit_event SET reason = 'other' WHERE id = %s", ids[1])
    assert verify(NORTH, last=3).holds
    assert verify(NORTH, last=5).seq == 2
    assert verify(NORTH, last=500).seq == 2


def test_the_command_says_it_and_exits_with_it() -> None:
    tenant = people.tenant("north")
    ids = write(tenant.id, 2)
    seal(db_clock)
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert "north: the chain holds. 3 events sealed" in out.getvalue()
    tamper("UPDATE audit_event SET reason = 'other' WHERE id = %s", ids[1])
    with pytest.raises(SystemExit) as ended:
        call_command("verify_audit", tenant="north", stdout=out)
    assert ended.value.code == 1
    assert f"north: THE CHAIN DOES NOT HOLD at event number 3, id {ids[1]} (changed)" in out.getvalue()
    assert verify_daily() is False


def sealed_as(event: Event, seq: int, previous: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {SELECT_CONTENT} FROM audit_event e WHERE id = %s", [event.id])
        content = content_of(cursor.fetchone())
    assert content is not None
    return link_hash(seq, previous, content)


def test_what_waits_for_its_seal_after_a_clock_stepped_back_is_not_left_behind() -> None:
    """Its time lies far before the last seal, and it was written a moment ago."""
    tenant = UUID(int=91)
    write(tenant, 2)
    seal(db_clock)
    [fresh] = write(tenant, 1)
    tamper("UPDATE audit_event SET at = at - interval '1 hour' WHERE id = %s", fresh)
    assert verify(tenant).holds
    tamper("UPDATE audit_event SET xid = 9000000000000000000 WHERE id = %s", fresh)
    assert verify(tenant).cause == Cause.NOT_SEALED, "of a transaction that no sealer ever comes to"
