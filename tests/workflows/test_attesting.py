"""What people say about an outcome that nobody else can settle: who may, when, how many, and what comes of it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from access.actions import deactivate_membership, deactivate_user, set_roles
from access.enums import Role
from access.policies import RoleMissing
from approvals.refusals import OwnProposal
from audit.actors import Via
from common.clock import db_clock
from common.errors import NotFound, Refused
from repair.models import RepairPacket
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import AGENT, Desk, person
from tests.workflows.counter import ADMIN, Counter, events, open_counter, takes_two, words
from tests.workflows.later import as_superuser, changed_by_hand, end_of, fresh, look_up
from tests.workflows.test_worker_answers import CONFIRMED, READY
from tests.workflows.toy import NOTHING_CAME, PAID, ToyPay
from workflows.actions.attesting import (
    AlreadySettled,
    Contradicts,
    GroundsMissing,
    NotSettledYet,
    ReferenceMissing,
    ReferenceUnexpected,
    TokenCannotAttest,
    UnknownTestimony,
)
from workflows.actions.cancelling import cancel_run
from workflows.actions.freezing import Scope, freeze
from workflows.models import Document

pytestmark = pytest.mark.django_db


@pytest.fixture
def counter(desk: Desk) -> Counter:
    return open_counter(desk)


@pytest.fixture
def two(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> Counter:
    """The same, where it takes two people."""
    takes_two(monkeypatch)
    return counter


# -- what is settled ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("says", "effect"), [("happened", "happened"), ("partial", "partial")])
def test_it_happened(counter: Counter, says: str, effect: str) -> None:
    attested = counter.say(says)
    assert (attested.settled, attested.given, attested.needed) == (True, 1, 1)
    assert end_of(counter.command) == CONFIRMED | {"effect": effect}
    command = fresh(counter.command)
    assert (command.settled_by, command.provider_reference) == ("person", "re_9")
    assert Document.objects.filter(pk=command.result_ref).exists()
    assert len(counter.desk.till.calls) == 1
    [event] = events(command, "command.attested")
    assert event.performed_by == f"user:{counter.opal.pk}"
    assert event.reason == ""  # people's own words are sealed with their word, and not in the history
    assert event.body == {
        "says": says, "reference": "re_9", "role": "operator", "tries": 1, "given": 1, "needed": 1, "replaces": None,
    }  # fmt: skip
    [event] = events(command, "command.confirmed")
    assert (event.body["settled_by"], event.body["effect"]) == ("person", effect)
    assert RepairPacket.objects.get(run_id=command.run_id).status == "resolved"


def test_it_did_not_happen_and_is_sent_once_more(counter: Counter) -> None:
    counter.wait_until_settled()
    assert counter.say("did_not_happen").settled
    assert end_of(counter.command) == READY
    counter.desk.till.answers = [PAID]
    counter.desk.work()
    assert end_of(counter.command) == CONFIRMED
    assert len({call.idempotency_key for call in counter.desk.till.calls}) == 1
    assert (len(counter.desk.till.calls), fresh(counter.command).settled_by) == (2, "answer")


def cancelled(counter: Counter) -> None:
    cancel_run(
        tenant_id=counter.desk.tenant.pk, run_id=counter.command.run_id, reason="no more", by=AGENT, clock=db_clock
    )  # fmt: skip


def frozen(counter: Counter) -> None:
    freeze(scope=Scope(counter.desk.tenant.pk), why="a test", by=ADMIN, clock=db_clock)


def lapsed(counter: Counter) -> None:
    as_superuser(
        "UPDATE approvals_proposal SET execute_by = clock_timestamp() WHERE id = %s",
        counter.command.proposal_id,
    )


def policy_raised(counter: Counter) -> None:
    as_superuser("UPDATE workflows_definition SET version = 2 WHERE kind = 'policy' AND name = 'toy-policy'")


def reviewer_gone(counter: Counter) -> None:
    deactivate_user(user=counter.desk.ada, by=ADMIN, clock=db_clock)


def exhausted(counter: Counter) -> None:
    as_superuser("UPDATE workflows_command SET tries = 5 WHERE id = %s", counter.command.pk)


def resent(counter: Counter) -> None:
    counter.sent_once_more()


@pytest.mark.parametrize(
    ("meanwhile", "command", "proposal", "step"),
    [
        (cancelled, "cancelled", "withdrawn", "cancelled"),
        (frozen, "held", "approved", "waiting(provider)"),
        (lapsed, "void(lapsed)", "lapsed", "waiting(person)"),
        (policy_raised, "void(policy)", "invalidated", "waiting(person)"),
        (reviewer_gone, "void(reviewer)", "invalidated", "waiting(approval)"),
        (exhausted, "dead", "consumed", "waiting(person)"),
        (resent, "ready", "approved", "waiting(provider)"),
    ],
)
def test_what_follows_when_it_did_not_happen(
    counter: Counter, meanwhile: Callable[[Counter], None], command: str, proposal: str, step: str
) -> None:
    meanwhile(counter)
    counter.wait_until_settled()
    assert counter.say("did_not_happen").settled
    end = end_of(counter.command)
    assert (end["command"], end["effect"], end["proposal"], end["step"]) == (command, "none", proposal, step)
    assert "command_unknown" not in end["packets"]
    ended = command not in ("held", "ready")
    assert fresh(counter.command).settled_by == ("person" if ended else "")
    counter.desk.work()
    assert len(counter.desk.till.calls) == (2 if command == "ready" else 1)


# -- what is refused ---------------------------------------------------------------------------------------------


def test_before_the_settle_time_nobody_can_say_that_it_did_not_happen(counter: Counter) -> None:
    with pytest.raises(NotSettledYet) as refused:
        counter.say("did_not_happen")
    until = counter.command.last_sent_at + ToyPay.call_deadline + ToyPay.settle_time
    assert refused.value.details == {"until": until.isoformat()}
    assert counter.stays_unknown()
    assert words(counter.command) == []
    assert counter.say("happened").settled  # *yes* counts at any time


@pytest.mark.parametrize(
    ("says", "changes", "refusal"),
    [
        ("happened", {"reference": ""}, ReferenceMissing),
        ("partial", {"reference": "  "}, ReferenceMissing),
        ("did_not_happen", {"reference": "re_9"}, ReferenceUnexpected),
        ("happened", {"reason": " "}, GroundsMissing),
        ("Happened", {}, UnknownTestimony),
        ("happened", {"reference": "x" * 201}, Refused),
    ],
)
def test_what_is_said_must_be_whole(
    counter: Counter, says: str, changes: dict[str, Any], refusal: type[Refused]
) -> None:
    counter.wait_until_settled()
    with pytest.raises(refusal) as refused:
        counter.say(says, **changes)
    assert refused.value.http_status == 422
    assert counter.stays_unknown()
    assert words(counter.command) == []


@pytest.mark.parametrize("roles", [[], [Role.REVIEWER], [Role.AUDITOR]])
def test_other_roles_attest_nothing(counter: Counter, roles: list[Role]) -> None:
    with pytest.raises(RoleMissing):
        counter.say("happened", make_user(counter.desk.tenant, "ann", roles=roles))
    assert counter.stays_unknown()
    [event] = events(counter.command, "command.attestation_refused")
    assert (event.reason, event.body) == ("role_missing", {})


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.OWNER, Role.ADMIN])
def test_these_roles_do(counter: Counter, role: Role) -> None:
    assert counter.say("happened", make_user(counter.desk.tenant, "ann", roles=[role])).settled


def test_an_approver_who_has_the_role_may_attest(counter: Counter) -> None:
    roles = [Role.REVIEWER, Role.OPERATOR]
    set_roles(tenant=counter.desk.tenant, user=counter.desk.ada, roles=roles, by=ADMIN, clock=db_clock)
    assert counter.say("happened", counter.desk.ada).settled


@pytest.mark.parametrize("via", [Via.TOKEN, Via.LINK, Via.COMMAND_LINE, Via.WORKER, Via.CLOCK, Via.RULE])
def test_nothing_but_a_session_attests(counter: Counter, via: Via) -> None:
    with pytest.raises(TokenCannotAttest):
        counter.say("happened", by=replace(person(counter.opal), via=via))
    assert counter.stays_unknown()


@pytest.mark.parametrize("side", ["excluded", "requester", "on behalf"])
def test_the_proposers_own_people_attest_nothing(counter: Counter, side: str) -> None:
    opal, run_id = counter.opal.pk, counter.command.run_id
    if side == "excluded":
        as_superuser(
            "UPDATE approvals_proposal SET excluded_users = ARRAY[%s]::uuid[] WHERE run_id = %s", opal, run_id
        )
    elif side == "requester":
        as_superuser(
            "UPDATE approvals_proposal SET proposed_by = %s WHERE run_id = %s", f"user:{opal}", run_id
        )
    else:
        as_superuser("UPDATE workflows_run SET on_behalf_of = %s WHERE id = %s", f"user:{opal}", run_id)
    with pytest.raises(OwnProposal):
        counter.say("happened")
    assert counter.stays_unknown()
    assert counter.say("happened", counter.otto).settled


def test_another_tenants_command_is_not_there(counter: Counter) -> None:
    other = make_tenant("lagoon")
    eve = make_user(other, "eve", roles=[Role.ADMIN])
    with pytest.raises(NotFound):
        counter.say("happened", eve, tenant_id=other.pk)
    with pytest.raises(RoleMissing):
        counter.say("happened", eve)
    assert counter.stays_unknown()


def test_what_is_not_in_doubt_is_not_attested(counter: Counter) -> None:
    counter.say("happened")
    version = fresh(counter.command).state_version
    with pytest.raises(AlreadySettled) as refused:
        counter.say("did_not_happen", counter.otto)
    assert refused.value.details == {
        "status": "confirmed", "effect": "happened", "settled_by": "person", "state_version": version,
    }  # fmt: skip
    assert end_of(counter.command) == CONFIRMED
    assert words(counter.command) == [("opal", "happened", True)]


def test_nor_what_was_never_sent(desk: Desk) -> None:
    command = desk.approved()
    opal = make_user(desk.tenant, "opal", roles=[Role.OPERATOR])
    with pytest.raises(AlreadySettled) as refused:
        Counter(desk, command, opal, opal).say("happened")
    assert refused.value.details["status"] == "ready"


# -- two people --------------------------------------------------------------------------------------------------


def test_the_first_of_two_moves_nothing(two: Counter) -> None:
    attested = two.say("happened")
    assert (attested.settled, attested.given, attested.needed) == (False, 1, 2)
    assert two.stays_unknown()
    packet = RepairPacket.objects.get(run_id=two.command.run_id)
    assert packet.status == "awaiting_second"
    assert len(events(two.command, "packet.awaiting_second")) == 1
    attested = two.say("happened", two.otto)
    assert (attested.settled, attested.given, attested.needed) == (True, 2, 2)
    assert end_of(two.command) == CONFIRMED
    packet.refresh_from_db()
    assert packet.status == "resolved"
    assert [event.body["given"] for event in events(two.command, "command.attested")] == [1, 2]


def test_under_the_limit_one_is_enough(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    takes_two(monkeypatch, "10.01")
    assert counter.say("happened").settled


def test_changed_bytes_take_two_people(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who lowers the amount in the stored contract does not get round the second person."""
    takes_two(monkeypatch, "10.01")
    changed_by_hand(counter.command.proposal_id, "contract", "10.00", "01.00")
    assert not counter.say("happened").settled
    assert counter.say("happened", counter.otto).settled


