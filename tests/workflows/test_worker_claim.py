"""Who may take what: targets, versions, providers' limits, races between claimers, slow batches."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from common.clock import db_clock
from tests.workflows import toy
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, as_superuser, fresh
from tests.workflows.together import in_threads
from tests.workflows.toy import NOTHING_CAME, PAID, ToyPay
from workflows.authoring import Observation
from workflows.enums import Lane
from workflows.models import Attempt, Command
from workflows.worker import loop, work
from workflows.worker.claim import IN_ORDER, Claim, claim_commands

pytestmark = pytest.mark.django_db


def claims(limit: int = 10, lane: Lane = Lane.NEW) -> list[Claim]:
    return claim_commands(limit=limit, lane=lane, worker="one", by=SWEEP, clock=db_clock)


def other_key(command: Command) -> None:
    """Another business key, so that a second action on the same target may be approved."""
    as_superuser("UPDATE workflows_command SET business_key = id::text WHERE id = %s", command.pk)


def two_on_one_target(desk: Desk) -> tuple[Command, Command]:
    first = desk.approved()
    other_key(first)
    second = desk.approved()
    other_key(second)
    return first, second


def test_two_commands_of_one_target_are_never_in_flight_together(desk: Desk) -> None:
    first, second = two_on_one_target(desk)
    [claim] = claims()
    assert claim.command_id == first.pk
    assert claims() == []
    desk.till.answers = [NOTHING_CAME]
    loop.execute(claim, by=SWEEP, clock=db_clock)
    assert fresh(first).status == "unknown"
    assert claims() == []  # not while the first one's outcome is not known either
    assert fresh(second).status == "ready"


def test_the_second_of_a_target_goes_on_when_the_first_has_ended(desk: Desk) -> None:
    first, second = two_on_one_target(desk)
    assert desk.work() == 1
    assert desk.work() == 1
    assert {fresh(first).status, fresh(second).status} == {"confirmed"}
    assert len(desk.till.calls) == 2


def test_claimers_that_race_take_each_command_once(desk: Desk) -> None:
    """Field report A5, with the crossing targets that make two claimers wait for each other."""
    for order in ("1", "2", "3", "4"):
        other_key(desk.approved(order=order))
        other_key(desk.approved(order=order))
    results = in_threads(6, lambda _: claims(limit=3))
    assert [error for error in results if isinstance(error, Exception)] == []
    taken = [claim.command_id for result in results for claim in result]
    assert len(taken) == len(set(taken))
    targets = [fresh_target(pk) for pk in taken]
    assert len(targets) == len(set(targets))
    assert Attempt.objects.count() == len(taken) >= 3


def fresh_target(pk: Any) -> str:
    return Command.objects.get(pk=pk).target


def test_two_workers_at_once_make_one_call_each(desk: Desk) -> None:
    """Field report A7."""
    for order in range(8):
        desk.approved(order=str(order))
    assert sum(in_threads(4, lambda _: work())) == 8
    assert sorted(call.arguments.order for call in desk.till.calls) == [str(order) for order in range(8)]


def test_a_version_that_this_code_does_not_know_is_not_claimed(desk: Desk) -> None:
    command = desk.approved()
    as_superuser("UPDATE workflows_command SET operation_version = 2 WHERE id = %s", command.pk)
    assert claims() == []
    assert (fresh(command).status, fresh(command).claims) == ("ready", 0)


def test_lanes_are_separate(desk: Desk) -> None:
    command = desk.approved()
    as_superuser("UPDATE workflows_command SET lane = 'reprocess' WHERE id = %s", command.pk)
    assert claims() == []
    assert [claim.command_id for claim in claims(lane=Lane.REPROCESS)] == [command.pk]


def test_a_provider_at_its_limit_does_not_stand_before_the_others(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for order in range(4):
        desk.approved(order=str(order))
    monkeypatch.setattr(ToyPay, "most_in_flight", 2)
    assert len(claims(limit=3)) == 2
    other = desk.approved(order="9")
    as_superuser("UPDATE workflows_command SET provider = 'another' WHERE id = %s", other.pk)
    assert [claim.command_id for claim in claims(limit=1)] == [other.pk]
    assert claims(limit=3) == []


def test_an_error_in_one_command_leaves_the_others_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field report O12."""
    bad, good = desk.approved(order="1"), desk.approved(order="2")
    real = ToyPay.earlier_effects

    def breaks(self: ToyPay, site: Any, arguments: Any) -> Any:
        if arguments.order == "1":
            raise ValueError("a bug")
        return real(self, site, arguments)

    monkeypatch.setattr(ToyPay, "earlier_effects", breaks)
    assert desk.work() == 2
    assert (fresh(bad).status, fresh(good).status) == ("claimed", "confirmed")


def test_what_slow_calls_leave_no_time_for_is_given_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.PLACET_CALLS_AT_ONCE = 1
    commands = [desk.approved(order=str(order)) for order in range(3)]
    monkeypatch.setattr(loop, "LEASE", timedelta(seconds=0.2))
    import time

    def slow(_: Any) -> Observation:
        time.sleep(0.15)
        return PAID

    desk.till.answers = [slow]
    assert desk.work() == 3
    assert [fresh(command).status for command in commands] == ["confirmed", "ready", "ready"]
    assert [attempt.outcome for attempt in Attempt.objects.filter(command=commands[2])] == ["given_back"]
    monkeypatch.undo()
    assert desk.work() == 2
    assert len(toy.till.calls) == 3


def test_the_look_goes_along_the_index_however_few_are_ready(desk: Desk) -> None:
    """By itself the planner looks at all that are ready, up to some thousands, and sorts them."""
    desk.approved()
    seen: list[tuple[str, Any]] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        assert len(claims()) == 1
    [(look, parameters)] = [one for one in seen if "SKIP LOCKED" in one[0] and "workflows_command" in one[0]]
    setting = next(place for place, (sql, _) in enumerate(seen) if sql == IN_ORDER.sql)
    assert setting < seen.index((look, parameters))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(IN_ORDER.sql)
        cursor.execute(f"EXPLAIN {look}", parameters)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Scan using workflows_command_claimable" in plan
    assert "Seq Scan on workflows_command c" not in plan
