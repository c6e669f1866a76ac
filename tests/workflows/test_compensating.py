"""What has happened is taken back by an action of its own: proposed, decided, sent and told like any other."""

from collections.abc import Iterator
from typing import Any

import pytest

from access.enums import Role
from access.models import User
from access.policies import RoleMissing
from approvals.models import Decision, Proposal
from approvals.refusals import DecisionRefused
from audit.actors import Actor, Via
from audit.models import Event
from common.clock import db_clock
from common.content_errors import ContentErased, ContentInUse
from common.digests import idempotency_key
from common.errors import NotFound, Refused
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import AGENT, Desk, person, state
from tests.workflows.later import SWEEP, age, look_up, open_packets, recover
from tests.workflows.test_erasing import erase
from tests.workflows.test_late_answers import late_yes
from tests.workflows.together import in_threads
from tests.workflows.toy import NOTHING_CAME
from tests.workflows.toy_back import FLOW, PayBack, installed
from workflows.actions.attesting import TokenCannotAttest, attest
from workflows.actions.cancelling import cancel_run
from workflows.actions.compensating import RESTING, UNDOING, Following, follow
from workflows.authoring import Done, Finding, Observation, Verdict
from workflows.enums import Lane
from workflows.models import Command, Run
from workflows.selectors import envelope
from workflows.worker.claim import claim_commands
from workflows.worker.recover import void_lapsed
from workflows.worker.send import commit_sent, look

pytestmark = pytest.mark.django_db
TAKEN_BACK = Observation(sent=True, status=201, reference="rv_1", body={"id": "rv_1"})


@pytest.fixture
def back(desk: Desk) -> Iterator[Desk]:
    with installed(desk):
        yield desk


@pytest.fixture
def olga(back: Desk) -> User:
    return make_user(back.tenant, "olga", roles=[Role.OPERATOR, Role.REVIEWER])


def paid(desk: Desk, order: str = "1042") -> Command:
    """The whole life of a payment: its run has ended."""
    command = desk.approved(workflow=FLOW, order=order)
    desk.work()
    desk.advance()
    assert Run.objects.get(pk=command.run_id).status == "completed"
    return Command.objects.get(pk=command.pk)


def undo(
    desk: Desk, command: Command, user: User, following: Following = UNDOING, key: str = "pay"
) -> Proposal:
    return follow(
        following, tenant_id=desk.tenant.pk, run_id=command.run_id, key=key, reason="It was too much.",
        by=person(user), clock=db_clock,
    )  # fmt: skip


def refusal(
    desk: Desk, command: Command, user: User, following: Following = UNDOING, key: str = "pay"
) -> str:
    before = (Run.objects.count(), Proposal.objects.count(), Event.objects.count())
    with pytest.raises(Refused) as refused:
        undo(desk, command, user, following, key)
    assert (Run.objects.count(), Proposal.objects.count(), Event.objects.count()) == before
    return refused.value.code


def test_it_is_proposed_decided_and_sent_as_an_action_of_its_own(back: Desk, olga: User) -> None:
    command = paid(back)
    proposal = undo(back, command, olga)
    run = Run.objects.get(pk=proposal.run_id)
    assert (run.kind, run.original_id, run.requested_by) == ("undo", command.run_id, f"user:{olga.pk}")
    assert (proposal.step, proposal.operation, proposal.mode) == ("pay~undo", "toy.take_back", "live")
    assert proposal.idempotency_key == idempotency_key(back.tenant.pk, command.run_id, "pay~undo", 1)
    assert state(run.pk) == ("waiting_for_approval", {"pay~undo": "waiting"})
    back.decide(proposal)
    back.till.answers = [TAKEN_BACK]
    back.work()
    assert [call.arguments.model_dump().get("payment") for call in back.till.calls] == [None, "re_1"]
    run.refresh_from_db()
    assert (run.status, run.outcome, run.user_message) == (
        "completed",
        "compensated",
        "What was done was taken back.",
    )


