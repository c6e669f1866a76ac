"""Token buckets: never more than the rate allows, in one process or several, whoever is killed."""

import os
import signal

import pytest

from common.rates import Buckets, Rate, RateLimited, buckets, check_rate
from tests.workflows.together import in_threads

TEN = Rate.of(10)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_allows_its_burst_and_then_its_rate() -> None:
    clock = Clock()
    table = Buckets(clock)
    assert [table.take("a", TEN) for _ in range(10)] == [0.0] * 10
    assert table.take("a", TEN) == pytest.approx(6.0)
    assert table.take("b", TEN) == 0.0
    clock.now += 6
    assert table.take("a", TEN) == 0.0
    assert table.take("a", TEN) > 0
    clock.now += 3600
    assert sum(table.take("a", TEN) == 0.0 for _ in range(50)) == 10


def test_no_limit_is_none() -> None:
    table = Buckets(Clock())
    assert {table.take("a", Rate.of(0)) for _ in range(1000)} == {0.0}


def test_threads_share_a_bucket() -> None:
    table = Buckets(Clock())
    taken = in_threads(8, lambda _: sum(table.take("a", Rate.of(100)) == 0.0 for _ in range(50)))
    assert sum(taken) == 100


def test_forked_processes_share_a_bucket_and_one_that_is_killed_holds_up_nobody() -> None:
    table = Buckets(Clock())
    before = table.take("a", Rate.of(5))
    children = []
    for number in range(3):
        pid = os.fork()
        if pid == 0:
            os._exit(
                sum(table.take("a", Rate.of(5)) == 0.0 for _ in range(5)) if number else _die_inside(table)
            )
        children.append(pid)
    codes = [os.waitpid(pid, 0)[1] for pid in children]
    assert before == 0.0
    assert codes[0] == signal.SIGKILL
    assert sum(os.waitstatus_to_exitcode(code) for code in codes[1:]) == 4
    assert table.take("a", Rate.of(5)) > 0


def _die_inside(table: Buckets) -> int:
    """Killed with the lock held."""
    import fcntl

    fcntl.lockf(table._file, fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def test_what_is_half_written_counts_as_full_and_never_as_more() -> None:
    table = Buckets(Clock())
    for _ in range(10):
        table.take("a", TEN)
    table._memory[:] = os.urandom(len(table._memory))
    assert sum(table.take("a", TEN) == 0.0 for _ in range(30)) <= 10


def test_a_full_table_forgets_the_one_that_was_quiet_for_longest() -> None:
    clock = Clock()
    table = Buckets(clock)
    for number in range(30_000):
        clock.now += 0.001
        assert table.take(f"key-{number}", TEN) == 0.0


def test_a_refusal_says_how_long_to_wait() -> None:
    assert buckets is not None
    check_rate("test-refusal", Rate(60, 1))
    with pytest.raises(RateLimited) as refused:
        check_rate("test-refusal", Rate(60, 1))
    assert refused.value.details == {"retry_after": 1}