def test_the_same_person_is_one_person(two: Counter) -> None:
    assert not two.say("happened").settled
    assert two.say("happened").given == 1
    assert (words(two.command), len(events(two.command, "command.attested"))) == (
        [("opal", "happened", True)],
        1,
    )
    assert not two.say("partial").settled  # another mind: the earlier word is replaced, and kept
    assert words(two.command) == [("opal", "happened", False), ("opal", "partial", True)]
    assert events(two.command, "command.attested")[1].body["replaces"] is not None
    assert two.stays_unknown()
    assert two.say("partial", two.otto).settled
    assert fresh(two.command).effect == "partial"


@pytest.mark.parametrize(
    ("says", "reference"), [("did_not_happen", ""), ("partial", "re_9"), ("happened", "re_8")]
)
def test_who_says_otherwise_is_refused_and_cannot_outvote(two: Counter, says: str, reference: str) -> None:
    two.wait_until_settled()
    two.say("happened")
    ann = make_user(two.desk.tenant, "ann", roles=[Role.ADMIN])
    for user in (two.otto, ann):
        with pytest.raises(Contradicts):
            two.say(says, user, reference)
    assert two.stays_unknown()
    assert words(two.command) == [("opal", "happened", True)]
    refused = events(two.command, "command.attestation_refused")
    assert [event.performed_by for event in refused] == [f"user:{two.otto.pk}", f"user:{ann.pk}"]
    assert refused[0].body == {"says": says, "reference": reference}
    two.say(says, two.opal, reference)  # convinced
    assert two.say(says, two.otto, reference).settled


