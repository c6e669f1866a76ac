"""Statements of ours on a connection that the server has cut meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import close_old_connections, connection

from common.pipelined import Question, ask
from common.prepared import fetch
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
