"""Fifty writers while everything beside them breaks: sealed exactly once, signed on, proven outside; then a backup."""

import json
import subprocess
import sys

import pytest

from tests.processes import ROOT

pytestmark = pytest.mark.e2e


def test_the_history_holds_under_fire_and_after_a_restore() -> None:
    command = [sys.executable, "-m", "tests.audit.fire"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    said = done.stdout + done.stderr
    assert done.stdout.strip(), said
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert (found["wrong"], done.returncode) == ([], 0), said
    assert found["acknowledged"] > 50, "a run in which nothing happens proves nothing"
    assert found["events"] > 4 * found["acknowledged"]
    assert {"sweep", "other sweep", "signer", "postgres", "redis emptied", "clock stepped back"} == set(
        found["deaths"]
    )
