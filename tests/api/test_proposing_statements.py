"""What proposing costs the database: a queue that people work on is filled by programs, and they do not wait."""

from typing import Any

import pytest
from django.db import connections

from tests.api.conftest import World

pytestmark = pytest.mark.django_db

MOST = 43
"""Four to know the token, two to know the event and the limits, six for the answer, the rest in the action."""


def test_a_proposal_is_few_statements_and_none_is_planned_anew(world: World) -> None:
    """What is the same each time has the server prepare it: all but what makes the key of the run's contents."""
    for number in range(4):
        world.proposed(f"k-{number}")
    made: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        made.append(" ".join(sql.split()))
        return execute(sql, *rest)

    with connections["app"].execute_wrapper(note), connections["system"].execute_wrapper(note):
        world.proposed("k-last")
    assert len(made) <= MOST, "\n".join(made)
    assert len(set(made)) == len(made) - 1, "\n".join(sorted(made))  # the clock is read before and after
    # Django's own statements quote each name. They are written, read and planned anew each time.
    assert [sql for sql in made if sql.startswith(('SELECT "', 'INSERT INTO "'))] == []
