"""The sealer: gapless numbers, one chain per tenant, in an order that fits cause and effect."""

import threading
from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

import psycopg
import pytest
from django.db import connection, transaction

from audit import sealer
from audit.actions import record_many
from audit.models import Event, Head, Seal, Watermark
from audit.sealer import seal
from audit.selectors import chain_state
from audit.tasks import seal as seal_task
from audit.verify import verify
from common.clock import db_clock
from common.ids import new_id
from tests.audit.events import entry, tamper, write, write_one

pytestmark = pytest.mark.django_db
NORTH, SOUTH = UUID(int=1), UUID(int=2)


def other_connection() -> psycopg.Connection:
    """The application role a second time, with transactions that the test ends itself."""
    parameters = connection.get_connection_params()
    names = ("host", "user", "dbname", "password", "port")
    return psycopg.connect(**{name: parameters[name] for name in names if name in parameters})


def in_thread(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def places(tenant_id: UUID) -> list[tuple[int, UUID]]:
    return list(Seal.objects.filter(tenant_id=tenant_id).order_by("seq").values_list("seq", "event_id"))


def test_each_tenant_is_numbered_from_one_without_gaps() -> None:
    north, south = write(NORTH, 3), write(SOUTH, 2)
    assert seal(db_clock) == 5
    more = write(NORTH, 2)
    assert seal(db_clock) == 2
    assert places(NORTH) == list(enumerate(north + more, start=1))
    assert places(SOUTH) == list(enumerate(south, start=1))
    assert Head.objects.get(tenant_id=NORTH).seq == 5
    assert Head.objects.get(tenant_id=NORTH).hash == Seal.objects.get(tenant_id=NORTH, seq=5).hash
    assert verify(NORTH).holds
    assert verify(SOUTH).holds


def test_every_link_names_the_one_before() -> None:
    write(NORTH, 4)
    seal(db_clock)
    seals = list(Seal.objects.order_by("seq"))
    assert seals[0].previous == "0" * 64
    assert [seal.previous for seal in seals[1:]] == [seal.hash for seal in seals[:-1]]


def test_nothing_to_do_writes_nothing() -> None:
    write(NORTH)
    assert (seal(db_clock), seal(db_clock)) == (1, 0)
    mark = Watermark.objects.get().sealed_below
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()")
    assert seal(db_clock) == 0
    assert Watermark.objects.get().sealed_below == mark


def test_more_events_than_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealer, "BATCH", 4)
    ids = write(NORTH, 13)
    assert seal(db_clock) == 13
    assert places(NORTH) == list(enumerate(ids, start=1))
    assert seal(db_clock) == 0


def test_an_event_waits_for_older_transactions_and_keeps_its_turn() -> None:
    """The slow one began first and comes first, though it commits last: nothing is numbered before it."""
    insert = (
        "INSERT INTO audit_event (id, tenant_id, kind, subject_type, subject_id, from_state, to_state, performed_by,"
        " on_behalf_of, via, owner, reason, request_id, digest, body)"
        " VALUES (%s, %s, 'slow.one', 'x', %s, '', '', 'user:1', '', 'session', 'person', '', '', '', '{}')"
    )
    slow_id = new_id()
    with other_connection() as slow:
        slow.execute(insert, [slow_id, NORTH, new_id()])
        quick = write(NORTH, 3)
        assert seal(db_clock) == 0
        assert chain_state(NORTH).unsealed == 3
        slow.commit()
    assert seal(db_clock) == 4
    assert places(NORTH) == list(enumerate([slow_id, *quick], start=1))


def test_cause_comes_before_effect_even_with_a_younger_transaction_number() -> None:
    """A transaction with a low number that waited for another one's row writes its event later, and is later."""
    with other_connection() as early:
        early.execute("SELECT pg_current_xact_id()")  # its number is the lowest
        cause = write(NORTH)
        early.execute(
            "INSERT INTO audit_event SELECT gen_random_uuid(), tenant_id, 'effect', subject_type, subject_id, run_id,"
            " from_state, to_state, performed_by, on_behalf_of, via, owner, reason, request_id, digest, body, at, xid"
            " FROM audit_event WHERE id = %s",
            cause,
        )
        early.commit()
    effect = Event.objects.get(kind="effect")
    assert effect.xid < Event.objects.get(id=cause[0]).xid
    assert seal(db_clock) == 2
    assert places(NORTH) == [(1, cause[0]), (2, effect.id)]


