"""What the newest similar packets have in common, as one line: whether it is this case, or something around it."""

from collections import Counter
from collections.abc import Iterable

from common import spans
from repair.packet.case import Case
from repair.packet.texts import said
from repair.tables import settled_words
from workflows.models import Command
from workflows.screens.words import code_words


def in_common(case: Case) -> str:
    """Empty where there is none; of one alone, how it ended stands in the list."""
    others = list(case.similar)
    if len(others) < 2:
        return ""
    since = (others[0].opened_at - others[-1].opened_at).total_seconds()
    told = [
        f"the newest {len(others)} lie within {spans.span(since)}",
        _all("workflow", (f"{it.run.workflow}, version {it.run.workflow_version}" for it in others)),
        _all("step", (it.step for it in others)), *_of_orders(case),
        _most(settled_words(it.resolution) for it in others if it.ended_at),
    ]  # fmt: skip
    return "; ".join(part for part in told if part) + "."


def _of_orders(case: Case) -> list[str]:
    """One statement, however many there are."""
    ids = [it.command_id for it in case.similar if it.command_id]
    rows = list(Command.objects.filter(tenant_id=case.packet.tenant_id, pk__in=ids))
    if len(rows) < len(case.similar):
        return []
    codes = (code_words(row.failure_code or row.void_reason) for row in rows)
    return [_all("target", (said(row.target) for row in rows)), _all("provider’s word", map(said, codes))]


def _all(name: str, values: Iterable[str]) -> str:
    found = set(values)
    value = found.pop() if len(found) == 1 else ""
    return f"the same {name}: {value}" if value else ""


def _most(ends: Iterable[str]) -> str:
    """How most of those that are closed ended."""
    counted = Counter(ends).most_common(1)
    return f"{counted[0][1]} ended so: {counted[0][0].rstrip('.')}" if counted else ""
