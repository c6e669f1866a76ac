"""One click asks again: by today's policy and facts, with the old key while the action is the same, and once only."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from access.actions import deactivate_user, set_roles
from access.enums import Role
from access.models import User
from access.policies import RoleMissing
from approvals.actions import expire_due
from approvals.models import Proposal
from audit.actors import Via
from audit.models import Event
from common.clock import db_clock
from common.errors import NotFound, Refused
from common.strictjson import parse
from repair.models import RepairPacket
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import AGENT, Desk, person
from tests.workflows.counter import ADMIN
from tests.workflows.later import (
    SWEEP,
    age,
    as_superuser,
    changed_by_hand,
    end_of,
    fresh,
    look_up,
    open_packets,
)
from tests.workflows.test_worker_answers import answer
from tests.workflows.test_worker_stops import propose
from tests.workflows.together import at_once
from tests.workflows.toy import NOTHING_CAME, ToyPay, ToyPolicy
from workflows import registry
from workflows.actions.asking_again import (
    CancelRequested,
    ContractChanged,
    NothingToAskAgain,
    ask_again,
)
from workflows.actions.attesting import TokenCannotAttest
from workflows.actions.cancelling import cancel_run
from workflows.actions.outside import AlreadySuperseded, RefusedByPolicy, SourceUnavailable
from workflows.authoring import Finding, Propose, Verdict
from workflows.models import Command, Run, Step
from workflows.operations import OperationRefused
from workflows.results import EvidencePiece, SourceDown
from workflows.worker.recover import void_lapsed

pytestmark = pytest.mark.django_db


@pytest.fixture
def opal(desk: Desk) -> User:
    return make_user(desk.tenant, "opal", roles=[Role.OPERATOR])


def ask(desk: Desk, run_id: UUID, user: User, step: str = "pay", **changes: Any) -> Proposal:
    values = {
        "tenant_id": desk.tenant.pk,
        "run_id": run_id,
        "step": step,
        "by": person(user),
        "clock": db_clock,
    }
    return ask_again(**(values | changes))


def lapsed(desk: Desk, **start: Any) -> Command:
    """Approved, and not executed in time."""
    command = desk.approved(**start)
    age(command.run_id, 700, "approvals_proposal")
    assert void_lapsed(by=SWEEP, clock=db_clock) == 1
    assert end_of(command)["step"] == "waiting(person)"
    return fresh(command)


def contract_of(proposal: Proposal) -> dict[str, Any]:
    found = parse(bytes(proposal.contract))
    assert isinstance(found, dict)
    return found


# -- what comes of it --------------------------------------------------------------------------------------------


def test_what_lapsed_is_asked_again_and_done_with_the_same_key(desk: Desk, opal: User) -> None:
    old = lapsed(desk)
    desk.till.tags["1042"] = "v2"
    proposal = ask(desk, old.run_id, opal)
    assert (proposal.version, proposal.supersedes_id, proposal.status) == (2, old.proposal_id, "pending")
    first, second = contract_of(old.proposal), contract_of(proposal)
    assert (first["pins"], second["pins"]) == ({"order:1042": "v1"}, {"order:1042": "v2"})
    same = ("arguments", "target", "idempotency_key", "operation", "run_id", "step", "actor")
    assert [first[name] for name in same] == [second[name] for name in same]
    assert first["nonce"] != second["nonce"]
    run = Run.objects.get(pk=old.run_id)
    assert (run.status, run.user_message) == ("waiting_for_approval", "")
    assert open_packets(run.pk) == []
    assert RepairPacket.objects.get(run_id=run.pk).resolution == "asked_again"
    desk.decide(proposal)
    desk.work()
    command = Command.objects.get(proposal=proposal)
    assert (command.status, command.idempotency_key) == ("confirmed", old.idempotency_key)
    assert len(desk.till.calls) == 1


def test_it_is_recorded_who_asked_and_instead_of_what(desk: Desk, opal: User) -> None:
    old = lapsed(desk)
    proposal = ask(desk, old.run_id, opal)
    event = Event.objects.get(kind="step.asked_again")
    assert (event.performed_by, event.digest) == (f"user:{opal.pk}", proposal.digest)
    assert event.body == {
        "key": "pay", "proposal_id": str(proposal.pk), "instead_of": str(old.proposal_id), "ended": "lapsed",
        "same_key": True,
    }  # fmt: skip
    made = Event.objects.get(kind="proposal.made", subject_id=proposal.pk)
    assert (made.body["supersedes"], made.xid) == (str(old.proposal_id), event.xid)
    assert proposal.proposed_by == old.proposal.proposed_by


def test_the_evidence_is_carried_over_as_it_was_captured(desk: Desk, opal: User) -> None:
    at = db_clock() - timedelta(minutes=5)
    piece = EvidencePiece(
        "message", "What was said", b"Please pay.", at, ref="m-1", fresh_for=timedelta(hours=1)
    )
    arguments = {"order": "1042", "amount": "10.00", "currency": "EUR"}
    desk.till.stages["pay"] = Propose("toy.pay", arguments, "because", (piece,))
    old = lapsed(desk)
    before = old.proposal.evidence.get()
    proposal = ask(desk, old.run_id, opal)
    after = proposal.evidence.get()
    names = ("kind", "title", "ref", "captured_at", "fresh_until", "asserted")
    assert [getattr(after, name) for name in names] == [getattr(before, name) for name in names]
    assert bytes(after.content) == b"Please pay."
    assert bytes(after.salt) != bytes(before.salt)
    assert (contract_of(proposal)["evidence"], proposal.reason) == ([after.digest], "because")


def expired(desk: Desk) -> UUID:
    proposal = desk.proposed()
    age(proposal.run_id, 5 * 3600, "approvals_proposal")
    assert expire_due(clock=db_clock) == 1
    return proposal.run_id


def pin_changed(desk: Desk) -> UUID:
    command = desk.approved()
    desk.till.tags["1042"] = "v2"
    desk.work()
    assert end_of(command)["command"] == "void(pin)"
    return command.run_id


def policy_raised(desk: Desk) -> UUID:
    command = desk.approved()
    as_superuser("UPDATE workflows_definition SET version = 2 WHERE kind = 'policy' AND name = 'toy-policy'")
    desk.work()
    assert end_of(command)["command"] == "void(policy)"
    return command.run_id


def unknown_and_lapsed(desk: Desk) -> UUID:
    command = desk.approved()
    desk.till.answers, desk.till.findings = [NOTHING_CAME], [Finding("not_found")]
    desk.work()
    age(command.run_id, 700)
    assert look_up(command)
    assert end_of(command)["command"] == "void(lapsed)"
    return command.run_id


@pytest.mark.parametrize("ended", [expired, pin_changed, policy_raised, unknown_and_lapsed])
def test_each_end_that_may_be_repeated(desk: Desk, opal: User, ended: Callable[[Desk], UUID]) -> None:
    run_id = ended(desk)
    old = Proposal.objects.get(run_id=run_id)
    proposal = ask(desk, run_id, opal)
    assert (proposal.status, proposal.idempotency_key) == ("pending", old.idempotency_key)
    assert (Run.objects.get(pk=run_id).status, open_packets(run_id)) == ("waiting_for_approval", [])


def test_an_agents_proposal_is_asked_again_in_its_own_step(desk: Desk, opal: User) -> None:
    old = propose(desk)
    age(old.run_id, 5 * 3600, "approvals_proposal")
    expire_due(clock=db_clock)
    proposal = ask(desk, old.run_id, opal, "action")
    assert (proposal.proposed_by, proposal.step, proposal.version) == (AGENT.performed_by, "action", 2)


def test_who_asked_again_may_decide_and_the_requesters_people_still_may_not(desk: Desk) -> None:
    run_id = expired(desk)
    as_superuser(
        "UPDATE workflows_run SET excluded_users = to_jsonb(ARRAY[%s]) WHERE id = %s", desk.ben.pk, run_id
    )
    roles = [Role.REVIEWER, Role.OWNER]
    set_roles(tenant=desk.tenant, user=desk.ada, roles=roles, by=ADMIN, clock=db_clock)
    proposal = ask(desk, run_id, desk.ada)
    assert proposal.excluded_users == [desk.ben.pk]
    assert desk.decide(proposal).result == "approved"


# -- by what is so today -----------------------------------------------------------------------------------------


def test_todays_policy_says_how_many_people(desk: Desk, opal: User, monkeypatch: pytest.MonkeyPatch) -> None:
    old = lapsed(desk)
    monkeypatch.setattr(ToyPolicy, "version", 2)
    desk.till.verdict = Verdict("ask_two", "toy.two", "It has become risky.")
    proposal = ask(desk, old.run_id, opal)
    assert (proposal.needed, proposal.policy["rule"], proposal.policy["version"]) == (2, "toy.two", 2)
    assert contract_of(proposal)["policy_version"] == 2
    assert proposal.idempotency_key == old.idempotency_key


def test_a_policy_that_refuses_by_now_is_told_and_changes_nothing(desk: Desk, opal: User) -> None:
    old = lapsed(desk)
    desk.till.verdict = Verdict("refuse", "toy.no", "Not any more.")
    with pytest.raises(RefusedByPolicy) as refused:
        ask(desk, old.run_id, opal)
    assert (refused.value.message, refused.value.details) == ("Not any more.", {"rule": "toy.no"})
    nothing_changed(old)


def nothing_changed(old: Command) -> None:
    assert Proposal.objects.filter(run_id=old.run_id).count() == 1
    assert end_of(old)["step"] == "waiting(person)"
    assert open_packets(old.run_id) == [f"command_{old.void_reason}"]


@pytest.mark.parametrize(
    ("raised", "refusal"),
    [
        (OperationRefused("unknown_order", "There is no such order."), RefusedByPolicy),
        (SourceDown("away"), SourceUnavailable),
    ],
    ids=["gone", "away"],
)
def test_a_record_that_is_gone_or_cannot_be_read(
    desk: Desk, opal: User, monkeypatch: pytest.MonkeyPatch, raised: Exception, refusal: type[Refused]
) -> None:
    old = lapsed(desk)

    def look(*_: Any) -> Any:
        raise raised

    monkeypatch.setattr(ToyPay, "look", look)
    with pytest.raises(refusal):
        ask(desk, old.run_id, opal)
    nothing_changed(old)


def test_the_key_grows_when_the_action_is_another_one(
    desk: Desk, opal: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new version of the operation may mean another request by the same arguments."""
    old = lapsed(desk)
    newer = type("ToyPayTwo", (ToyPay,), {"version": 2})()
    monkeypatch.setitem(registry._operations, ("toy.pay", 2), newer)
    proposal = ask(desk, old.run_id, opal)
    assert (proposal.operation_version, proposal.generation, old.proposal.generation) == (2, 2, 1)
    assert proposal.idempotency_key != old.idempotency_key


