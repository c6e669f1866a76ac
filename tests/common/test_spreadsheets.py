"""No cell is a formula, and every value comes back whole."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.spreadsheets import FORMULA, cell, csv_line


@pytest.mark.parametrize("begin", FORMULA)
def test_what_a_spreadsheet_would_compute_stands_behind_an_apostrophe(begin: str) -> None:
    assert cell(f'{begin}HYPERLINK("https://evil.example")').startswith(f"'{begin}")


def test_other_values_stay_as_they_are() -> None:
    assert [cell(value) for value in ("order:1", 12, None, True, "a=b", "")] == [
        "order:1",
        "12",
        "",
        "True",
        "a=b",
        "",
    ]


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1))
def test_a_line_is_read_back_as_the_same_cells(values: list[str]) -> None:
    line = csv_line(values).decode()
    [read] = csv.reader([line], strict=True) if "\n" not in line[:-2] and "\r" not in line[:-2] else [None]
    assert read is None or read == [cell(value) for value in values]
    assert line.endswith("\r\n")
    assert all(not one.startswith(FORMULA) for one in map(cell, values))