def test_the_first_run_keeps_its_word_and_the_correction_stands_beside_it(back: Desk, olga: User) -> None:
    command = paid(back)
    before = Run.objects.get(pk=command.run_id)
    proposal = undo(back, command, olga)
    back.decide(proposal)
    back.work()
    first = Run.objects.get(pk=command.run_id)
    assert (first.status, first.outcome, first.corrected_outcome) == ("completed", "paid", "compensated")
    assert (first.finished_at, first.state_version) == (before.finished_at, before.state_version + 1)
    assert (envelope(first)["outcome"], envelope(first)["original_outcome"]) == ("compensated", "paid")
    [proposed] = Event.objects.filter(kind="run.undo_proposed")
    [corrected] = Event.objects.filter(kind="run.outcome_corrected")
    assert proposed.run_id == corrected.run_id == first.pk
    assert proposed.body["proposal_id"] == str(proposal.pk)
    assert (corrected.from_state, corrected.to_state) == ("paid", "compensated")
    assert corrected.body == {"run": str(proposal.run_id), "step": "pay~undo"}


def test_whoever_chose_it_does_not_decide_nor_does_a_rule(back: Desk, olga: User) -> None:
    command = paid(back)
    back.till.verdict = Verdict("auto", "toy.auto", "It is small.")
    proposal = undo(back, command, olga)
    assert (proposal.status, proposal.needed) == ("pending", 1)
    assert not Decision.objects.filter(proposal=proposal).exists()
    with pytest.raises(DecisionRefused) as refused:
        back.decide(proposal, user=olga)
    assert refused.value.code == "own_proposal"
    assert back.decide(proposal).command_id is not None


def test_whoever_stood_behind_the_first_proposal_stays_closed_out(back: Desk, olga: User) -> None:
    command = paid(back)
    side = {*Proposal.objects.get(pk=command.proposal_id).excluded_users}
    assert side <= {*undo(back, command, olga).excluded_users}


def test_only_once_whatever_came_of_the_first_attempt(back: Desk, olga: User) -> None:
    command = paid(back)
    first = undo(back, command, olga)
    assert refusal(back, command, olga) == "undo_under_way"
    back.decide(first, "reject", reason_code="other")
    declined = Run.objects.get(pk=first.run_id)
    assert (declined.status, declined.outcome) == ("completed", "declined")
    assert Run.objects.get(pk=command.run_id).corrected_outcome == ""
    second = undo(back, command, olga)
    assert (second.idempotency_key, second.generation) == (first.idempotency_key, 1)
    back.decide(second)
    back.work()
    assert refusal(back, command, olga) == "already_undone"
    assert len({call.idempotency_key for call in back.till.calls}) == len(back.till.calls) == 2


def test_two_operators_at_once_and_one_compensation(back: Desk, olga: User) -> None:
    command = paid(back)
    otto = make_user(back.tenant, "otto", roles=[Role.OWNER])

    def at_once(number: int) -> str:
        try:
            return str(undo(back, command, (olga, otto)[number % 2]).status)
        except Refused as refused:
            return refused.code

    found = in_threads(6, at_once)
    assert sorted(found) == ["pending", *["undo_under_way"] * 5]
    assert Run.objects.filter(kind="undo").count() == 1


def test_an_unknown_compensation_is_an_ordinary_stopped_action(back: Desk, olga: User) -> None:
    command = paid(back)
    proposal = undo(back, command, olga)
    back.decide(proposal)
    back.till.answers = [NOTHING_CAME]
    back.work()
    assert state(proposal.run_id)[0] == "unknown"
    assert open_packets(proposal.run_id) == ["command_unknown"]
    assert refusal(back, command, olga) == "undo_under_way"
    otto = make_user(back.tenant, "otto", roles=[Role.OWNER])
    order = Command.objects.get(proposal=proposal)
    attest(
        tenant_id=back.tenant.pk, command_id=order.pk, says="partial", reference="rv_9", reason="I looked.",
        by=person(otto), clock=db_clock,
    )  # fmt: skip
    undone = Run.objects.get(pk=proposal.run_id)
    assert (undone.outcome, undone.user_message) == (
        "compensated_in_part", "A part of what was done was taken back.",
    )  # fmt: skip
    assert Run.objects.get(pk=command.run_id).corrected_outcome == "compensated_in_part"


