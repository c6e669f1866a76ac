"""Things that happen in the same instant: threads that start together, each with a connection of its own."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.db import connections

from common.errors import Refused


def in_threads(count: int, do: Callable[[int], Any]) -> list[Any]:
    """Run ``do(number)`` in ``count`` threads; their results in order, exceptions included."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        try:
            barrier.wait(20)
            results[number] = do(number)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results[number] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def at_once(count: int, do: Callable[[int], Any]) -> Counter[str]:
    """How often each answer came: a result as text, or the code of a refusal. What else is raised is raised here."""
    answers: Counter[str] = Counter()
    for result in in_threads(count, do):
        if isinstance(result, Exception) and not isinstance(result, Refused):
            raise result
        answers[result.code if isinstance(result, Refused) else str(result)] += 1
    return answers
