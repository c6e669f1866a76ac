"""Arrays come to the database as the driver's own would: member by member, whatever stands in them."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.arrays import array_text
from common.prepared import fetch
from workflows.enums import CommandStatus

pytestmark = pytest.mark.django_db
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def there_and_back(values: list[Any], kind: str) -> Any:
    return fetch(f"SELECT %s::{kind}[]", [values])[0][0]


@given(
    st.lists(st.one_of(st.none(), TEXTS, st.sampled_from(["", "NULL", "null", '"', "\\", "{}", ",", " a "])))
)
def test_any_text(texts: list[str | None]) -> None:
    assert array_text(texts) is not None
    assert there_and_back(texts, "text") == texts


@given(st.lists(st.one_of(st.none(), st.binary())))
def test_any_bytes(values: list[bytes | None]) -> None:
    assert array_text(values) is not None
    assert there_and_back(values, "bytea") == values


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], "uuid"),
        ([uuid4(), None, uuid4()], "uuid"),
        ([0, -1, 2**53 - 1, None], "bigint"),
        ([True, False, None], "bool"),
        ([datetime(2026, 2, 3, 4, 5, 6, 789, UTC), None], "timestamptz"),
        ([datetime(2026, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))], "timestamptz"),
    ],
)  # fmt: skip
def test_other_kinds(values: list[Any], kind: str) -> None:
    assert array_text(values) is not None
    assert there_and_back(values, kind) == values


def test_members_of_our_enums_are_their_texts() -> None:
    assert there_and_back([CommandStatus.READY, "sent"], "text") == ["ready", "sent"]


def test_other_members_are_left_to_the_driver() -> None:
    assert array_text([1.5]) is None
    assert there_and_back([1.5, 2.5], "float8") == [1.5, 2.5]


def test_an_array_needs_no_cast_where_it_is_compared() -> None:
    assert fetch("SELECT 'a'::varchar = ANY(%s), 'b'::varchar <> ALL(%s)", [["a", "c"], []]) == [(True, True)]
