"""The benchmark works: every measure, at the smallest sizes. What it measured is no matter of tests."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import report

ROOT = Path(__file__).resolve().parent.parent.parent
FLOORS = {"commits_per_second", "bare_1_per_second", "bare_10_per_second"}
PERCENTILES = {"p50_ms", "p95_ms", "p99_ms"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """The document and what was printed."""
    document = tmp_path_factory.mktemp("bench") / "bench.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", "--json", str(document)], cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return json.loads(document.read_text()), done.stderr


def test_every_measure_is_in_the_document(run: tuple[dict[str, Any], str]) -> None:
    found, _ = run
    assert set(found) > {
        "ingest",
        "latency",
        "throughput",
        "claims",
        "pulse",
        "lists",
        "history",
        "audit",
        "memory",
        "verdicts",
    }
    for kind in ("single", "bulk"):
        assert {"per_second", "ratio_to_commits", "ratio_to_bare_1"} <= set(found["ingest"][kind])
    assert set(found["latency"]) >= PERCENTILES
    assert set(found["latency"]["ratio_to_bare"]) == PERCENTILES
    assert set(found["latency"]["ratio_to_behind"]) == set(found["latency"]["behind_web_and_broker"]) - {
        "times"
    }
    assert len(found["latency"]["phases_p50_ms"]) == 4
    assert set(found["memory"]) > {"idle", "loaded", "loaded_and_200_waiting"}
    assert set(found["lists"]["200"]) >= {"api_page_of_100", "review_queue", "last_page"}
    assert found["pulse"]["missed"] == 0
    assert set(found["history"]) >= {"plans", "plans_without", "writes"}
    assert found["audit"]["without"]["events_an_action"] == 0 < found["audit"]["with"]["events_an_action"]


def test_throughput_stands_beside_its_floors(run: tuple[dict[str, Any], str]) -> None:
    measured = run[0]["throughput"]["2"]
    for kind in ("backlog", "pipeline"):
        assert FLOORS | {"per_second", "ratio_to_bare_1"} <= set(measured[kind])
        assert measured[kind]["per_second"] > 0
        assert measured[kind]["bare_1_per_second"] > 0
    assert measured["pipeline"]["behind_web_and_broker_per_second"] > 0


def test_the_claim_statement_is_explained(run: tuple[dict[str, Any], str]) -> None:
    measured = run[0]["claims"]["1000"]
    assert measured["pages"] > 0
    assert any(node.startswith("LockRows") for node in measured["plan"])


def test_the_table_has_the_figures_and_the_verdicts(run: tuple[dict[str, Any], str]) -> None:
    found, printed = run
    assert "throughput / 2 / backlog / ratio_to_bare_1" in printed
    assert all(verdict["goal"] in printed for verdict in found["verdicts"])
    assert len(found["verdicts"]) == 2 + 3 + 2 + 2 + 2


def test_verdicts_say_what_was_met() -> None:
    throughput = {
        "2": {"backlog": {"ratio_to_bare_1": 0.5}, "pipeline": {"ratio_to_bare_1": 0.3}},
        "load": 1.0,
    }
    latency = {"ratio_to_bare": {"p50_ms": 3.0, "p99_ms": 3.1}}
    claims = {"ratio_p50_last_to_first": 1.2, "ratio_pages_last_to_first": 40.0}
    found = report.verdicts({"throughput": throughput, "latency": latency, "claims": claims})
    assert [verdict["met"] for verdict in found] == [True, False, True, False, True, False]
    assert report.verdicts({}) == []
