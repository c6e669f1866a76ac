"""The shared cases for canonical bytes, read where they lie beside the repository."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[3] / "shared" / "cases" / "canonical.json"

needs_the_cases = pytest.mark.skipif(not FILE.exists(), reason="../shared/cases/canonical.json is not here")


def cases(*layers: str) -> list[dict[str, Any]]:
    """The cases of these layers (of all without one); none where the file is not there."""
    if not FILE.exists():
        return []
    everything = json.loads(FILE.read_text(encoding="utf-8"))["cases"]
    return [case for case in everything if not layers or case["layer"] in layers]


def raw_of(case: dict[str, Any]) -> bytes:
    """The exact bytes that a case feeds in."""
    if "raw_b64" in case:
        return base64.b64decode(case["raw_b64"])
    if "raw_gen" in case:
        made = case["raw_gen"]
        return (made["prefix"] + made["repeat"] * made["times"] + made["suffix"]).encode()
    return case["raw_json"].encode()
