"""The model bites: each rule, broken in the way that such systems are usually broken, is found out by a life.

A suite that stays green with a broken rule proves nothing about the rule. The seeds are fixed, so this is stable.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model import world as world_module
from tests.model.test_lives import Lives
from tests.model.test_scenarios import (
    test_late_no_to_an_earlier_attempt_says_nothing_about_the_last as a_life,
)
from tests.model.world import World
from workflows import settling
from workflows.classify import Meaning
from workflows.enums import CommandStatus
from workflows.settling import Move, Settlement


def a_lost_lease_is_sent_again_blindly(command: Any) -> Move:
    return Move.FREE


def a_timeout_is_a_failure(command: Any, meaning: Meaning, *, may_retry: bool) -> Move:
    move = settling.after_answer(command, meaning, may_retry=may_retry)
    return Move.GIVE_UP if move is Move.LOSE_TRACK and not command.resent else move


def not_found_counts_at_once(finding: str, *, settled: bool) -> Move:
    return settling.after_lookup(finding, settled=True)


def a_late_no_counts_from_any_attempt(command: Any, meaning: Meaning, *, of_last_attempt: bool) -> Move:
    return settling.after_late_answer(command, meaning, of_last_attempt=True)


def nothing_is_checked_again(**facts: Any) -> Settlement:
    return Settlement(Move.SEND)


def keys_are_remembered_for_ever(command: Any, **facts: Any) -> bool:
    return command.status == CommandStatus.UNKNOWN


MUTANTS: list[tuple[str, Callable[..., Any]]] = [
    ("after_lease", a_lost_lease_is_sent_again_blindly),
    ("after_answer", a_timeout_is_a_failure),
    ("after_lookup", not_found_counts_at_once),
    ("before_send", nothing_is_checked_again),
    ("may_send_again", keys_are_remembered_for_ever),
]


@pytest.mark.parametrize(("rule", "mutant"), MUTANTS, ids=[mutant.__name__ for _, mutant in MUTANTS])
def test_a_broken_rule_is_found_out(
    rule: str, mutant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world_module, rule, mutant)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Lives, settings=quick)


def test_a_late_no_that_counts_from_any_attempt_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random lives find it too, but take a minute: here is the life that they found."""
    monkeypatch.setattr(world_module, "after_late_answer", a_late_no_counts_from_any_attempt)
    with pytest.raises(AssertionError):
        a_life(World())


quick = settings(
    max_examples=1500, stateful_step_count=60, deadline=None, derandomize=True, database=None,
    phases=[Phase.generate], suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
)  # fmt: skip
