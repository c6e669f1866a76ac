"""Canonical bytes on the command line, for integrators who check their own digests.

    python -m common.canonicalize [--schema '{"amount":"money","currency":"currency"}'] < document
    python -m common.canonicalize --batch < lines

One document: its canonical bytes, or the code of the refusal and exit status 2. A batch: for each JSON line
`{"id","raw_b64","schema"}` one line `{"id","canonical","sha256"}` or `{"id","code"}`. Needs neither settings
nor a database.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import json
import sys
from collections.abc import Sequence
from typing import Any, Final

from common.fields import Arguments, ArgumentsRefused, SchemaUnknown, arguments_from
from common.strictjson import JsonRefused, Limits, canonicalize, parse

REFUSED: Final = 2
_LINE_LIMITS: Final = Limits(max_bytes=16_000_000, max_string=15_000_000)


class Refusal(ValueError):
    """A document, or a line of a batch, that has no canonical bytes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def canonical_document(raw: bytes, schema: Any = None) -> bytes:
    """The canonical bytes of one document, typed where a schema is given; Refusal with a stable code."""
    try:
        if schema is None:
            return canonicalize(parse(raw))
        normalized = _described(schema).normalize_bytes(raw)
        return canonicalize({**normalized.material, **normalized.volatile})
    except (JsonRefused, ArgumentsRefused) as refused:
        raise Refusal(refused.code, str(refused)) from refused


def _described(schema: Any) -> type[Arguments]:
    if not isinstance(schema, dict):
        raise Refusal("schema", "The schema is not an object of names and types.")
    try:
        return arguments_from(schema)
    except SchemaUnknown as error:
        raise Refusal("schema", str(error)) from error


def batch_line(line: bytes) -> dict[str, Any]:
    """The answer to one line of a batch."""
    identity: Any = None
    try:
        request = parse(line, _LINE_LIMITS)
        assert isinstance(request, dict)
        identity = request.get("id")
        canonical = canonical_document(_raw(request.get("raw_b64")), request.get("schema"))
    except JsonRefused:
        return {"id": identity, "code": "batch_line"}
    except Refusal as refusal:
        return {"id": identity, "code": refusal.code}
    return {"id": identity, "canonical": canonical.decode(), "sha256": hashlib.sha256(canonical).hexdigest()}


def _raw(encoded: Any) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise Refusal("batch_line", "raw_b64 is not base64.") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0, or 2 for a refused document."""
    parser = argparse.ArgumentParser(
        prog="canonicalize", description="Write the canonical bytes of a document."
    )
    parser.add_argument("--schema", help="argument names and their types, as a JSON object")
    parser.add_argument("--batch", action="store_true", help="read JSON lines and answer each")
    options = parser.parse_args(arguments)
    return _batch() if options.batch else _single(options.schema)


def _single(schema: str | None) -> int:
    try:
        canonical = canonical_document(sys.stdin.buffer.read(), _read_schema(schema))
    except Refusal as refusal:
        sys.stdout.write(f"{refusal.code}\n")
        sys.stderr.write(f"{refusal}\n")
        return REFUSED
    sys.stdout.buffer.write(canonical)
    sys.stdout.buffer.flush()
    return 0


def _read_schema(written: str | None) -> Any:
    if written is None:
        return None
    try:
        return parse(written.encode(errors="surrogateescape"))
    except JsonRefused as refused:
        raise Refusal("schema", f"The schema is not JSON: {refused}") from refused


def _batch() -> int:
    for line in sys.stdin.buffer:
        if line.strip():
            sys.stdout.write(json.dumps(batch_line(line)) + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
