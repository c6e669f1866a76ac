"""The demo's cases, end to end: real engine, worker and database, real provider process, real receipts."""

import json
from pathlib import Path
from typing import Any

import pytest

from approvals.models import Proposal
from approvals.shown import view_of
from examples.refunds import outcomes
from tests.examples.refunds.shop import Shop, new_event
from workflows import registry
from workflows.actions.runs import InvalidRunInput
from workflows.enums import RunStatus
from workflows.models import Run, SourceEvent

FILE = Path(outcomes.__file__).with_name("cases.json")
CASES: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"]


@pytest.mark.django_db
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any], shop: Shop, capfd: pytest.CaptureFixture[str]) -> None:
    tenant, event, expect = case.get("tenant", "harbour"), new_event(), case["expect"]
    before = shop.last_arrival()
    shop.arrange(case.get("before", []))
    if "refused" in expect:
        with pytest.raises(InvalidRunInput) as refused:
            shop.deliver(tenant, event, case["input"])
        assert refused.value.code == expect["refused"]
        assert not Run.objects.exists()
        return
    run = live(case, shop, tenant, event)
    if "undo" in case:
        run = undone(case["undo"], shop, tenant, run)
    assert observed(run, shop) == {key: expect[key] for key in ("state", "outcome", "user_message", "owner")}
    effects = shop.effects_after(before)
    assert [amount for _, amount in effects] == expect["refunds"]
    assert len({key for key, _ in effects}) == len(effects)
    check_the_rest(run, shop, expect)
    said = "".join(capfd.readouterr())
    assert case["input"]["requester_email"] not in said
    assert case["input"]["message"] not in said


def live(case: dict[str, Any], shop: Shop, tenant: str, event: str) -> Run:
    """From the event to where the case rests."""
    run, created = shop.deliver(tenant, event, case["input"])
    assert created
    for _ in range(case.get("deliveries", 1) - 1):
        assert shop.deliver(tenant, event, case["input"]) == (run, False)
    if "again" in case:
        assert shop.conflict(tenant, event, case["input"] | case["again"]) == "event_conflict"
    run = shop.advance(run)
    if "answers" in case:
        shop.answer(run, case["answers"])
        run = shop.advance(run)
    shop.arrange(case.get("pending", []))
    for decision in case.get("decide", []):
        assert run.status == RunStatus.WAITING_FOR_APPROVAL
        assert shop.decide(tenant, run, decision) == decision.get("refused", "")
    shop.arrange(case.get("approved", []))
    return shop.advance(run)


def undone(plan: dict[str, Any], shop: Shop, tenant: str, run: Run) -> Run:
    """An operator proposes to take the refund back, and people decide on that as on anything else."""
    undo = shop.propose_undo(tenant, run, plan["reason"])
    for decision in plan["decide"]:
        assert shop.decide(tenant, undo, decision) == decision.get("refused", "")
    assert shop.advance(undo).status == RunStatus.COMPLETED
    return Run.objects.get(pk=run.pk)


def observed(run: Run, shop: Shop) -> dict[str, str]:
    packets = shop.packets(run)
    reference = run.user_message.rpartition("Reference: ")[2]
    message = (
        run.user_message.replace(reference, "re_*.") if reference.startswith("re_") else run.user_message
    )
    owner = packets[0].owner if packets else registry.workflow(run.workflow).contract.owner
    return {"state": run.status, "outcome": run.outcome, "user_message": message, "owner": owner}


def check_the_rest(run: Run, shop: Shop, expect: dict[str, Any]) -> None:
    causes = [packet.cause for packet in shop.packets(run)]
    assert causes == ([expect["cause"]] if "cause" in expect else [])
    assert run.corrected_outcome == expect.get("corrected", "")
    if "waited" in expect:
        assert expect["waited"] in shop.seen
    if "kept" in expect:
        assert expect["kept"] in shop.kept(run)
    if "duplicates" in expect:
        assert SourceEvent.objects.get(run=run).duplicates == expect["duplicates"]
    if "asked" in expect:
        proposal = Proposal.objects.get(run_id=run.pk)
        assert proposal.group is not None
        assert (proposal.group.name, proposal.needed) == (expect["asked"], expect["needed"])
    if "warnings" in expect:
        view = view_of(Proposal.objects.get(run_id=run.pk))
        # To a new shop every host is new; what the operation itself finds is what the case is about.
        assert [warning.code for warning in view.warnings if warning.code != "first_host"] == expect[
            "warnings"
        ]


def test_every_case_says_what_must_come_and_what_must_never() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES) >= 30
    for case in CASES:
        expect = case["expect"]
        assert case["title"] and case["unacceptable"], case["id"]
        assert "refused" in expect or {"state", "outcome", "user_message", "owner", "refunds"} <= set(expect)


def test_every_row_of_the_exception_table_is_reached_or_told_of_by_a_rule() -> None:
    """A row that no code names would be a promise that nobody keeps."""
    folder = FILE.parent
    code = "".join(path.read_text() for path in folder.glob("*.py") if path.name != "outcomes.py")
    of_the_engine = {"low_confidence", "invalid_arguments", "approval_expired", "credential_refused", "source_down",
                     "rate_limited"}  # fmt: skip
    for row in outcomes.TABLE:
        assert row.case in of_the_engine or row.case.startswith("about_") or f'"{row.case}"' in code, row.case
