"""Short runs of the harness as people run it: its own engines, mixed faults, each kind of provider."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.processes import ROOT

pytestmark = pytest.mark.e2e
ZERO = (
    "duplicates", "lost", "unapproved", "wrong_payload", "false_failed", "sent_without_intent", "sent_after_told",
    "not_ended", "terminal_overwritten", "projection_diff",
)  # fmt: skip


def run(*options: str) -> tuple[int, dict[str, Any], str]:
    command = [sys.executable, "-m", "tests.faults", *options]
    own_pace = {name: value for name, value in os.environ.items() if name != "PLACET_FAULTS_PACE"}
    done = subprocess.run(
        command, cwd=ROOT, env=own_pace, capture_output=True, text=True, timeout=540, check=False
    )
    line = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "{}"
    return done.returncode, json.loads(line), done.stdout + done.stderr


def test_everything_breaks_before_each_kind_of_provider() -> None:
    code, line, said = run("--seed", "7", "--actions", "44", "--provider", "all", "--per-second", "5")
    assert code == 0, said
    assert line["violated"] == []
    assert {name: line[name] for name in ZERO} == dict.fromkeys(ZERO, 0)
    assert (line["seed"], line["rounds"], line["audit_chain"]) == (7, 3, "ok")
    assert line["actions"] >= 132
    assert line["effects"] >= 30  # a run in which nothing happens proves nothing
    assert line["deaths"] > 0


def test_a_planted_defect_makes_the_run_fail_and_is_named() -> None:
    code, line, said = run(
        "--seed", "3", "--actions", "12", "--provider", "lookup", "--faults", "none", "--plant", "key_for_each_attempt",
    )  # fmt: skip
    assert code == 1, said
    assert line["seed"] == 3
    assert "I7 KEY-STABILITY" in line["violated"]
