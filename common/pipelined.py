"""Several statements on one way to the database and back, where none needs what another one found.

Each way costs both sides more than many a statement, and a worker that waits for its answer keeps its locks meanwhile.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from django.db import Error, connection, models

from common.clock import Clock, db_clock
from common.dbroles import begin_reading
from common.prepared import Reading, cursor, healthy

R = TypeVar("R")
Made = TypeVar("Made")
Row = TypeVar("Row", bound=models.Model)
Rows = list[tuple[Any, ...]]


@contextmanager
def pipeline() -> Generator[None]:
    """What is executed in this block is sent at once. What it found may be read when the block is left.

    The database works as ever: one after another in their order, each sees what was committed before it began, and
    after an error none of the others. That error is raised here, at the latest when the block is left.
    """
    raw = healthy()
    with connection.wrap_database_errors, raw.pipeline():
        yield


@dataclass(frozen=True, slots=True)
class Question(Generic[R]):
    """A statement, and what its rows are made into."""

    sql: str
    parameters: Sequence[Any] | Mapping[str, Any]
    read: Callable[[Rows], R]


def rows_of(reading: Reading[Row], *parameters: Any) -> Question[list[Row]]:
    return Question(reading.statement, parameters, reading.read)


def then(question: Question[R], make: Callable[[R], Made]) -> Question[Made]:
    """The same question, whose answer is made into something else."""
    return Question(question.sql, question.parameters, lambda rows: make(question.read(rows)))


def first_of(sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> Question[Any]:
    """The first column of the first row; None where there is none."""
    return Question(sql, parameters, lambda rows: rows[0][0] if rows else None)


def ask(*questions: Question[Any]) -> list[Any]:
    """The answers, in the order of the questions.

    After an error the driver holds for prepared what stood behind it, of which the server never heard. An action's
    rollback forgets that; outside of actions the connection is closed, and with it what was left of a transaction that
    only reads.
    """
    begin_reading()
    try:
        return _answers(questions)
    except Error:
        if not connection.in_atomic_block:
            connection.close()
        raise


def _answers(questions: Sequence[Question[Any]]) -> list[Any]:
    with ExitStack() as stack:
        running = [stack.enter_context(cursor()) for _ in questions]
        with pipeline():
            for one, question in zip(running, questions, strict=True):
                one.execute(question.sql, question.parameters)
        return [question.read(one.fetchall()) for one, question in zip(running, questions, strict=True)]


PLANNED_ONCE: Final[Question[None]] = Question(
    "SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)",
    [], lambda rows: None,
)  # fmt: skip
"""For the rest of the transaction, first of all: what is prepared is planned once on a connection, and by its indexes.

Else statements that take arrays are planned anew each time, because a plan that knows how long they are looks cheaper
than it is to make. A plan that is kept must not read a table from end to end because that was empty when it was made.
"""

_TIME: Final[Question[datetime]] = Question("SELECT clock_timestamp()", [], lambda rows: rows[0][0])


def ask_then_time(clock: Clock, *questions: Question[Any]) -> tuple[list[Any], datetime]:
    """The answers, and the time after the last of them: of what locks, after every lock was had.

    It is a statement of its own, as `db_clock` demands, but goes the same way as the others.
    """
    if clock is not db_clock:
        return ask(*questions), clock()
    *answers, now = ask(*questions, _TIME)
    return answers, now
