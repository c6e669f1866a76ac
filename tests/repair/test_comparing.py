"""Two runs beside each other: every kind of difference is found, in order, and no personal value leaves by it."""

from typing import Any

import pytest

from access.management.operator import at_the_console
from approvals.shown import view_of
from audit.models import Event
from common.clock import db_clock
from common.disclosure import Recipient
from repair.comparing import GONE, NOTHING, Comparison, Weight, compare_runs
from repair.comparing_members import MOST, OTHER, members
from tests import factories
from tests.approvals.desk_rows import make_full
from tests.database import captured_queries, statements
from tests.workflows.conftest import Desk
from tests.workflows.later import as_superuser
from workflows import operations
from workflows.actions.erasing import erase_content
from workflows.authoring import Done, EvidencePiece, Observation, Propose, Verdict
from workflows.enums import StepStatus
from workflows.models import Run, Step

pytestmark = pytest.mark.django_db


def compared(left: Run, right: Run, *, personal: bool = False) -> Comparison:
    for run in (left, right):
        run.refresh_from_db()
    return compare_runs(left, right, reader=Recipient(left.tenant_id, personal))


def codes(found: Comparison) -> list[tuple[str, str, str]]:
    return [(it.step, it.code, it.name) for it in found.differences]


def paid(desk: Desk, **start: Any) -> Run:
    command = desk.approved(**start)
    desk.work()
    desk.advance()
    return command.run


def proposing(desk: Desk, **changes: Any) -> None:
    arguments = {"order": "1042", "amount": "10.00", "currency": "EUR"} | changes.pop("arguments", {})
    desk.till.stages["pay"] = Propose("toy.pay", arguments, "the test wants it", **changes)


def test_a_run_does_not_differ_from_itself_nor_from_one_that_went_the_same_way(desk: Desk) -> None:
    left, right = desk.proposed(), desk.proposed()
    for other in (left, right):
        found = compared(Run.objects.get(pk=left.run_id), Run.objects.get(pk=other.run_id))
        assert (codes(found), found.same, found.first) == ([], True, None)
        assert found.steps == ("read", "judge", "pay", "tell")


def test_an_input_differs_by_its_members_and_no_value_is_told(desk: Desk) -> None:
    found = compared(paid(desk, order="7"), paid(desk, order="8"), personal=True)
    assert found.first is not None
    first = found.first
    assert (first.code, first.name, first.weight) == ("input", "order", Weight.SUBSTANCE)
    assert first.left.startswith("⟦fingerprint ")
    assert first.left != first.right


def test_arguments_differ_field_by_field_under_the_result_that_led_to_them(desk: Desk) -> None:
    desk.till.stages["judge"] = Done({"seen": "judge", "amount": {"text": "10.00", "a@b.example": 1}})
    left = desk.start()
    desk.advance()
    desk.till.stages["judge"] = Done({"seen": "judge", "amount": {"text": "12.00", "a@b.example": 2}})
    proposing(desk, arguments={"amount": "12.00"})
    right = desk.start()
    desk.advance()
    found = compared(left, right)
    assert codes(found) == [
        ("judge", "result", f"amount/{OTHER}"), ("judge", "result", "amount/text"), ("pay", "argument", "Amount"),
        ("pay", "consequence", ""),
    ]  # fmt: skip
    assert "a@b.example" not in repr(found)
    amount = next(it for it in found.differences if it.code == "argument")
    assert (amount.left, amount.right) == ("EUR 10.00", "EUR 12.00")
    assert found.first == found.differences[0]
    assert found.of_step("pay") == found.differences[2:]


def test_target_pins_evidence_and_verdict(desk: Desk) -> None:
    now = factories.rows.now()
    proposing(desk, evidence=(EvidencePiece("record", "Order record", b"as it was", now),))
    desk.till.verdict = Verdict("ask_one", "toy.ask", "Small.", (operations.Test("At most 10", ok=True),))
    left = desk.start()
    desk.advance()
    proposing(desk, evidence=(EvidencePiece("record", "Order record", b"as it is", now),))
    desk.till.verdict = Verdict("ask_two", "toy.two", "Large.", (operations.Test("At most 10", ok=False),))
    desk.till.tags["1042"] = "v2"
    right = desk.start()
    desk.advance()
    found = compared(left, right)
    assert [(it.code, it.name, it.left, it.right) for it in found.differences if it.code != "evidence"] == [
        ("pin", "order:1042", "v1", "v2"), ("test", "At most 10", "yes", "no"), ("verdict", "", "ask_one", "ask_two"),
        ("rule", "", "toy.ask", "toy.two"), ("needed", "", "1", "2"),
    ]  # fmt: skip
    [piece] = [it for it in found.differences if it.code == "evidence"]
    assert piece.name == "Order record"
    assert "as it" not in piece.left + piece.right


