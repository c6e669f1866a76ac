"""Reading the lines of an intake file: CSV or JSON lines, streamed, where a bad line costs nothing but itself."""

import csv
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel

from common.strictjson import JsonRefused, Limits, parse

LONGEST_LINE = 262_144
LONGEST_RECORD = 50
"""Physical lines that one CSV record may span; a quote that nobody closed must not swallow the rest of the file."""
SOURCE_FIELDS = ("event_id", "record", "sequence")

OnBytes = Callable[[int], object]
Physical = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Line:
    """One case as the file has it. ``problem`` is the stable code of why it cannot be read; else it is empty."""

    number: int
    input: Mapping[str, Any] = field(default_factory=dict)
    event_id: str = ""
    record: str = ""
    sequence: int | None = None
    problem: str = ""
    detail: str = ""


class UnreadableFile(ValueError):
    """The file as a whole cannot be read: its message says why."""


def read(path: Path, schema: type[BaseModel], *, form: str, on_bytes: OnBytes) -> Iterator[Line]:
    """The file's cases in order. ``form`` is *csv* or *jsonl*; ``on_bytes`` is told how far the reading has come.

    Raises UnreadableFile for a CSV file without a usable head.
    """
    with path.open("rb") as file:
        physical = _physical_lines(file, on_bytes)
        yield from (_csv if form == "csv" else _json_lines)(physical, schema)


def _physical_lines(file: BinaryIO, on_bytes: OnBytes) -> Iterator[Physical]:
    """(number, line without its end); a line that is too long comes cut, one byte over the limit."""
    number = 0
    while raw := file.readline(LONGEST_LINE + 2):
        number += 1
        on_bytes(len(raw))
        if not raw.endswith(b"\n") and len(raw) > LONGEST_LINE:
            while rest := file.readline(LONGEST_LINE):
                on_bytes(len(rest))
                if rest.endswith(b"\n"):
                    break
        line = raw.rstrip(b"\r\n")
        yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


# -- JSON lines ---------------------------------------------------------------------------------------------------


def _json_lines(physical: Iterator[Physical], _schema: type[BaseModel]) -> Iterator[Line]:
    for number, raw in physical:
        if raw.strip():
            yield _json_line(number, raw)


def _json_line(number: int, raw: bytes) -> Line:
    if len(raw) > LONGEST_LINE:
        return Line(number, problem="line_too_long")
    try:
        found = parse(raw)
    except JsonRefused as refused:
        return Line(number, problem=refused.code, detail=refused.message)
    assert isinstance(found, dict)  # the limits admit nothing else
    return _line(number, found)


def _line(number: int, found: Mapping[str, Any]) -> Line:
    """The case with its source fields apart; ``{"event_id", "input"}`` and the flat form mean the same."""
    source = {key: found[key] for key in SOURCE_FIELDS if key in found}
    rest = {key: value for key, value in found.items() if key not in SOURCE_FIELDS}
    nested = rest.get("input")
    inputs = nested if list(rest) == ["input"] and isinstance(nested, dict) else rest
    event_id, record, sequence = (source.get(key) for key in SOURCE_FIELDS)
    texts = all(value is None or isinstance(value, str) for value in (event_id, record))
    if not texts or isinstance(sequence, bool) or not isinstance(sequence, int | None):
        return Line(
            number, problem="invalid_source", detail="event_id and record are texts, sequence a whole number"
        )
    if len(event_id or "") > 200 or len(record or "") > 200:
        return Line(
            number, problem="invalid_source", detail="event_id and record have at most 200 characters"
        )
    return Line(number, inputs, event_id or "", record or "", sequence)


# -- CSV ----------------------------------------------------------------------------------------------------------


def _csv(physical: Iterator[Physical], schema: type[BaseModel]) -> Iterator[Line]:
    lines = _PushedBack(physical)
    head = _fields(next(lines, (0, b""))[1])
    if head is None or not all(head) or len(set(head)) != len(head):
        raise UnreadableFile("The first line of a CSV file names its columns, each once.")
    texts = text_fields(schema)
    for number, raw in lines:
        if raw.strip():
            yield _csv_line(number, raw, lines, head, texts)


class _PushedBack(Iterator[Physical]):
    """An iterator that takes lines back: those that a broken record had drawn in."""

    def __init__(self, lines: Iterator[Physical]) -> None:
        self.lines, self.waiting = lines, deque[Physical]()

    def __next__(self) -> Physical:
        return self.waiting.popleft() if self.waiting else next(self.lines)


def _csv_line(number: int, first: bytes, lines: _PushedBack, head: list[str], texts: frozenset[str]) -> Line:
    """One record, which may go on over several lines inside quotes.

    When what was drawn in does not make a record, only the first line is refused and the others are read anew.
    """
    drawn: list[Physical] = []
    whole = first
    while whole.count(b'"') % 2 and len(drawn) < LONGEST_RECORD and len(whole) <= LONGEST_LINE:
        following = next(lines, None)
        if following is None:
            break
        drawn.append(following)
        whole += b"\n" + following[1]
    fields = _fields(whole)
    if fields is not None and len(fields) == len(head):
        return _from_cells(number, dict(zip(head, fields, strict=True)), texts)
    lines.waiting.extendleft(reversed(drawn))
    return Line(number, problem=_csv_problem(first, fields if not drawn else None))


def _csv_problem(first: bytes, fields: list[str] | None) -> str:
    if len(first) > LONGEST_LINE:
        return "line_too_long"
    if fields is not None:
        return "wrong_columns"
    return "invalid_utf8" if not _is_utf8(first) else "unbalanced_quotes"


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fields(raw: bytes) -> list[str] | None:
    """The cells of one record, or None where it is none."""
    if len(raw) > LONGEST_LINE or raw.count(b'"') % 2 or not _is_utf8(raw):
        return None
    try:
        rows = list(csv.reader([raw.decode()], strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def _from_cells(number: int, cells: Mapping[str, str], texts: frozenset[str]) -> Line:
    """Empty cells are left out; what is no text field in the schema is read as JSON."""
    found: dict[str, Any] = {}
    for name, cell in cells.items():
        if not cell:
            continue
        if name in texts or name in ("event_id", "record"):
            found[name] = cell
            continue
        try:
            found[name] = parse(cell.encode(), Limits(object_only=False))
        except JsonRefused as refused:
            return Line(number, problem=refused.code, detail=f"column {name}: {refused.message}")
    return _line(number, found)


def text_fields(schema: type[BaseModel]) -> frozenset[str]:
    """Fields of the input that take a text, so that a cell such as 9001 stays one."""
    described = schema.model_json_schema()["properties"]
    return frozenset(
        name for name, field_ in described.items()
        if "string" in (field_.get("type"), *(option.get("type") for option in field_.get("anyOf", ())))
    )  # fmt: skip
