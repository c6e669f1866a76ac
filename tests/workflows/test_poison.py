"""I18: rows that break whoever takes them stop alone; those behind them are executed, and a person is told."""

from typing import Any

import pytest

from audit.actors import worker_actor
from common.clock import db_clock
from common.digests import contract_digest
from common.strictjson import canonicalize, parse
from tests.workflows import toy
from tests.workflows.conftest import Desk
from tests.workflows.later import age, as_superuser, fresh, open_packets
from workflows import sweep
from workflows.enums import Lane
from workflows.models import Command
from workflows.worker.claim import Claim, claim_commands
from workflows.worker.loop import execute
from workflows.worker.recover import QUARANTINE_AFTER
from workflows.worker.send import give_back

pytestmark = pytest.mark.django_db


def rounds(commands: list[Command], count: int = QUARANTINE_AFTER + 1) -> None:
    """What workers and sweep do, with a lease's time in between."""
    for _ in range(count):
        sweep.drain()
        for command in commands:
            age(command.run_id, 60, "workflows_command")
        sweep.look_around()
        for command in commands:
            age(command.run_id, 60, "workflows_command")


def rewrite(command: Command, **changes: Any) -> None:
    """Other bytes under a digest that fits them, in the row and in the votes: only what they say is wrong."""
    contract: Any = parse(bytes(command.proposal.contract))
    contract |= changes
    stored = canonicalize({name: value for name, value in contract.items() if value is not None})
    digest = contract_digest(stored)
    as_superuser(
        "UPDATE approvals_proposal SET contract = %s, digest = %s WHERE id = %s",
        stored,
        digest,
        command.proposal_id,
    )
    as_superuser(
        "UPDATE approvals_decision SET digest = %s WHERE proposal_id = %s", digest, command.proposal_id
    )


def break_look(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    usual = toy.ToyPay.look

    def look(self: Any, site: Any, arguments: Any) -> Any:
        if arguments.order == "bad":
            raise RuntimeError("the operation's own code is broken")
        return usual(self, site, arguments)

    monkeypatch.setattr(toy.ToyPay, "look", look)


def forget_policy(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    rewrite(command, policy_version=None)


def other_arguments(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    rewrite(command, arguments={"order": "bad"})


@pytest.mark.parametrize("poison", [break_look, forget_policy, other_arguments])
def test_what_breaks_the_verification_is_quarantined_and_the_others_go_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, poison: Any
) -> None:
    bad, good = desk.approved(order="bad"), desk.approved(order="1")
    poison(monkeypatch, bad)
    sweep.drain()
    assert fresh(good).status == "confirmed"  # at once, behind the broken one
    rounds([bad])
    assert (fresh(bad).status, fresh(bad).failure_code) == ("dead", "quarantined")
    assert fresh(bad).claims == QUARANTINE_AFTER
    assert open_packets(bad.run_id) == ["command_dead"]
    assert len(desk.till.calls) == 1


@pytest.mark.parametrize("stored", [b"", b"{", b"[]", b"\xff\xfe", b"{}"])
def test_a_contract_that_cannot_be_read_is_void(desk: Desk, stored: bytes) -> None:
    """Field report A14: unreadable is an incident, nothing is dispatched, and a packet is made."""
    bad, good = desk.approved(order="bad"), desk.approved(order="1")
    digest = contract_digest(stored)
    as_superuser(
        "UPDATE approvals_proposal SET contract = %s, digest = %s WHERE id = %s",
        stored,
        digest,
        bad.proposal_id,
    )
    sweep.drain()
    assert fresh(good).status == "confirmed"
    assert (fresh(bad).status, fresh(bad).void_reason) == ("void", "digest")
    assert open_packets(bad.run_id)
    assert len(desk.till.calls) == 1


# -- what shares a batch with it, and how often it is claimed ---------------------------------------------------------


def claim(count: int = 10, lane: Lane = Lane.NEW) -> list[Claim]:
    return claim_commands(limit=count, lane=lane, worker="dies", by=worker_actor("dies"), clock=db_clock)


def lease_over(*commands: Command) -> None:
    for _ in range(2):
        for command in commands:
            age(command.run_id, 60, "workflows_command")
        sweep.look_around()


def test_those_claimed_together_with_a_poison_are_not_set_aside(desk: Desk) -> None:
    """A worker that dies at the first of its batch never began with the others: from then on each goes alone."""
    commands = [desk.approved(order=str(number)) for number in range(4)]
    claim()
    lease_over(*commands)
    assert {fresh(command).lane for command in commands} == {"reprocess"}
    bad, *others = commands
    while claims := claim(1, Lane.REPROCESS):
        if claims[0].command_id == bad.pk:
            lease_over(bad)
        else:
            execute(claims[0], by=worker_actor("lives"), clock=db_clock)
    assert (fresh(bad).status, fresh(bad).failure_code, fresh(bad).claims) == ("dead", "quarantined", 5)
    assert {fresh(command).status for command in others} == {"confirmed"}


def test_claims_stay_bounded_when_a_poison_is_given_back_now_and_then(desk: Desk) -> None:
    bad = desk.approved(order="bad")
    for number in range(16):
        claims = claim() or claim(1, Lane.REPROCESS)
        if number % 4 == 3:
            for one in claims:
                give_back(one, by=worker_actor("dies"), clock=db_clock)
        lease_over(bad)
    assert (fresh(bad).status, fresh(bad).failure_code) == ("dead", "quarantined")
    assert fresh(bad).claims < 10


# -- what a release took away -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "status", "packets"),
    [
        (toy.NOTHING_CAME, "unknown", ["command_unknown"]),
        (toy.Observation(sent=True, status=404), "refused", ["command_refused"]),
    ],
    ids=["unknown", "refused"],
)
def test_an_action_of_a_workflow_that_is_gone_still_ends_in_order(
    desk: Desk, seen: toy.Observation, status: str, packets: list[str]
) -> None:
    desk.till.answers.append(seen)
    bad = desk.approved(order="bad")
    as_superuser("UPDATE workflows_run SET workflow = 'no-such-flow' WHERE id = %s", bad.run_id)
    sweep.drain()
    assert fresh(bad).status == status
    assert open_packets(bad.run_id) == packets


def unknown_version(command: Command) -> None:
    as_superuser("UPDATE workflows_command SET operation_version = 9 WHERE id = %s", command.pk)


def test_what_no_code_here_knows_lapses_and_a_person_sees_it(desk: Desk) -> None:
    bad = desk.approved(order="bad")
    unknown_version(bad)
    age(bad.run_id, 3600, "approvals_proposal")
    sweep.look_around()
    assert fresh(bad).status == "void"
    assert open_packets(bad.run_id) == ["command_digest"], "its number is not the one that was approved"


def test_a_lost_call_of_a_version_that_no_code_here_knows_is_unknown_and_left_to_code_that_does(
    desk: Desk,
) -> None:
    desk.till.answers.append(toy.NOTHING_CAME)
    bad = desk.approved(order="bad")
    sweep.drain()
    unknown_version(bad)
    as_superuser("UPDATE workflows_command SET due_at = now() - interval '1 minute' WHERE id = %s", bad.pk)
    before = fresh(bad).due_at
    sweep.look_around()
    assert (fresh(bad).status, fresh(bad).due_at) == ("unknown", before)