def test_how_it_ended_and_versions(desk: Desk) -> None:
    left = paid(desk)
    desk.till.answers = [Observation(sent=True, status=422, code="order_closed")]
    command = desk.approved(order="7")
    desk.work()
    found = compared(left, command.run)
    endings = [(it.step, it.code, it.left, it.right, it.weight) for it in found.differences]
    assert (
        "pay",
        "ending",
        "order confirmed, effect happened",
        "order refused, effect none",
        Weight.SUBSTANCE,
    ) in endings
    Run.objects.filter(pk=left.pk).update(state_version=99)
    assert codes(compared(left, left)) == []


def test_a_stage_that_broke_is_what_differs(desk: Desk) -> None:
    left = desk.start()
    desk.advance()
    desk.till.stages["judge"] = lambda _: 1 / 0  # type: ignore[assignment, return-value]
    right = desk.start()
    desk.advance()
    found = compared(left, right)
    assert found.first is not None
    assert (found.first.step, found.first.code) == ("judge", "result")
    assert ("judge", "failure", "") in codes(found)
    assert ("judge", "ending", "") in codes(found)
    later = [it for it in found.differences if it.step in ("pay", "tell")]
    assert {it.weight for it in later} == {Weight.CIRCUMSTANCE}


def test_how_far_a_run_has_come_is_circumstance(desk: Desk) -> None:
    left = desk.start()
    desk.advance()
    right = desk.start()
    found = compared(left, right)
    assert found.same
    assert found.first is None
    assert {it.weight for it in found.differences} == {Weight.CIRCUMSTANCE}


def test_another_workflow_and_a_step_that_only_one_of_them_has(desk: Desk) -> None:
    left, right = desk.start(), desk.start(workflow="toy-execute")
    factories.make_step(right, key="archive")
    found = compared(left, right)
    assert ("archive", "step", "") in codes(found)
    assert found.first is not None
    assert (found.first.code, found.first.left, found.first.right) == ("workflow", "toy-pay", "toy-execute")


def test_personal_arguments_are_fingerprints_but_for_roles_that_see_them(desk: Desk) -> None:
    left, right = (make_full(desk.tenant) for _ in range(2))
    view = view_of(right)
    fields = [
        field.model_copy(update={"text": "carol@quay.example"}) if field.data_class == "personal" else field
        for field in view.fields
    ]
    as_superuser(
        "UPDATE approvals_proposal SET view = %s WHERE id = %s",
        view.model_copy(update={"fields": tuple(fields)}).to_bytes(), right.pk,
    )  # fmt: skip
    runs = [Run.objects.get(pk=proposal.run_id) for proposal in (left, right)]
    outside, inside = (repr(compared(*runs, personal=personal)) for personal in (False, True))
    assert "carol@quay.example" in inside
    assert "billing@harbour" in inside
    assert "quay" not in outside
    assert "billing" not in outside
    assert "personal, fingerprint" in outside


def test_erased_content_is_neither_equal_nor_different(desk: Desk) -> None:
    left, right = paid(desk, order="7"), paid(desk, order="8")
    erase_content(tenant_id=desk.tenant.pk, run_id=left.pk, why="file 7", by=at_the_console(), clock=db_clock)
    found = compared(left, right)
    gone = {(it.step, it.code): it for it in found.differences if GONE in (it.left, it.right)}
    assert {("", "input"), ("read", "result"), ("judge", "result"), ("pay", "argument")} <= set(gone)
    assert {it.weight for it in gone.values()} == {Weight.CIRCUMSTANCE}


def test_runs_of_two_tenants_are_never_compared(desk: Desk) -> None:
    ours, theirs = factories.make_run(desk.tenant), factories.make_run()
    for left, right in ((ours, theirs), (theirs, ours), (theirs, theirs)):
        with pytest.raises(ValueError, match="within one tenant"):
            compare_runs(left, right, reader=Recipient(desk.tenant.pk))


def test_it_writes_nothing_and_asks_no_more_for_more_steps(desk: Desk) -> None:
    left, right = paid(desk, order="7"), paid(desk, order="8")
    events = Event.objects.count()
    with captured_queries() as captured:
        compared(left, right)
    asked = statements(captured)
    assert 0 < len(asked) <= 18
    assert not [sql for sql in asked if not sql.startswith("SELECT")]
    assert Event.objects.count() == events
    assert Step.objects.filter(run=left, status=StepStatus.COMPLETED).count() == 4


def test_members_go_down_to_the_smallest_and_have_an_end() -> None:
    assert list(members({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}})) == [("a/b/1/c", 2, 3)]
    assert list(members({"a": [1]}, {"a": [1, 2]})) == [("a", [1], [1, 2])]
    assert list(members(None, {"a": 1})) == [("", None, {"a": 1})]
    assert list(members({"a": 1}, {"a": True})) == [("a", 1, True)]
    assert list(members({"Ada Smith": 1}, {})) == [(OTHER, 1, None)]
    assert len(list(members({f"k{n}": n for n in range(500)}, {}))) == MOST
    assert NOTHING == "–"
