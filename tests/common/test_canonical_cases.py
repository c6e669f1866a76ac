"""All shared cases: the published vectors, the wire, typed fields, and what the page must show."""

import hashlib
import json
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from approvals.viewdoc import ViewDocument, build_view, parse_back
from common.canonicalize import Refusal, canonical_document
from common.display import codes_of, unveil
from common.fields import arguments_from
from common.strictjson import canonicalize
from tests.common.canonical_cases import FILE, cases, needs_the_cases, raw_of

pytestmark = needs_the_cases


def outcome(case: dict[str, Any]) -> tuple[str, str]:
    """What became of a case: accepted with its canonical bytes, or refused with a code."""
    try:
        if case["layer"] == "vector":
            # Vectors are for the serializer alone: some hold numbers that the wire refuses.
            return "accept", canonicalize(json.loads(raw_of(case))).decode()
        return "accept", canonical_document(raw_of(case), case.get("schema")).decode()
    except Refusal as refusal:
        return "reject", refusal.code


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_outcome(case: dict[str, Any]) -> None:
    expected = case["expect"]

    result, what = outcome(case)

    assert result == expected["outcome"]
    if result == "reject":
        assert what == expected["code"]
        return
    assert hashlib.sha256(what.encode()).hexdigest() == expected["sha256"]
    assert what == expected.get("canonical", what)


def related(relation: str) -> list[tuple[dict[str, Any], str]]:
    return [(case, other) for case in cases() for other in case["expect"].get(relation, [])]


@pytest.mark.parametrize("relation", ["equal_to", "differs_from"])
def test_relations(relation: str) -> None:
    by_id = {case["id"]: case for case in cases()}
    pairs = related(relation)

    assert len(pairs) >= 9, "the cases name their relations"
    for case, other in pairs:
        same = outcome(case) == outcome(by_id[other])
        assert same == (relation == "equal_to"), f"{case['id']} {relation} {other}"


def view_of(case: dict[str, Any]) -> ViewDocument:
    """The view of a case; without a schema every argument is a text."""
    raw = raw_of(case)
    schema = arguments_from(case.get("schema") or dict.fromkeys(json.loads(raw), "text"))
    return build_view(
        operation="cases.show",
        operation_version=1,
        contract_digest="0" * 64,
        headline="Show a case",
        consequence="Nothing happens.",
        schema=schema,
        arguments=schema.normalize_bytes(raw).material,
    )


@pytest.mark.parametrize("case", cases("display"), ids=lambda case: case["id"])
def test_display(case: dict[str, Any]) -> None:
    view = view_of(case)

    assert view.uninspectable is False
    assert hashlib.sha256(canonicalize(parse_back(view))).hexdigest() == case["expect"]["sha256"]
    if "display_field" not in case:
        assert len(view.fields) == len(json.loads(raw_of(case)))
        return
    (field,) = view.fields
    assert field.text == case["expect"]["display"]
    assert "".join(piece.text for piece in field.pieces) == field.text
    assert unveil(field.text) == json.loads(raw_of(case))[case["display_field"]]


@pytest.mark.parametrize(
    "case", [case for case in cases() if "flags" in case["expect"]], ids=lambda case: case["id"]
)
def test_flags(case: dict[str, Any]) -> None:
    text = json.loads(raw_of(case))[case["display_field"]]

    assert codes_of(text) == set(case["expect"]["flags"])
    assert {warning.code for warning in view_of(case).warnings} == set(case["expect"]["flags"])


@pytest.mark.parametrize(
    "case", [case for case in cases() if "must_show" in case["expect"]], ids=lambda case: case["id"]
)
def test_what_must_be_in_plain_sight(case: dict[str, Any]) -> None:
    fields = view_of(case).fields
    shown = "\n".join(text for field in fields for text in (field.text or "", *field.sub))

    for needed in case["expect"]["must_show"]:
        assert needed in shown


@pytest.mark.parametrize("case", cases("display"), ids=lambda case: case["id"])
def test_no_character_that_hides_is_in_the_document(case: dict[str, Any]) -> None:
    stored = view_of(case).to_bytes().decode()

    hiding = set(
        "\u00a0\u0085\u2028\u2800\ufe0f\ue000\u001b\u0007\u200b\u202c\u202e\U000e0068\U000e0069\U000e0100"
    )
    assert not hiding & set(stored)


def test_the_command_answers_a_whole_batch() -> None:
    batch = [case for case in cases() if case["layer"] != "vector"]
    lines = [
        json.dumps(
            {"id": case["id"], "raw_b64": b64encode(raw_of(case)).decode(), "schema": case.get("schema")}
        )
        for case in batch
    ]

    done = subprocess.run(
        [sys.executable, "-m", "common.canonicalize", "--batch"],
        input="\n".join(lines).encode(),
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={"PATH": ""},
    )

    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert len(answers) == len(batch) == 156
    for case in batch:
        answer = answers[case["id"]]
        assert answer.get("sha256") == case["expect"].get("sha256")
        assert answer.get("code") == case["expect"].get("code")


def test_the_file_is_the_one_these_tests_were_written_for() -> None:
    assert json.loads(FILE.read_text(encoding="utf-8"))["format"] == "canonical_cases/1"
    assert len(cases()) == 187