def lost_role(counter: Counter) -> None:
    set_roles(tenant=counter.desk.tenant, user=counter.opal, roles=[Role.REVIEWER], by=ADMIN, clock=db_clock)


def lost_membership(counter: Counter) -> None:
    deactivate_membership(tenant=counter.desk.tenant, user=counter.opal, by=ADMIN, clock=db_clock)


def lost_account(counter: Counter) -> None:
    deactivate_user(user=counter.opal, by=ADMIN, clock=db_clock)


@pytest.mark.parametrize("meanwhile", [lost_role, lost_membership, lost_account, resent])
def test_a_word_that_no_longer_counts(two: Counter, meanwhile: Callable[[Counter], None]) -> None:
    """Its speaker lost the role in which it was said; or another request was made, of which it says nothing."""
    two.wait_until_settled()
    two.say("happened")
    meanwhile(two)
    attested = two.say("did_not_happen", two.otto)  # contradicts nothing that counts
    assert (attested.settled, attested.given) == (False, 1)
    assert two.stays_unknown()
    ann = make_user(two.desk.tenant, "ann", roles=[Role.ADMIN])
    assert two.say("did_not_happen", ann).settled
    assert fresh(two.command).status == "ready"


def test_a_second_request_with_the_same_key_sets_it_back(
    two: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reconciler sent it once more, and again nothing came back: the first word knew nothing of that."""
    monkeypatch.setattr(ToyPay, "key_retention", timedelta(hours=1))
    two.wait_until_settled()
    two.say("did_not_happen")
    packet = RepairPacket.objects.get(run_id=two.command.run_id)
    assert packet.status == "awaiting_second"
    two.desk.till.answers = [NOTHING_CAME]
    assert look_up(two.command)
    assert (two.stays_unknown(), fresh(two.command).tries) == (True, 2)
    packet.refresh_from_db()
    assert packet.status == "in_progress"
    with pytest.raises(NotSettledYet):
        two.say("did_not_happen", two.otto)
    two.wait_until_settled()
    assert [two.say("did_not_happen", user).given for user in (two.otto, two.opal)] == [1, 2]
    assert end_of(two.command) == READY
