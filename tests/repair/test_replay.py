"""Replays through the real engine and worker: what was done is not done again, and what surely was not may be."""

from typing import Any, ClassVar

import pytest

from access.policies import RoleMissing
from approvals.models import Proposal
from audit.models import Event
from common.clock import db_clock
from repair.models import RepairPacket
from repair.replay.acting import TokenCannotReplay, replay_run
from repair.replay.rules import CannotReplay
from tests import factories
from tests.repair.replaying import advance, anew, dry, given_up, operator_of, paid, replayed, through
from tests.workflows.conftest import AGENT, Desk, person, state
from tests.workflows.later import as_superuser
from tests.workflows.toy import NOTHING_CAME, ToyArguments, ToyPay
from workflows import registry
from workflows.actions.cancelling import supply_data
from workflows.actions.correcting import ReasonMissing
from workflows.actions.replaying import NotRepeated
from workflows.authoring import Done, Facts, Observation, Propose, StageContext, Verdict, WaitForData
from workflows.documents import load_json
from workflows.enums_replays import Versions
from workflows.models import Attempt, CallbackCall, Command, Document, Run, SourceEvent, Step

pytestmark = pytest.mark.django_db

LATE = {
    "meaning": "confirmed",
    "status": 201,
    "reference": "re_late",
    "code": "",
    "at": "2026-01-01T00:00:00Z",
}


def dry_document(run: Run, key: str = "pay") -> dict[str, Any]:
    document = Document.objects.get(run_id=run.pk, kind=f"dry.{key}")
    found = load_json(document)
    assert isinstance(found, dict)
    return found


# -- dry ----------------------------------------------------------------------------------------------------------


def test_a_dry_replay_reads_again_and_proposes_nothing(desk: Desk) -> None:
    original = paid(desk)
    before = Run.objects.values().get(pk=original.pk)
    desk.till.stage_calls.clear()
    run = through(desk, original, dry())
    assert desk.till.stage_calls == ["read", "judge", "pay", "tell"]
    assert (run.kind, run.original_id, run.lane, run.status, run.outcome) == (
        "replay", original.pk, "reprocess", "completed", "dry_run",
    )  # fmt: skip
    assert not Proposal.objects.filter(run_id=run.pk).exists()
    assert Command.objects.count() == 1
    would = dry_document(run)
    assert would["arguments"] == {"amount": "10.00", "currency": "EUR", "order": "1042"}
    assert (would["consequence"], would["pins"]) == ("Pay EUR 10.00 for order 1042.", {"order:1042": "v1"})
    assert (would["policy"]["verdict"], would["policy"]["rule"], would["needed"]) == ("ask_one", "toy.ask", 1)
    assert would["not_repeated"] == "happened"
    assert Run.objects.values().get(pk=original.pk) == before
    assert len(desk.till.calls) == 1


def test_later_stages_know_what_the_original_had_come_to(desk: Desk) -> None:
    original, seen = paid(desk), []

    def tell(context: StageContext) -> Done:
        seen.append(dict(context.results))
        return Done({"message": "Dear Ada, it was paid."})

    desk.till.stages["tell"] = tell
    run = through(desk, original, dry())
    assert seen[0]["pay"]["reference"] == "re_1"
    assert run.user_message == ""


def test_nobody_is_told_or_called_and_no_new_case_is_counted(desk: Desk) -> None:
    original = paid(desk)
    events = SourceEvent.objects.count()
    run = through(desk, original, dry())
    assert (run.callback, run.source_record, run.source_sequence) == ("", "", None)
    assert SourceEvent.objects.count() == events
    assert not CallbackCall.objects.filter(run=run).exists()


def test_a_dry_replay_that_stops_ends_and_opens_no_packet(desk: Desk) -> None:
    original = paid(desk)
    desk.till.stages["judge"] = lambda _: 1 / 0  # type: ignore[assignment, return-value]
    run = through(desk, original, dry())
    assert (run.status, run.outcome, run.failure_code) == ("failed", "dry_run", "stage_broke")
    assert state(run.pk)[1] == {"read": "completed", "judge": "failed", "pay": "skipped", "tell": "skipped"}
    assert not RepairPacket.objects.filter(run=run).exists()


def test_a_rule_that_approves_by_itself_approves_nothing_of_a_dry_one(desk: Desk) -> None:
    desk.till.verdict = Verdict("auto", "toy.auto", "Small.")
    original = desk.start(workflow="toy-execute")
    desk.advance()
    desk.work()
    desk.advance()
    original.refresh_from_db()
    run = through(desk, original, dry())
    assert (run.outcome, Command.objects.count(), dry_document(run)["policy"]["verdict"]) == (
        "dry_run",
        1,
        "auto",
    )


def test_a_replay_without_the_row_that_says_how_it_was_asked_for_is_a_dry_one(desk: Desk) -> None:
    original = given_up(desk)
    run = factories.make_run(
        desk.tenant, kind="replay", original=original, workflow="toy-pay", lane="reprocess",
        input_ref=original.input_ref,
    )  # fmt: skip
    factories.make_step(run, key="pay", kind="side_effect", lane="reprocess", due_at=db_clock())
    advance()
    assert not Proposal.objects.filter(run_id=run.pk).exists()


