"""What was measured, for people: a table, and what became of the goals. Facts, not assertions."""

from collections.abc import Iterator
from typing import Any

GOAL_THROUGHPUT, GOAL_LATENCY, GOAL_FLAT, GOAL_PAGE_MS = 0.4, 3.0, 1.5, 50.0
GOAL_HISTORY_PAGES = 500
"""Pages of the database that are read for a page of the history, whatever it is narrowed by."""


def verdicts(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each goal: the figure, the limit, and whether it was met."""
    return [*_throughput(found), *_latency(found), *_claims(found), *_lists(found), *_history(found)]


def _throughput(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for processes, measured in found.get("throughput", {}).items():
        for kind in ("backlog", "pipeline"):
            if isinstance(measured, dict):
                ratio = measured[kind]["ratio_to_bare_1"]
                goal = f"{kind}, {processes} processes: at least {GOAL_THROUGHPUT} of the bare loop"
                yield _verdict(goal, ratio, ratio >= GOAL_THROUGHPUT)


def _latency(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, ratio in found.get("latency", {}).get("ratio_to_bare", {}).items():
        goal = f"latency {name.removesuffix('_ms')}: at most {GOAL_LATENCY:g} times the bare loop's"
        yield _verdict(goal, ratio, ratio <= GOAL_LATENCY)


def _claims(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for what in ("p50", "pages"):
        ratio = found.get("claims", {}).get(f"ratio_{what}_last_to_first")
        if ratio is not None:
            goal = f"claim {what}, most to fewest ready: flat (at most {GOAL_FLAT:g} times)"
            yield _verdict(goal, ratio, ratio <= GOAL_FLAT)


def _lists(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    measured = found.get("lists", {})
    counts = [name for name in measured if name.isdigit()]
    if counts:
        p50, ratio = (
            measured[counts[-1]]["review_queue"]["p50_ms"],
            measured["ratio_last_to_first"]["review_queue"],
        )
        yield _verdict(
            f"a page of the queue, most waiting: at most {GOAL_PAGE_MS:g} ms", p50, p50 <= GOAL_PAGE_MS
        )
        yield _verdict(f"and at most {GOAL_FLAT:g} times as with the fewest", ratio, ratio <= GOAL_FLAT)


def _history(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    plans = found.get("history", {}).get("plans", {})
    if plans:
        most = max(plan["pages"] for plan in plans.values())
        read = sum(bool(plan["read_from_end_to_end"]) for plan in plans.values())
        goal = f"a page of the history by any filter: at most {GOAL_HISTORY_PAGES} pages of the database"
        yield _verdict(goal, most, most <= GOAL_HISTORY_PAGES)
        yield _verdict("and filters for which a table is read from end to end: none", read, read == 0)


def _verdict(goal: str, figure: float, met: bool) -> dict[str, Any]:
    return {"goal": goal, "figure": figure, "met": met}


def table(found: dict[str, Any]) -> str:
    """A line for each figure; nested measures are named by their path."""
    lines = [line for name, value in found.items() if name != "verdicts" for line in _lines(name, value)]
    lines += [
        (f"{'met    ' if verdict['met'] else 'not met'} {verdict['goal']}", _text(verdict["figure"]))
        for verdict in found.get("verdicts", ())
    ]
    width = max((len(name) for name, _ in lines), default=0)
    return "\n".join(f"{name:<{width}}  {text:>12}" for name, text in lines)


def _lines(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _lines(f"{path} / {name}", part)
    elif isinstance(value, int | float):
        yield path, _text(value)


def _text(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.3f}" if value < 10 else f"{value:,.1f}"