def test_when_nobody_could_answer_people_are_told_at_once(desk: Desk, opal: User) -> None:
    old = lapsed(desk)
    for user in (desk.ada, desk.ben):
        deactivate_user(user=user, by=ADMIN, clock=db_clock)
    ask(desk, old.run_id, opal)
    assert open_packets(old.run_id) == ["nobody_eligible"]


def test_where_a_rule_may_approve_it_does_so_again(desk: Desk, opal: User) -> None:
    desk.till.verdict = Verdict("auto", "toy.auto", "It is small.")
    run = desk.start(workflow="toy-execute")
    desk.advance()
    age(run.pk, 700, "approvals_proposal")
    void_lapsed(by=SWEEP, clock=db_clock)
    proposal = ask(desk, run.pk, opal)
    assert proposal.status == "approved"
    assert Run.objects.get(pk=run.pk).status == "executing"
    desk.work()
    assert Command.objects.get(proposal=proposal).status == "confirmed"


# -- what is not asked again -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answered", "status"),
    [(answer(422, code="no"), "refused"), (answer(401), "dead"), (answer(201), "unknown")],
)
def test_what_the_table_does_not_offer(desk: Desk, opal: User, answered: Any, status: str) -> None:
    command = desk.approved()
    desk.till.answers = [answered]
    desk.work()
    assert fresh(command).status == status
    with pytest.raises(NothingToAskAgain):
        ask(desk, command.run_id, opal)


