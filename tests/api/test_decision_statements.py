"""What a decision costs the database: everything that it waits for, the person waits for, and so does the action."""

from typing import Any

import pytest
from django.db import connections

from tests.api.callers import as_json, decision_body
from tests.api.conftest import World
from tests.database import captured_queries

pytestmark = pytest.mark.django_db

MOST = 17
"""Three to know who asks, the rest between BEGIN and COMMIT. One more is to be thought about."""


def test_an_approval_is_few_statements_and_none_comes_twice(world: World) -> None:
    proposal = world.proposed()
    body = decision_body(world.view(proposal))
    made: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        made.append(" ".join(sql.split()))
        return execute(sql, *rest)

    with connections["app"].execute_wrapper(note), connections["system"].execute_wrapper(note):
        assert as_json(world.ada.post(f"/proposals/{proposal['id']}/decisions", body))["result"] == "approved"
    assert len(made) <= MOST, "\n".join(made)
    assert len(set(made)) == len(made), "\n".join(sorted(made))
    for table in ("approvals_proposal", "workflows_run", "workflows_step"):
        assert sum(f" FROM {table} r " in sql for sql in made) == 1, f"{table} is read twice"


def test_nothing_is_read_after_the_commit(world: World) -> None:
    """The worker was rung for at the commit; what this process does then, it does in the worker's way."""
    proposal = world.proposed()
    body = decision_body(world.view(proposal))
    with captured_queries("system", "app") as seen:
        as_json(world.ada.post(f"/proposals/{proposal['id']}/decisions", body))
    assert seen[-1].captured_queries[-1]["sql"] == "COMMIT"
