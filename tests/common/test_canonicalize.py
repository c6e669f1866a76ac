"""The command that integrators check their digests with, run as they run it."""

import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

MONEY = '{"amount":"money","currency":"currency"}'


def run(given: bytes, *arguments: str) -> tuple[int, bytes]:
    """Exit status and standard output, without settings, database or any environment."""
    done = subprocess.run(
        [sys.executable, "-m", "common.canonicalize", *arguments],
        input=given,
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={"PATH": ""},
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("given", "arguments", "status", "output"),
    [
        (b' { "b" : 1.0, "a" : "\\u20ac" } ', [], 0, '{"a":"€","b":1}'),
        (b'{"currency":"EUR","amount":"10"}', ["--schema", MONEY], 0, '{"amount":"10.00","currency":"EUR"}'),
        (b'{"a":1,"a":2}', [], 2, "duplicate_key\n"),
        (b'{"currency":"EUR","amount":10}', ["--schema", MONEY], 2, "money_must_be_string\n"),
        (b"{}", ["--schema", "{"], 2, "schema\n"),
        (b"{}", ["--schema", '{"a":"float"}'], 2, "schema\n"),
        (b"", [], 2, "syntax\n"),
    ],
)
def test_one_document(given: bytes, arguments: list[str], status: int, output: str) -> None:
    assert run(given, *arguments) == (status, output.encode())


def test_a_batch_answers_every_line() -> None:
    document = base64.b64encode(b'{"n":1.0}').decode()
    lines = [
        json.dumps({"id": "ok", "raw_b64": document, "schema": {"n": "integer"}}),
        "",
        json.dumps({"id": 2, "raw_b64": document}),
        json.dumps({"id": "not typed so", "raw_b64": document, "schema": {"n": "text"}}),
        json.dumps({"id": "no schema", "raw_b64": document, "schema": ["n"]}),
        json.dumps({"id": "no base64", "raw_b64": "!"}),
        json.dumps({"id": "nothing"}),
        "not json",
    ]

    status, output = run("\n".join(lines).encode(), "--batch")

    accepted = {"canonical": '{"n":1}', "sha256": hashlib.sha256(b'{"n":1}').hexdigest()}
    assert status == 0
    assert [json.loads(line) for line in output.splitlines()] == [
        {"id": "ok", **accepted},
        {"id": 2, **accepted},
        {"id": "not typed so", "code": "type"},
        {"id": "no schema", "code": "schema"},
        {"id": "no base64", "code": "batch_line"},
        {"id": "nothing", "code": "batch_line"},
        {"id": None, "code": "batch_line"},
    ]