def test_what_a_reviewer_wanted_changed_is_not_asked_again_as_it_was(desk: Desk, opal: User) -> None:
    proposal = desk.proposed()
    desk.decide(proposal, "request_changes")
    with pytest.raises(NothingToAskAgain):
        ask(desk, proposal.run_id, opal)
    age(proposal.run_id, 5 * 3600, "approvals_proposal")
    assert expire_due(clock=db_clock) == 1
    with pytest.raises(NothingToAskAgain) as refused:
        ask(desk, proposal.run_id, opal)
    assert refused.value.details == {"step": "waiting", "proposal_status": "expired"}


@pytest.mark.parametrize("step", ["pay", "read", "tell"])
def test_what_goes_on_by_itself(desk: Desk, opal: User, step: str) -> None:
    proposal = desk.proposed()
    with pytest.raises(NothingToAskAgain):
        ask(desk, proposal.run_id, opal, step)
    assert Proposal.objects.count() == 1


def test_after_a_wish_to_cancel_nothing_new_is_asked(desk: Desk, opal: User) -> None:
    old = lapsed(desk)
    as_superuser("UPDATE workflows_run SET cancel_requested_at = now() WHERE id = %s", old.run_id)
    with pytest.raises(CancelRequested):
        ask(desk, old.run_id, opal)
    nothing_changed(old)
    as_superuser("UPDATE workflows_run SET cancel_requested_at = NULL WHERE id = %s", old.run_id)
    cancel_run(tenant_id=desk.tenant.pk, run_id=old.run_id, reason="no more", by=AGENT, clock=db_clock)
    with pytest.raises(NothingToAskAgain):
        ask(desk, old.run_id, opal)


