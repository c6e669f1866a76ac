"""The transaction that commits *sent* checks everything again: what no longer holds is void, and the run says why."""

from typing import Any

import pytest

from access.models import Membership, User
from approvals.models import Decision, Proposal
from common.clock import db_clock
from common.digests import contract_digest
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, age, as_superuser, end_of, fresh
from tests.workflows.test_worker_answers import CONFIRMED, RETRY
from workflows.enums import Lane
from workflows.models import Attempt, Command
from workflows.operations import Verdict
from workflows.results import CredentialRefused, RateLimited, SourceDown
from workflows.worker.claim import claim_commands
from workflows.worker.send import commit_sent, look

pytestmark = pytest.mark.django_db

PERSON = {"effect": "none", "step": "waiting(person)", "run": "manual_repair"}
VOID = {
    "digest": PERSON | {"command": "void(digest)", "proposal": "invalidated", "packets": ["command_digest"]},
    "policy": PERSON | {"command": "void(policy)", "proposal": "invalidated", "packets": ["command_policy"]},
    "pin": PERSON | {"command": "void(pin)", "proposal": "invalidated", "packets": ["command_pin"]},
    "lapsed": PERSON | {"command": "void(lapsed)", "proposal": "lapsed", "packets": ["command_lapsed"]},
}
TWO = Verdict("ask_two", "toy.two", "It is a big toy.")


def tampered(proposal: Proposal) -> bytes:
    changed = bytes(proposal.contract).replace(b'"amount":"10.00"', b'"amount":"99.00"')
    assert changed != bytes(proposal.contract)
    return changed


def nothing_sent(desk: Desk, command: Command, why: dict[str, Any]) -> None:
    desk.work()
    assert end_of(command) == why
    assert desk.till.calls == []
    assert Attempt.objects.get(command=command).status == "released"
    assert fresh(command).first_sent_at is None


# -- bytes -------------------------------------------------------------------------------------------------------


def test_arguments_changed_by_a_superuser_after_approval_are_not_sent(desk: Desk) -> None:
    command = desk.approved()
    as_superuser(
        "UPDATE approvals_proposal SET contract = %s WHERE id = %s",
        tampered(command.proposal),
        command.proposal_id,
    )
    nothing_sent(desk, command, VOID["digest"])


def test_nor_when_the_digest_was_changed_with_them(desk: Desk) -> None:
    """The people approved another digest; it is not asked again with the changed arguments either."""
    command = desk.approved()
    changed = tampered(command.proposal)
    as_superuser(
        "UPDATE approvals_proposal SET contract = %s, digest = %s WHERE id = %s", changed, contract_digest(changed),
        command.proposal_id,
    )  # fmt: skip
    nothing_sent(desk, command, VOID["digest"])
    assert Proposal.objects.count() == 1


@pytest.mark.parametrize("bytes_", [b"", b"\xff\xfe", b"[]", b"{}", b'{"arguments":'], ids=repr)
def test_nor_when_the_bytes_are_no_contract(desk: Desk, bytes_: bytes) -> None:
    """Field report A14: unreadable state is an incident."""
    command = desk.approved()
    as_superuser(
        "UPDATE approvals_proposal SET contract = %s, digest = %s WHERE id = %s", bytes_, contract_digest(bytes_),
        command.proposal_id,
    )  # fmt: skip
    as_superuser("UPDATE approvals_decision SET digest = %s", contract_digest(bytes_))
    nothing_sent(desk, command, VOID["digest"])


@pytest.mark.parametrize("change", ["target = 'order:7'", "idempotency_key = 'OTHER'"], ids=["target", "key"])
def test_a_command_that_is_not_the_one_of_its_contract_is_not_sent(desk: Desk, change: str) -> None:
    command = desk.approved()
    as_superuser(f"UPDATE workflows_command SET {change} WHERE id = %s", command.pk)
    nothing_sent(desk, command, VOID["digest"])


def test_bytes_that_were_changed_only_while_the_worker_looked_are_not_sent(desk: Desk) -> None:
    """What is sent is what was checked under the lock, not what was read before it."""
    command = desk.approved()
    [claim] = claim_commands(limit=1, lane=Lane.NEW, worker="one", by=SWEEP, clock=db_clock)
    original = bytes(command.proposal.contract)
    as_superuser(
        "UPDATE approvals_proposal SET contract = %s WHERE id = %s",
        tampered(command.proposal),
        command.proposal_id,
    )
    looked = look(claim, Command.objects.select_related("proposal", "run").get(pk=command.pk))
    as_superuser("UPDATE approvals_proposal SET contract = %s WHERE id = %s", original, command.proposal_id)
    assert commit_sent(claim, looked, by=SWEEP, clock=db_clock) is None
    assert end_of(command) == VOID["digest"]


# -- clock, policy, pins -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "sent"), [(595, True), (601, False)], ids=["just before", "just after"])
def test_execute_by(desk: Desk, seconds: int, sent: bool) -> None:
    """Field report D5: its own boundary, counted from the approval."""
    command = desk.approved()
    age(command.run_id, seconds)
    if sent:
        desk.work()
        assert end_of(command) == CONFIRMED
    else:
        nothing_sent(desk, command, VOID["lapsed"])


def test_approved_in_the_last_second_it_is_still_executed(desk: Desk) -> None:
    """Field report D9."""
    proposal = desk.proposed()
    age(proposal.run_id, 4 * 3600 - 3)
    desk.decide(Proposal.objects.get(pk=proposal.pk))
    command = Command.objects.get(proposal=proposal)
    age(command.run_id, 30)
    desk.work()
    assert end_of(command) == CONFIRMED


