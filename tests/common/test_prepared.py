"""Statements of ours on a connection that the server has cut meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, close_old_connections, connection, transaction

from common.pipelined import Question, ask
from common.prepared import fetch
from common.tx import action
from tests.workflows.later import as_superuser

_CUT = "SELECT pg_terminate_backend(%s, 5000)"


def by_a_pipeline() -> Any:
    return ask(Question("SELECT 7", [], lambda rows: rows[0][0]))[0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("read", [lambda: fetch("SELECT 7")[0][0], by_a_pipeline])
def test_the_first_statement_of_a_request_gets_a_new_connection(read: Callable[[], Any]) -> None:
    """A server that was restarted, or whose settings were changed, has cut what was idle; nobody is told *not now*."""
    assert read() == 7
    _cut()
    close_old_connections()  # as at the beginning of each request
    assert read() == 7


def _cut() -> None:
    as_superuser(_CUT, fetch("SELECT pg_backend_pid()")[0][0])
    assert connection.connection is not None


class Undone(Exception):
    """So that what was begun is rolled back."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("before", [0, 1, 2, 3])
@pytest.mark.parametrize("inside", ["no action", "an action", "a savepoint"])
def test_what_was_to_be_prepared_behind_an_error_is_prepared_later(before: int, inside: str) -> None:
    """A statement is prepared when it comes for the third time; behind an error the server never heard of it."""
    ours = Question(f"SELECT {before} + {len(inside)}", [], lambda rows: rows[0][0])

    def fail() -> None:
        with pytest.raises(DatabaseError, match="division by zero"):
            ask(Question("SELECT 1 / 0", [], len), ours)
        if inside != "no action":
            raise Undone

    @action
    def go_on_after_a_savepoint() -> None:
        with pytest.raises(Undone), transaction.atomic():
            fail()
        assert ask(ours) == [before + len(inside)]

    connection.close()
    for _ in range(before):
        ask(ours)
    for _ in range(2):
        if inside == "a savepoint":
            go_on_after_a_savepoint()
        elif inside == "an action":
            with pytest.raises(Undone):
                action(fail)()
        else:
            fail()
    assert [ask(ours)[0] for _ in range(4)] == [before + len(inside)] * 4