def test_what_lapsed_goes_to_a_person_and_never_ends_by_the_table(back: Desk, olga: User) -> None:
    command = paid(back)
    proposal = undo(back, command, olga)
    back.decide(proposal)
    age(proposal.run_id, 3600)
    assert void_lapsed(by=SWEEP, clock=db_clock) == 1
    assert state(proposal.run_id) == ("manual_repair", {"pay~undo": "waiting"})
    assert open_packets(proposal.run_id) == ["command_lapsed"]


def test_a_run_that_goes_on_is_left_alone_and_corrected_at_once(back: Desk, olga: User) -> None:
    command = back.approved(workflow=FLOW)
    back.work()
    proposal = undo(back, command, olga)
    assert state(command.run_id)[1]["tell"] == "pending"
    back.decide(proposal)
    back.work()
    first = Run.objects.get(pk=command.run_id)
    assert (first.outcome, first.corrected_outcome) == ("", "compensated")
    back.advance()
    first.refresh_from_db()
    assert (first.status, first.outcome, first.corrected_outcome) == ("completed", "paid", "compensated")


def test_cancelling_the_compensation_leaves_the_effect(back: Desk, olga: User) -> None:
    command = paid(back)
    proposal = undo(back, command, olga)
    cancel_run(tenant_id=back.tenant.pk, run_id=proposal.run_id, reason="no", by=person(olga), clock=db_clock)
    assert Run.objects.get(pk=proposal.run_id).status == "cancelled"
    assert Run.objects.get(pk=command.run_id).corrected_outcome == ""
    assert undo(back, command, olga).status == "pending"


# -- refused --------------------------------------------------------------------------------------------------------


def test_nothing_else_is_taken_back(back: Desk, olga: User, monkeypatch: pytest.MonkeyPatch) -> None:
    command = paid(back)
    with pytest.raises(NotFound):
        undo(back, command, olga, key="read")
    assert refusal(back, command, olga, RESTING) == "not_in_part"
    monkeypatch.setattr(PayBack, "counter", None)
    assert refusal(back, command, olga) == "no_counter_action"


def test_what_the_policy_refuses_is_not_proposed(back: Desk, olga: User) -> None:
    command = paid(back)
    back.till.verdict = Verdict("refuse", "toy.closed", "The till is closed.")
    assert refusal(back, command, olga) == "refused_by_policy"