def test_a_policy_that_changed_after_the_approval(desk: Desk) -> None:
    """Field report C7."""
    command = desk.approved()
    as_superuser(
        "UPDATE workflows_definition SET is_current = false WHERE kind = 'policy' AND name = 'toy-policy'"
    )
    as_superuser(
        "INSERT INTO workflows_definition (kind, name, version, content_hash, registered_at, is_current)"
        " VALUES ('policy', 'toy-policy', 2, 'x', now(), true)"
    )
    nothing_sent(desk, command, VOID["policy"])


def test_a_record_that_changed_after_the_approval(desk: Desk) -> None:
    """Field report B15."""
    command = desk.approved()
    desk.till.tags["1042"] = "v2"
    nothing_sent(desk, command, VOID["pin"])
    # Which kind of record, for whoever looks into it; no id and no version, which nothing would erase there.
    assert Attempt.objects.get(command=command).detail == "another version now: order"


@pytest.mark.parametrize(
    ("failure", "pause"), [(SourceDown("x"), 2), (RateLimited(), 5)], ids=["down", "limited"]
)
def test_a_source_that_cannot_be_read_before_the_send_postpones_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, failure: Exception, pause: int
) -> None:
    command = desk.approved()

    def raises(*_: Any) -> None:
        raise failure

    monkeypatch.setattr("tests.workflows.toy.ToyPay.earlier_effects", raises)
    desk.work()
    assert end_of(command) == RETRY
    assert desk.till.calls == []
    monkeypatch.undo()
    age(command.run_id, pause + 1)
    desk.work()
    assert end_of(command) == CONFIRMED


def test_a_refused_credential_before_the_send_goes_to_a_person(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = desk.approved()

    def raises(*_: Any) -> None:
        raise CredentialRefused("401")

    monkeypatch.setattr("tests.workflows.toy.ToyPay.earlier_effects", raises)
    nothing_sent(
        desk, command, PERSON | {"command": "dead", "proposal": "consumed", "packets": ["command_dead"]}
    )


# -- people ------------------------------------------------------------------------------------------------------


def asked_again(desk: Desk, command: Command, *, packets: tuple[str, ...] = ()) -> Proposal:
    """void(reviewer): the new version waits for approval, made in the same transaction; nothing was sent."""
    desk.work()
    assert end_of(command) == {
        "command": "void(reviewer)", "effect": "none", "proposal": "invalidated", "step": "waiting(approval)",
        "run": "waiting_for_approval", "packets": list(packets),
    }  # fmt: skip
    assert desk.till.calls == []
    again = Proposal.objects.get(supersedes=command.proposal_id)
    old = command.proposal
    assert (again.status, again.version, again.idempotency_key, again.material_digest, again.proposed_by) == (
        "pending", 2, old.idempotency_key, old.material_digest, old.proposed_by,
    )  # fmt: skip
    assert again.digest != old.digest
    assert not Decision.objects.filter(proposal=again).exists()
    return again


@pytest.mark.parametrize("how", ["account", "membership", "role"])
def test_a_reviewer_who_is_none_any_more_does_not_count(desk: Desk, how: str) -> None:
    """Field report K12."""
    command = desk.approved()
    if how == "account":
        User.objects.filter(pk=desk.ada.pk).update(is_active=False)
    else:
        change = {"is_active": False} if how == "membership" else {"roles": ["operator"]}
        Membership.objects.filter(user=desk.ada).update(**change)
    again = asked_again(desk, command)
    desk.decide(again, user=desk.ben)
    desk.work()
    assert end_of(Command.objects.get(proposal=again)) == CONFIRMED


def test_of_two_who_approved_one_is_deactivated_after_the_quorum_was_met(desk: Desk) -> None:
    desk.till.verdict = TWO
    proposal = desk.proposed()
    desk.decide(proposal)
    desk.decide(proposal, user=desk.ben)
    command = Command.objects.get(proposal=proposal)
    User.objects.filter(pk=desk.ben.pk).update(is_active=False)
    again = asked_again(desk, command, packets=("nobody_eligible",))
    assert again.needed == 2


def test_a_rules_own_approval_needs_no_people(desk: Desk) -> None:
    desk.till.verdict = Verdict("auto", "toy.small", "It is small.")
    run = desk.start(workflow="toy-execute")
    desk.advance()
    command = Command.objects.get(run=run)
    User.objects.update(is_active=False)
    desk.work()
    assert end_of(command) == CONFIRMED


# -- the same thing before ---------------------------------------------------------------------------------------


def test_an_earlier_effect_at_the_provider_stops_for_a_person(desk: Desk) -> None:
    command = desk.approved()
    desk.till.earlier, desk.till.tags["1042"] = ("re_0",), "v2"
    nothing_sent(
        desk, command, PERSON | {"command": "dead", "proposal": "consumed", "packets": ["command_dead"]}
    )
    assert (fresh(command).settled_by, fresh(command).failure_code) == ("earlier_effect", "earlier_effect")


def test_an_earlier_effect_of_ours_stops_for_a_person(desk: Desk) -> None:
    """Field report A13: two proposals for one thing, one after the other."""
    first, other = desk.proposed(), desk.proposed()
    desk.decide(first)
    desk.work()
    desk.decide(other)  # it was proposed before the first had happened; later nobody is asked any more
    second = Command.objects.get(proposal=other)
    desk.work()
    assert len(desk.till.calls) == 1
    assert (fresh(second).status, fresh(second).settled_by) == ("dead", "earlier_effect")
