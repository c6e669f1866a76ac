"""The report as Markdown that people paste into a ticket. Texts from outside and of people mean nothing in it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from repair.packet.markdown import code

Document = Mapping[str, Any]
_FACTS: Final = (
    ("What looked wrong", "trouble"), ("State", "status"), ("Cause", "cause"), ("Hypothesis", "hypothesis"),
    ("What was changed", "remedy"), ("The signal that it worked", "signal"), ("Owner", "owner"),
    ("Opened by", "opened_by"), ("Opened", "opened_at"), ("Contained", "contained_at"), ("Closed", "closed_at"),
    ("Id", "id"),
)  # fmt: skip


def markdown(document: Document) -> str:
    """The whole report in a fixed order; parts that are not there are left out."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield "# Incident"
    yield ""
    yield from _table([(name, document["incident"][member]) for name, member in _FACTS])
    yield from _heading("What the runs have in common")
    yield from _table([(row["name"], row["value"]) for row in document["criteria"]])
    yield from _points("What is unfinished", document["unfinished"])
    yield from _counts(document["runs"])
    yield from _rows("Freezes", document["freezes"])
    yield from _rows("Runs that stand for the others", document["traces"])
    for pair in document["differences"]:
        yield from _difference(pair)
    yield from _rows("Runs that it touched", document["affected"])
    yield from _rows("What was done", document["history"])
    yield ""
    yield f"Made at {code(document['made_at'])}, format {code(document['format'])}."


def _heading(title: str) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""


def _table(rows: Sequence[tuple[str, Any]]) -> Iterator[str]:
    yield "| What | Value |"
    yield "|---|---|"
    for name, value in rows:
        if value not in (None, ""):
            yield f"| {name} | {code(value)} |"


def _points(title: str, points: Sequence[str]) -> Iterator[str]:
    if points:
        yield from _heading(title)
        yield from (f"- {code(point)}" for point in points)


def _counts(runs: Document) -> Iterator[str]:
    yield from _heading("How far it is worked off")
    more = " More fit than an incident holds." if runs["more_fit"] else ""
    yield f"{runs['total']} runs.{more}"
    yield ""
    yield from _table([(mark.replace("_", " "), number) for mark, number in runs["by_mark"].items()])


def _rows(title: str, rows: Sequence[Document]) -> Iterator[str]:
    if not rows:
        return
    yield from _heading(title)
    for row in rows:
        told = [f"{name} {code(value)}" for name, value in row.items() if value not in (None, "", [], {})]
        yield f"- {', '.join(told)}"


def _difference(pair: Document) -> Iterator[str]:
    yield from _heading(f"Where {pair['left']} and {pair['right']} part")
    if pair["first"] is None:
        yield "Nothing of substance differs."
        return
    yield from (f"- {_one(found)}" for found in pair["all"])


def _one(found: Document) -> str:
    parts = [found[name] for name in ("step", "what", "name") if found[name]]
    return f"{' '.join(code(part) for part in parts)}: {code(found['left'])} and {code(found['right'])}"
