"""How a request names its tenant: in each of its transactions, and nowhere that the next request could find it."""

import threading
import time
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction
from psycopg.pq import TransactionStatus

from access.models import Group, User
from common.dbroles import RolesMixed, as_application, as_system, bind_tenant, end_reading
from common.longpoll import Waiters, wait_until
from common.models import Tenant
from common.pipelined import Question, ask
from common.tx import action
from tests.api.callers import automation, token_for
from tests.factories import make_group, make_tenant
from tests.tenants.planted import as_superuser

pytestmark = pytest.mark.django_db


@pytest.fixture
def two() -> tuple[Tenant, Tenant]:
    first, second = make_tenant("first"), make_tenant("second")
    make_group(first, "of the first")
    make_group(second, "of the second")
    return first, second


def names() -> list[str]:
    return list(Group.objects.values_list("name", flat=True))


def session() -> tuple[int, int]:
    """The server's process, and whether a transaction is open."""
    raw = connections["app"].connection
    return raw.info.backend_pid, raw.info.transaction_status


def setting() -> Any:
    with connections["app"].cursor() as cursor:
        cursor.execute("SELECT current_setting('placet.tenant', true)")
        return cursor.fetchone()[0]


def test_tenants_alternate_on_one_connection(two: tuple[Tenant, Tenant]) -> None:  # known mistake 23
    seen = []
    for tenant in (*two, *two):
        with as_application(tenant.pk):
            assert names() == [f"of the {tenant.slug}"]
        seen.append(session())
        assert setting() in ("", None)
    assert set(seen) == {(seen[0][0], TransactionStatus.IDLE)}


def test_requests_alternate_on_one_connection(two: tuple[Tenant, Tenant]) -> None:
    callers = [automation(token_for(tenant, f"agent-{tenant.slug}")) for tenant in two]
    for caller in (*callers, *callers):
        assert caller.get("/runs").status_code == 200
        assert session()[1] == TransactionStatus.IDLE
        assert setting() in ("", None)


@pytest.mark.parametrize("statement", ["SELECT 1 / 0", "DELETE FROM access_group WHERE 1 / 0 = 1"])
def test_nothing_is_left_after_an_error(two: tuple[Tenant, Tenant], statement: str) -> None:
    with pytest.raises(DatabaseError), as_application(two[0].pk):
        assert names() == ["of the first"]
        with connection.cursor() as cursor:
            cursor.execute(statement)
    assert session()[1] == TransactionStatus.IDLE
    with as_application(two[1].pk):
        assert names() == ["of the second"]


def test_reading_goes_on_after_an_error(two: tuple[Tenant, Tenant]) -> None:
    with as_application(two[0].pk):
        with pytest.raises(DatabaseError), connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        assert names() == ["of the first"]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_reads_that_go_together_are_of_the_tenant_and_end_together(
    two: tuple[Tenant, Tenant], at: int
) -> None:
    """First of all, on a connection that is not there yet too; and after an error in one of them."""
    ours = Question("SELECT name FROM access_group", [], lambda rows: [name for (name,) in rows])
    good = [ours, ours, ours]
    for known in (True, False):
        if not known:
            connections["app"].close()
        with as_application(two[1].pk):
            assert ask(*good) == [["of the second"]] * 3
            with pytest.raises(DatabaseError):
                ask(*good[:at], Question("SELECT 1 / 0", [], len), *good[at:])
            assert ask(*good) == [["of the second"]] * 3
            assert names() == ["of the second"]
        assert session()[1] == TransactionStatus.IDLE


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_what_was_to_be_prepared_behind_an_error_is_prepared_later(
    two: tuple[Tenant, Tenant], before: int
) -> None:
    """A statement is prepared when it comes for the third time; behind an error the server never heard of it."""
    ours = Question(f"SELECT name, {before} FROM access_group", [], len)
    with as_application(two[0].pk):
        for _ in range(before):
            ask(ours)
        for _ in range(2):
            with pytest.raises(DatabaseError, match="division by zero"):
                ask(Question("SELECT 1 / 0", [], len), ours)
        assert [ask(ours) for _ in range(4)] == [[1]] * 4


def test_an_action_is_a_transaction_of_its_own_in_the_tenant(two: tuple[Tenant, Tenant]) -> None:
    @action
    def rename() -> int:
        return Group.objects.update(name="renamed")

    with as_application(two[0].pk):
        assert names() == ["of the first"]
        assert rename() == 1
        assert names() == ["renamed"]
    assert sorted(names()) == ["of the second", "renamed"]


def test_reads_share_one_transaction_that_cannot_write(two: tuple[Tenant, Tenant]) -> None:
    with as_application(two[0].pk):
        begun = []
        for _ in range(2):
            with connection.cursor() as cursor:
                cursor.execute("SELECT now(), current_setting('transaction_read_only')")
                begun.append(cursor.fetchone())
        assert begun[0] == begun[1]
        assert begun[0][1] == "on"
        assert Group.objects.update(name="by itself") == 1  # a change outside of actions commits at once
        assert session()[1] == TransactionStatus.IDLE


def test_without_a_tenant_there_is_nothing(two: tuple[Tenant, Tenant]) -> None:
    with as_application():
        assert names() == []
        bind_tenant(two[1].pk)
        assert names() == ["of the second"]
        bind_tenant(two[0].pk)
        assert names() == ["of the first"]


def test_a_tenant_that_is_no_uuid_reaches_no_statement() -> None:
    with as_application("x'; SET ROLE postgres; --"), pytest.raises(ValueError, match="hexadecimal"):  # type: ignore[arg-type]
        names()


def test_the_system_role_is_never_inside_a_transaction_of_the_other(two: tuple[Tenant, Tenant]) -> None:
    with as_application(two[0].pk):
        with as_system():
            assert len(names()) == 2
        with transaction.atomic(), pytest.raises(RolesMixed), as_system():
            pass
        assert names() == ["of the first"]


def test_a_connection_that_died_between_requests_is_replaced(two: tuple[Tenant, Tenant]) -> None:
    with as_application(two[0].pk):
        assert names() == ["of the first"]
    before = session()[0]
    as_superuser("SELECT pg_terminate_backend(%s)", before)
    connections["app"].close_if_unusable_or_obsolete()  # as Django does when a request begins
    with as_application(two[1].pk):
        assert names() == ["of the second"]
    assert session()[0] != before


def test_who_waits_holds_no_transaction(two: tuple[Tenant, Tenant]) -> None:
    found: list[int] = []
    pid: list[int] = []

    def poll() -> None:
        with as_application(two[0].pk):
            names()
            pid.append(session()[0])
            wait_until(lambda: bool(found) or not names(), 10, places=Waiters(1))
        connections.close_all()

    thread = threading.Thread(target=poll)
    thread.start()
    states: set[str] = set()
    end = time.monotonic() + 8
    while time.monotonic() < end and "idle" not in states:
        if pid:
            states |= {
                state
                for (state,) in as_superuser("SELECT state FROM pg_stat_activity WHERE pid = %s", pid[0])
            }
        time.sleep(0.05)
    found.append(1)
    thread.join()
    assert "idle" in states


def test_end_reading_is_harmless_anywhere(two: tuple[Tenant, Tenant]) -> None:
    end_reading()
    with as_application(two[0].pk):
        end_reading()
        assert not User.objects.exists()
