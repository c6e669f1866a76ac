"""All checks, one after the other; none keeps another from being made."""

from collections.abc import Iterator
from typing import Final

from django.db import Error

from common import away
from config import observed
from config.doctor import database, people, processes, settings, telling, work
from config.doctor.findings import Check, Diagnosis, Level, problem

WITHOUT_DATABASE: Final[tuple[Check, ...]] = (*settings.CHECKS, database.disk, processes.broker)
WITH_DATABASE: Final[tuple[Check, ...]] = (
    *database.CHECKS, *processes.CHECKS, *work.CHECKS, *people.CHECKS, *telling.CHECKS,
)  # fmt: skip


def examine() -> Iterator[Diagnosis]:
    """What each check found, in an order in which it makes sense to put things right."""
    for check in WITHOUT_DATABASE:
        yield from _made(check)
    why = database.reachable()
    if why:
        do = "Start PostgreSQL, or correct DATABASE_URL. The other checks need it and were not made."
        yield Diagnosis("database", problem(f"The database does not answer: {why}", do))
        return
    for check in WITH_DATABASE:
        yield from _made(check, in_time=True)


def _made(check: Check, *, in_time: bool = False) -> list[Diagnosis]:
    name = check.__name__
    try:
        if in_time:
            with observed.reading():
                return [Diagnosis(name, finding) for finding in check()]
        return [Diagnosis(name, finding) for finding in check()]
    except (Error, OSError) as error:
        away.drop_failed_connection()
        what = type(error).__name__
        return [Diagnosis(name, problem(f"This could not be looked at ({what}).", "See the other findings."))]


def exit_code(found: list[Diagnosis]) -> int:
    """0: all is well; 1: there are warnings; 2: there are problems."""
    levels = {diagnosis.finding.level for diagnosis in found}
    return 2 if Level.PROBLEM in levels else 1 if Level.WARNING in levels else 0