def test_supplied_data_is_taken_along_unless_it_is_to_be_fresh(desk: Desk) -> None:
    def ask(context: StageContext) -> Any:
        if context.data:
            return Done({"order": context.data["order"]})
        schema = {"properties": {"order": {"type": "string"}}, "required": ["order"]}
        return WaitForData("Which order?", schema, factories.rows.DECIDE_WITHIN)

    desk.till.stages["read"] = ask
    original = desk.start()
    desk.advance()
    step = Step.objects.get(run=original, key="read")
    assert step.wait_id is not None
    supply_data(
        tenant_id=desk.tenant.pk, run_id=original.pk, wait_id=step.wait_id, data={"order": "7"}, by=AGENT,
        clock=db_clock, side=[desk.ben.pk],
    )  # fmt: skip
    desk.advance()
    taken = through(desk, original, dry())
    assert taken.status == "completed"
    assert Document.objects.filter(run_id=taken.pk, kind="data.read").count() == 1
    fresh = through(desk, original, dry(fresh=True))
    assert fresh.status == "waiting_for_data"


# -- anew ---------------------------------------------------------------------------------------------------------


def test_what_surely_had_no_effect_is_proposed_approved_and_done_anew(desk: Desk) -> None:
    original = given_up(desk)
    first = Command.objects.get()
    run = through(desk, original, anew())
    proposal = Proposal.objects.get(run_id=run.pk)
    assert (run.status, proposal.status) == ("waiting_for_approval", "pending")
    assert (proposal.idempotency_key, proposal.generation) == (first.idempotency_key, 1)
    assert str(operator_of(desk).pk) in map(str, proposal.excluded_users)
    desk.decide(proposal)
    command = Command.objects.get(run=run)
    assert command.lane == "reprocess"
    desk.work()
    advance()
    assert state(run.pk)[0] == "completed"
    assert [call.idempotency_key for call in desk.till.calls] == [first.idempotency_key] * 2
    with pytest.raises(CannotReplay) as info:
        replayed(desk, original, anew())
    assert info.value.details["why"] == "nothing_to_propose"


def test_another_action_after_no_effect_has_a_new_key(desk: Desk) -> None:
    original = given_up(desk)
    desk.till.stages["pay"] = Propose(
        "toy.pay", {"order": "1042", "amount": "12.00", "currency": "EUR"}, "more"
    )
    run = through(desk, original, anew())
    proposal = Proposal.objects.get(run_id=run.pk)
    assert proposal.generation == 2
    assert proposal.idempotency_key != Command.objects.get().idempotency_key


def test_a_rejection_holds_for_exactly_the_same_and_not_for_another_action(desk: Desk) -> None:
    proposal = desk.proposed()
    desk.decide(proposal, "reject")
    desk.advance()
    original = Run.objects.get(pk=proposal.run_id)
    same = through(desk, original, anew())
    assert (same.status, same.outcome, state(same.pk)[1]["pay"]) == ("completed", "declined", "skipped")
    assert not Proposal.objects.filter(run_id=same.pk).exists()
    desk.till.tags["1042"] = "v2"
    desk.till.stages["pay"] = Propose(
        "toy.pay", {"order": "1042", "amount": "9.00", "currency": "EUR"}, "less"
    )
    other = through(desk, original, anew())
    assert Proposal.objects.get(run_id=other.pk).status == "pending"


def test_what_happened_is_left_out_and_its_result_taken_over(desk: Desk) -> None:
    """Nobody can ask for it; but where it turns out while the replay is on its way, this is how it ends."""
    original = given_up(desk)
    run = replayed(desk, original, anew())
    Attempt.objects.update(late_evidence=LATE)
    advance()
    run.refresh_from_db()
    assert (run.status, run.outcome) == ("completed", "effect_not_repeated")
    assert state(run.pk)[1]["pay"] == "skipped"
    assert not Proposal.objects.filter(run_id=run.pk).exists()
    event = Event.objects.get(kind="step.not_repeated")
    assert event.reason == "late"


def test_late_evidence_after_the_proposal_stops_its_approval_and_its_sending(desk: Desk) -> None:
    original = given_up(desk)
    run = through(desk, original, anew())
    proposal = Proposal.objects.get(run_id=run.pk)
    Attempt.objects.update(late_evidence=LATE)
    with pytest.raises(NotRepeated):
        desk.decide(proposal)
    assert Proposal.objects.get(pk=proposal.pk).status == "pending"
    Attempt.objects.update(late_evidence=None)
    desk.decide(proposal)
    Attempt.objects.update(late_evidence=LATE)
    calls = len(desk.till.calls)
    desk.work()
    assert len(desk.till.calls) == calls
    assert Command.objects.get(run=run).failure_code == "earlier_effect"