def test_what_does_not_fit_the_counter_action_is_not_proposed(
    back: Desk, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = paid(back)
    monkeypatch.setattr(PayBack, "counter_arguments", lambda self, arguments, effect: {"order": 7})
    assert refusal(back, command, olga) == "invalid_arguments"


def test_no_token_no_reviewer_and_nobody_of_another_tenant(back: Desk, olga: User) -> None:
    command = paid(back)
    token = Actor(f"user:{olga.pk}", Via.TOKEN, AGENT.owner, user_id=olga.pk)
    arguments: dict[str, Any] = {"run_id": command.run_id, "key": "pay", "reason": "x", "clock": db_clock}
    for actor in (token, AGENT):
        with pytest.raises(TokenCannotAttest):
            follow(UNDOING, tenant_id=back.tenant.pk, by=actor, **arguments)
    with pytest.raises(RoleMissing):
        follow(UNDOING, tenant_id=back.tenant.pk, by=person(back.ada), **arguments)
    other = make_tenant("linden")
    stranger = make_user(other, "lena", roles=[Role.OPERATOR])
    with pytest.raises(NotFound):
        follow(UNDOING, tenant_id=other.pk, by=person(stranger), **arguments)
    assert not Run.objects.filter(kind="undo").exists()


def test_what_was_erased_is_not_guessed_and_what_is_needed_is_not_erased(back: Desk, olga: User) -> None:
    command, other = paid(back), paid(back, "1043")
    undo(back, command, olga)
    with pytest.raises(ContentInUse):
        erase(back, Run.objects.get(pk=command.run_id))
    assert erase(back, Run.objects.get(pk=other.run_id)).done
    assert refusal(back, other, olga) == "contract_changed"


def test_what_followed_an_effect_is_erased_with_the_first_run(back: Desk, olga: User) -> None:
    """It was given the same: the recipient stands in both contracts."""
    command = paid(back)
    proposal = undo(back, command, olga)
    back.decide(proposal)
    back.work()
    assert erase(back, Run.objects.get(pk=command.run_id)).done
    erased = Event.objects.filter(kind="run.content_erased").values_list("run_id", flat=True)
    assert {*erased} == {command.run_id, proposal.run_id}
    assert not is_intact(Proposal.objects.get(pk=proposal.pk))


def is_intact(proposal: Proposal) -> bool:
    try:
        return bool(bytes(proposal.contract))
    except ContentErased:
        return False


# -- in part, late and twice ----------------------------------------------------------------------------------------


def in_part(desk: Desk, olga: User) -> Command:
    command = desk.approved(workflow=FLOW)
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    attest(
        tenant_id=desk.tenant.pk, command_id=command.pk, says="partial", reference="re_7", reason="Half of it.",
        by=person(olga), clock=db_clock,
    )  # fmt: skip
    return Command.objects.get(pk=command.pk)


def test_the_rest_of_what_happened_in_part(back: Desk, olga: User) -> None:
    command = in_part(back, olga)
    proposal = undo(back, command, olga, RESTING)
    assert (proposal.step, proposal.operation, proposal.amount) == ("pay~2", "toy.pay_back", 5)
    assert proposal.idempotency_key == idempotency_key(back.tenant.pk, command.run_id, "pay~2", 1)
    assert refusal(back, command, olga, RESTING) == "rest_under_way"
    assert refusal(back, command, olga) == "rest_under_way"
    back.decide(proposal)
    back.work()
    run = Run.objects.get(pk=proposal.run_id)
    assert (run.kind, run.status, run.outcome) == ("rest", "completed", "rest_done")
    assert refusal(back, command, olga, RESTING) == "rest_done"
    assert [call.arguments.amount for call in back.till.calls] == ["10.00", "5.00"]


def test_what_the_operation_cannot_say_is_no_rest(
    back: Desk, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = in_part(back, olga)
    monkeypatch.setattr(PayBack, "remainder", lambda self, arguments, effect, facts: None)
    assert refusal(back, command, olga, RESTING) == "no_remainder"


def test_the_second_of_two_effects_is_taken_back_by_itself(back: Desk, olga: User) -> None:
    """A late answer names another effect than the known one. Taking it back leaves what the user has."""
    command = back.approved(workflow=FLOW)
    [claim] = claim_commands(limit=1, lane=Lane.NEW, worker="first", by=SWEEP, clock=db_clock)
    late = late_second(back, command, claim)
    proposal = undo(back, command, olga, key="pay~twice")
    assert proposal.step == "pay~twice~undo"
    back.decide(proposal)
    back.work()
    assert back.till.calls[-1].arguments.payment == late
    assert Run.objects.get(pk=command.run_id).corrected_outcome == ""
    assert undo(back, command, olga).step == "pay~undo"


def late_second(desk: Desk, command: Command, claim: Any) -> str:
    assert commit_sent(claim, look(claim, command), by=SWEEP, clock=db_clock)
    age(command.run_id, 45, "workflows_command")
    recover()
    desk.till.findings = [Finding("happened", reference="re_known")]
    assert look_up(command)
    late_yes(claim)
    return "re_1"


def test_nobody_is_told_that_all_was_done_of_what_happened_in_part(back: Desk, olga: User) -> None:
    command = in_part(back, olga)
    told = []
    back.till.stages["tell"] = lambda context: Done({"seen": told.append(context.results["pay"])})
    back.advance()
    run = Run.objects.get(pk=command.run_id)
    assert (run.status, run.outcome) == ("completed", "partial")
    assert run.user_message == "A part of it was done. People are looking at the rest."
    assert told == [{"reference": "re_7", "settled_by": "person", "answer": {}, "in_part": True}]
