"""What executing costs the database: an upper bound that somebody has to raise who makes it dearer."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from common.prepared import PREPARE_FROM, fetch
from tests.workflows.conftest import Desk
from workflows import sweep
from workflows.enums import Lane
from workflows.models import Command
from workflows.worker.batch import calls as batch_calls
from workflows.worker.batch import round as batch_round
from workflows.worker.loop import BATCH

pytestmark = pytest.mark.django_db
OF_A_ROUND = 38
"""Three transactions: claim, sent, stored; of one command as of many, when their answers come together."""
OF_NOTHING = 4
"""The setting for the look, the look and its clock, and the look at all lanes."""


@contextmanager
def counted() -> Generator[list[str]]:
    seen: list[str] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        yield seen


@pytest.mark.parametrize("count", [1, BATCH])
def test_a_round_costs_no_more_statements_for_more_commands(
    desk: Desk, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_at_once(sent: Any) -> list[Any]:
        return [[batch_calls._call(one) for one in sent]]

    monkeypatch.setattr(batch_round, "call_together", all_at_once)
    for order in range(count):
        desk.approved(order=str(order))
    with counted() as seen:
        assert desk.work() == count
    assert Command.objects.filter(status="confirmed").count() == count
    assert len(seen) <= OF_A_ROUND, "\n".join(seen)


_PLANNED_ANEW = """
    SELECT statement FROM pg_prepared_statements WHERE custom_plans > 0 AND statement ~ 'FROM|UPDATE|INSERT'
"""


@pytest.mark.django_db(transaction=True)
def test_a_statement_of_a_round_is_planned_once(desk: Desk) -> None:
    """Also one that takes arrays. Planning some anew in each round took a fifth of the database's time."""
    rounds = PREPARE_FROM + 3
    for order in range(rounds):
        desk.approved(order=str(order))
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    for _ in range(rounds):
        assert desk.work(limit=1) == 1
    assert fetch("SELECT count(*) FROM pg_prepared_statements WHERE generic_plans > 1")[0][0] > 20
    assert fetch(_PLANNED_ANEW) == []


def test_one_look_says_that_nothing_else_is_due(desk: Desk) -> None:
    with counted() as seen:
        assert sweep.drain() == 0
    assert len(seen) == OF_NOTHING, "\n".join(seen)


@pytest.mark.parametrize("lane", Lane)
def test_what_is_due_in_any_lane_is_found_beside_a_new_command(desk: Desk, lane: Lane) -> None:
    """Of the lanes that a worker looks after; what lost its worker goes in a round of its own."""
    new, other = desk.approved(), desk.approved(order="another")
    Command.objects.filter(pk=other.pk).update(lane=lane)
    sweep.drain()
    assert Command.objects.get(pk=new.pk).status == "confirmed"
    assert Command.objects.get(pk=other.pk).status == ("confirmed" if lane in sweep.LANES else "ready")
