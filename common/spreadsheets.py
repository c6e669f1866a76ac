"""CSV that a spreadsheet opens as text: no cell is a formula, whatever somebody wrote into it."""

import csv
import io
from collections.abc import Iterable
from typing import Any, Final

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What begins a formula, or a cell of another one, in some program; full-width signs count as well in some."""


def cell(value: Any) -> str:
    """A value as the text of a cell; behind an apostrophe where a program would compute it. None is empty."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def csv_line(values: Iterable[Any]) -> bytes:
    """One line in UTF-8, every cell in quotes, ended as RFC 4180 has it."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerow([cell(value) for value in values])
    return line.getvalue().encode()
