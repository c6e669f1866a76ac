"""Signs of life: written rarely, beside the work, and never in its way."""

from collections.abc import Callable

import pytest
from django.db import connection, connections, transaction

from common.heartbeat import EVERY_S, Pulse, note, process_name
from common.models import Heartbeat
from tests.workflows.later import as_superuser

pytestmark = pytest.mark.django_db


class Hands:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hands() -> Hands:
    return Hands()


def test_it_is_written_once_in_a_few_seconds(
    hands: Hands, django_assert_num_queries: Callable[[int], object]
) -> None:
    pulse = Pulse(hands)
    assert pulse.beat("sweep", ["refunds.issue@1"])
    first = Heartbeat.objects.get()
    assert (first.kind, first.name, first.knows) == ("sweep", process_name(), ["refunds.issue@1"])
    with django_assert_num_queries(0):
        assert not pulse.beat("sweep")
    hands.now += EVERY_S
    with django_assert_num_queries(1):
        assert pulse.beat("sweep", [])
    again = Heartbeat.objects.get()
    assert again.started_at == first.started_at
    assert again.seen_at > first.seen_at
    assert again.knows == []


def test_within_a_transaction_nothing_is_written(hands: Hands) -> None:
    pulse = Pulse(hands)
    with transaction.atomic():
        assert not pulse.beat("sweep")
    assert not Heartbeat.objects.exists()
    assert pulse.beat("sweep"), "and the next one is not put off"


def test_each_kind_has_its_own(hands: Hands) -> None:
    pulse = Pulse(hands)
    assert pulse.beat("worker")
    assert pulse.beat("beat")
    assert set(Heartbeat.objects.values_list("kind", flat=True)) == {"worker", "beat"}


def test_processes_that_are_long_gone_are_forgotten_and_backups_are_not(hands: Hands) -> None:
    for kind, name in (("sweep", "old-1"), ("worker", "old-2"), ("backup", "nightly")):
        note(kind, name)
    as_superuser("UPDATE common_heartbeat SET seen_at = seen_at - interval '2 days'")
    note("sweep", "young-3")
    Pulse(hands).beat("sweep")
    assert set(Heartbeat.objects.values_list("name", flat=True)) == {
        process_name(), "young-3", "old-2", "nightly",
    }  # fmt: skip


def test_a_table_that_is_not_there_stops_nobody(hands: Hands) -> None:
    """As in a process of the new release that starts before its migration."""
    as_superuser("ALTER TABLE common_heartbeat RENAME TO elsewhere")
    try:
        assert not Pulse(hands).beat("sweep")
    finally:
        as_superuser("ALTER TABLE elsewhere RENAME TO common_heartbeat")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    connections.close_all()