@pytest.mark.parametrize("what", ["arguments", "target", "evidence", "bytes"])
def test_changed_bytes_are_not_asked_again(desk: Desk, opal: User, what: str) -> None:
    """Reviewers would take them for what was proposed at first."""
    piece = EvidencePiece("message", "What was said", b"Please pay.", db_clock())
    arguments = {"order": "1042", "amount": "10.00", "currency": "EUR"}
    desk.till.stages["pay"] = Propose("toy.pay", arguments, "because", (piece,))
    old = lapsed(desk)
    if what == "evidence":
        as_superuser(
            "UPDATE approvals_evidence SET content = 'Pay more.' WHERE proposal_id = %s", old.proposal_id
        )
    elif what == "bytes":
        as_superuser("UPDATE approvals_proposal SET contract = '{' WHERE id = %s", old.proposal_id)
    else:
        before, after = {"arguments": ("10.00", "99.00"), "target": ("order:1042", "order:1043")}[what]
        changed_by_hand(old.proposal_id, "contract", before, after)
    with pytest.raises(ContractChanged):
        ask(desk, old.run_id, opal)
    nothing_changed(old)


@pytest.mark.parametrize("roles", [[], [Role.REVIEWER], [Role.AUDITOR]])
def test_other_roles_do_not_ask_again(desk: Desk, roles: list[Role]) -> None:
    old = lapsed(desk)
    with pytest.raises(RoleMissing):
        ask(desk, old.run_id, make_user(desk.tenant, "ann", roles=roles))
    nothing_changed(old)


@pytest.mark.parametrize("via", [Via.TOKEN, Via.LINK, Via.COMMAND_LINE, Via.WORKER, Via.CLOCK, Via.RULE])
def test_nothing_but_a_session_asks_again(desk: Desk, opal: User, via: Via) -> None:
    old = lapsed(desk)
    with pytest.raises(TokenCannotAttest):
        ask(desk, old.run_id, opal, by=replace(person(opal), via=via))
    nothing_changed(old)


def test_another_tenants_step_is_not_there(desk: Desk, opal: User) -> None:
    old = lapsed(desk)
    other = make_tenant("lagoon")
    eve = make_user(other, "eve", roles=[Role.ADMIN])
    with pytest.raises(NotFound):
        ask(desk, old.run_id, eve, tenant_id=other.pk)
    with pytest.raises(NotFound):
        ask(desk, old.run_id, opal, "nothing")
    nothing_changed(old)


# -- two clicks --------------------------------------------------------------------------------------------------


def test_of_many_clicks_at_once_one_makes_the_new_version(desk: Desk, opal: User) -> None:
    old = lapsed(desk)
    otto = make_user(desk.tenant, "otto", roles=[Role.OWNER])
    people = [opal, otto, opal, otto]
    answers = at_once(4, lambda number: ask(desk, old.run_id, people[number]).version)
    assert answers == {"2": 1, "already_superseded": 3}
    assert Proposal.objects.filter(run_id=old.run_id).count() == 2
    assert Event.objects.filter(kind="step.asked_again").count() == 1


def test_a_later_click_is_told_of_the_newer_version(desk: Desk, opal: User) -> None:
    old = lapsed(desk)
    proposal = ask(desk, old.run_id, opal)
    with pytest.raises(AlreadySuperseded) as refused:
        ask(desk, old.run_id, opal)
    assert refused.value.details == {"proposal_id": str(proposal.pk)}


def test_against_a_cancel(desk: Desk, opal: User) -> None:
    old = lapsed(desk)

    def do(number: int) -> str:
        if number:
            return cancel_run(
                tenant_id=desk.tenant.pk, run_id=old.run_id, reason="no", by=AGENT, clock=db_clock
            )
        return ask(desk, old.run_id, opal).status

    answers = at_once(2, do)
    assert answers in ({"cancelled": 1, "pending": 1}, {"cancelled": 1, "nothing_to_ask_again": 1})
    assert Run.objects.get(pk=old.run_id).status == "cancelled"
    assert not Proposal.objects.filter(run_id=old.run_id, status="pending").exists()
    assert Step.objects.get(run_id=old.run_id, key="pay").status == "cancelled"