def test_one_sealer_at_a_time() -> None:
    write(NORTH, 2)
    with other_connection() as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [sealer.LOCK])
        assert seal(db_clock) == 0
    assert seal(db_clock) == 2


def test_writers_and_sealers_at_once_make_one_whole_chain() -> None:
    done = threading.Event()

    def keep_sealing() -> None:
        while not done.is_set():
            seal(db_clock)

    sealers = [in_thread(keep_sealing) for _ in range(2)]
    writers = [in_thread(lambda: write(NORTH, 60)) for _ in range(4)]
    for thread in writers:
        thread.join()
    done.set()
    for thread in sealers:
        thread.join()
    seal(db_clock)
    assert [seq for seq, _ in places(NORTH)] == list(range(1, 241))
    assert verify(NORTH).holds


def test_a_sealer_that_dies_leaves_nothing_half_done() -> None:
    write(NORTH, 3)

    def broken_clock() -> None:
        raise RuntimeError

    with suppress(RuntimeError):
        seal(broken_clock)
    assert not Seal.objects.exists()
    assert seal(db_clock) == 3


@pytest.mark.parametrize("old_xid", [3, 4_000_000_000_000])
def test_after_a_restore_into_another_cluster_nothing_is_lost(old_xid: int) -> None:
    """Transaction numbers begin anew there: rows from before may carry any number, below or above the new ones."""
    write(NORTH, 2)
    seal(db_clock)
    restored = write(NORTH, 2)
    tamper("UPDATE audit_event SET xid = %s WHERE id = ANY(%s)", old_xid, restored)
    tamper("UPDATE audit_watermark SET cluster = cluster + 1, sealed_below = 5000000000000")
    new = write(NORTH)
    assert seal(db_clock) == 3
    assert [event for _, event in places(NORTH)][2:] == [*restored, *new]
    assert verify(NORTH).holds
    write(NORTH)
    assert seal(db_clock) == 1


def test_a_body_without_a_canonical_form_stops_no_chain() -> None:
    """Only raw SQL can write one; it is sealed as its text."""
    odd = write_one(NORTH)
    tamper(
        """UPDATE audit_event SET body = '{"n": 123456789012345678901234567890, "x": 1e400}' WHERE id = %s""",
        odd,
    )
    write(NORTH, 2)
    assert seal(db_clock) == 3
    assert verify(NORTH).holds
    tamper(
        """UPDATE audit_event SET body = '{"n": 123456789012345678901234567891, "x": 1e400}' WHERE id = %s""",
        odd,
    )
    assert verify(NORTH).seq == 1


def test_the_state_of_a_chain() -> None:
    assert chain_state(NORTH).sealed == 0
    write(NORTH, 2)
    assert chain_state(NORTH).unsealed == 2
    assert seal_task() == 2
    with transaction.atomic():
        record_many([entry(NORTH)])
    state = chain_state(NORTH)
    assert (state.sealed, state.unsealed, state.head_hash) == (2, 1, Head.objects.get().hash)
    assert state.sealed_at is not None


# -- a chain that somebody has damaged --------------------------------------------------------------------------------


def test_a_damaged_chain_stops_no_other(transactional_db: None) -> None:
    """A seal in the next place, put there by somebody: this chain takes no event, and the others go on."""
    damaged, other = UUID(int=71), UUID(int=72)
    write(damaged, 1)
    seal(db_clock)
    tamper(
        "INSERT INTO audit_seal (event_id, tenant_id, seq, previous, hash, sealed_at)"
        " VALUES (gen_random_uuid(), %s, 2, repeat('0', 64), repeat('b', 64), now())", damaged,
    )  # fmt: skip
    write(damaged, 2)
    write(other, 3)
    assert seal(db_clock) == 3
    assert Seal.objects.filter(tenant_id=other).count() == 3
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s AND seq = 2", damaged)
    write(other, 1)
    assert seal(db_clock) == 3, "nothing of the damaged one was passed over"
    assert verify(damaged).holds and verify(other).holds


def test_a_clock_that_steps_back_turns_no_cause_and_effect(transactional_db: None) -> None:
    """Sealed at once: the second was written after the first, and an hour before it by its clock."""
    tenant = UUID(int=73)
    first, second = write(tenant, 1)[0], write(tenant, 1)[0]
    tamper("UPDATE audit_event SET at = at - interval '1 hour' WHERE id = %s", second)
    assert seal(db_clock) == 2
    assert list(Seal.objects.filter(tenant_id=tenant).order_by("seq").values_list("event_id", flat=True)) == [
        first, second,
    ]  # fmt: skip
