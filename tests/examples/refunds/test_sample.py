"""Real messages, through the intake command and the engine: each ends where a person would say that it belongs."""

import json
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from examples.refunds.sample import case_of, write_sample
from tests.examples.refunds.conftest import RunningProvider
from tests.examples.refunds.shop import KEYS, Shop
from workflows import sweep
from workflows.enums import RunStatus
from workflows.models import Run

BANKING = Path(__file__).resolve().parents[4] / "shared" / "data" / "banking77" / "train.csv"
EVERY, LINES = 40, 2000


def test_the_same_line_gets_the_same_case() -> None:
    assert case_of(7, "I want a refund", name="train") == case_of(7, "I want a refund", name="train")
    assert case_of(7, "hm", name="train")["event_id"] == "train-00008"


def test_a_message_about_dollars_gets_an_order_in_dollars() -> None:
    euro, dollars = case_of(0, "hm", name="x"), case_of(0, "an extra $1 charge", name="x")
    assert (euro["input"]["order_id"], dollars["input"]["order_id"]) == ("1001", "1003")  # type: ignore[index]
    assert dollars["input"]["customer_id"] == "c-103"  # type: ignore[index]


def test_a_file_without_messages(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("words\nhello\n")
    with pytest.raises(CommandError, match="column named text"):
        call_command("refunds_sample", str(tmp_path / "a.csv"), str(tmp_path / "b.jsonl"))


@pytest.mark.django_db
def test_real_messages_end_where_they_belong(
    provider: RunningProvider, tmp_path: Path, settings: Any
) -> None:
    if not BANKING.exists():
        pytest.skip("the banking77 messages are not here")
    shop = Shop(provider, tmp_path / "keys.json", settings)
    shop.open()
    assert write_sample(BANKING, tmp_path / "all.jsonl", limit=LINES) == LINES
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()[::EVERY]
    (tmp_path / "some.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out, report = StringIO(), tmp_path / "report.json"
    call_command(
        "intake", "refund-triage", str(tmp_path / "some.jsonl"), "--tenant", next(iter(KEYS)), "--report", str(report),
        stdout=out,
    )  # fmt: skip
    assert f"{len(lines)} accepted, 0 duplicate, 0 refused" in out.getvalue()
    while sweep.drain():
        pass
    check_ends(json.loads(report.read_text()), len(lines))


def check_ends(report: dict[str, Any], lines: int) -> None:
    assert report["total"] == report["accepted"] == lines
    runs = list(Run.objects.all())
    assert {str(run.pk) for run in runs} == {line["run_id"] for line in report["lines"]}
    found = Counter(run.status for run in runs)
    resting = {
        RunStatus.COMPLETED, RunStatus.WAITING_FOR_APPROVAL, RunStatus.WAITING_FOR_DATA, RunStatus.MANUAL_REPAIR,
    }  # fmt: skip
    assert set(found) <= resting, found
    assert found[RunStatus.COMPLETED] > lines // 2
    assert found[RunStatus.MANUAL_REPAIR] < lines // 10
    for run in runs:
        # Nothing is stuck in silence: what ended has told the requester something, what waits says until when.
        assert run.user_message if run.status == RunStatus.COMPLETED else run.waiting_until