@pytest.mark.parametrize("way", ["auto", "person"])
def test_an_effect_that_a_rule_approves_obeys_the_same(desk: Desk, way: str) -> None:
    desk.till.verdict = Verdict("auto", "toy.auto", "Small.")
    desk.till.answers = [NOTHING_CAME]
    original = desk.start(workflow="toy-execute")
    desk.advance()
    desk.work()
    assert state(original.pk)[0] == "unknown"
    with pytest.raises(CannotReplay) as info:
        replayed(desk, original, anew())
    assert info.value.details["why"] == "not_ended"
    run = factories.make_run(
        desk.tenant, kind="replay", original=original, workflow="toy-execute", lane="reprocess",
        input_ref=original.input_ref, stage="execute" if way == "auto" else "approve",
    )  # fmt: skip
    factories.make_replay(run, operator_of(desk))
    factories.make_step(run, key="pay", kind="side_effect", lane="reprocess", due_at=db_clock())
    advance()
    assert Command.objects.count() == 1
    assert state(run.pk)[1] == {"pay": "skipped"}
    assert Run.objects.get(pk=run.pk).outcome == "effect_not_repeated"


# -- who, when ----------------------------------------------------------------------------------------------------


def test_no_token_no_reviewer_and_nobody_without_a_reason(desk: Desk) -> None:
    original = paid(desk)
    for by, error in ((AGENT, TokenCannotReplay), (person(desk.ada), RoleMissing)):
        with pytest.raises(error):
            replay_run(tenant_id=desk.tenant.pk, run_id=original.pk, asked=dry(), by=by, clock=db_clock)
    with pytest.raises(ReasonMissing):
        replayed(desk, original, dry(reason=" "))
    assert not Run.objects.filter(kind="replay").exists()


def test_a_replay_of_a_replay_names_the_first_original(desk: Desk) -> None:
    original = paid(desk)
    first = through(desk, original, dry())
    second = through(desk, first, dry())
    assert second.original_id == original.pk
    events = Event.objects.filter(kind="run.replayed").order_by("at")
    assert [event.run_id for event in events] == [original.pk] * 2


def test_versions_of_then_that_are_gone_are_named(desk: Desk) -> None:
    original = paid(desk)
    assert through(desk, original, dry(versions=Versions.THEN)).status == "completed"
    as_superuser("UPDATE approvals_proposal SET policy = jsonb_set(policy, '{version}', '0')")
    with pytest.raises(CannotReplay) as info:
        replayed(desk, original, dry(versions=Versions.THEN))
    assert info.value.details == {"why": "version_gone", "gone": ["toy.pay@1, policy 0"]}


def test_each_version_judges_as_it_did_then_or_as_it_does_now(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Newer(ToyPay):
        version: ClassVar[int] = 2

        def consequence(self, arguments: ToyArguments, facts: Facts) -> str:
            return "Pay it, as version 2 says."

    original = paid(desk)
    monkeypatch.setitem(registry._operations, ("toy.pay", 2), Newer())
    then, now = (through(desk, original, dry(versions=versions)) for versions in Versions)
    assert [dry_document(run)["operation_version"] for run in (then, now)] == [1, 2]
    assert dry_document(now)["consequence"] == "Pay it, as version 2 says."
    waiting = replayed(desk, original, dry(versions=Versions.THEN))
    monkeypatch.setattr(registry.workflow("toy-pay"), "version", 2)
    advance()
    waiting.refresh_from_db()
    assert (waiting.status, waiting.failure_code) == ("failed", "version_gone")


def test_what_was_proposed_from_outside_has_no_stages(desk: Desk) -> None:
    run = factories.make_run(desk.tenant, workflow="toy-outside")
    with pytest.raises(CannotReplay) as info:
        replayed(desk, run, dry())
    assert info.value.details["why"] == "proposed_outside"
    gone = factories.make_run(desk.tenant, workflow="no-longer-there")
    with pytest.raises(CannotReplay) as info:
        replayed(desk, gone, dry())
    assert info.value.details["why"] == "workflow_gone"


def test_one_replay_that_may_act_at_a_time_and_none_of_what_goes_on(desk: Desk) -> None:
    proposal = desk.proposed(order="8")
    with pytest.raises(CannotReplay) as info:
        replayed(desk, Run.objects.get(pk=proposal.run_id), anew())
    assert info.value.details["why"] == "not_ended"
    original = given_up(desk)
    replayed(desk, original, anew())
    with pytest.raises(CannotReplay) as info:
        replayed(desk, original, anew())
    assert info.value.details["why"] == "being_replayed"
    assert replayed(desk, original, dry()).kind == "replay"


def test_a_newer_event_of_the_record_keeps_it_from_acting(desk: Desk) -> None:
    original = given_up(desk, record="order:1042", sequence=1)
    desk.till.answers = [Observation(sent=True, status=201, reference="re_2")]
    run = replayed(desk, original, anew())
    desk.start(order="7", record="order:1042", sequence=2)
    advance()
    assert Run.objects.get(pk=run.pk).outcome == "effect_not_repeated"
    assert Event.objects.get(kind="step.not_repeated").reason == "newer_event"
