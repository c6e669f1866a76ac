"""What sends several commands at once sends none that fails any check: that one is left as it was, to go alone."""

from collections.abc import Callable
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction

from access.models import Membership, User
from approvals.actions import withdraw
from approvals.models import Proposal
from audit.actors import Actor, Owner, Via
from audit.models import Event
from common.clock import db_clock
from common.digests import contract_digest
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, age, as_superuser, end_of, fresh, recover
from tests.workflows.test_worker_answers import CONFIRMED
from tests.workflows.test_worker_checks import TWO, tampered
from workflows.actions.freezing import Scope, freeze
from workflows.enums import HoldReason, Lane
from workflows.models import Attempt, Command, Hold
from workflows.results import CredentialRefused, RateLimited, SourceDown
from workflows.worker.batch import saving
from workflows.worker.batch.calls import look_together
from workflows.worker.batch.saving import Kept, RowsChanged
from workflows.worker.batch.send import commit_sent_together
from workflows.worker.claim import Claim, claim_commands

pytestmark = pytest.mark.django_db
ROOT = Actor("command_line:root", Via.COMMAND_LINE, Owner.PERSON)
Break = Callable[[Desk, Command], Any]


def claimed() -> list[Claim]:
    return claim_commands(limit=10, lane=Lane.NEW, worker="one", by=SWEEP, clock=db_clock)


def sent_of(claims: list[Claim], looks: Any = None, clock: Any = db_clock) -> set[Any]:
    looks = look_together(claims) if looks is None else looks
    sent = commit_sent_together(claims, looks, by=SWEEP, clock=clock)
    return {one.claim.command_id for one in sent}


def three(desk: Desk) -> tuple[Command, Command, Command]:
    """Of three that are ready, the one in the middle is the one that something happens to."""
    return desk.approved(order="1"), desk.approved(order="2"), desk.approved(order="3")


def update(table: str, change: str) -> Break:
    """A change behind the product's back: of the command, or of the proposal that it executes."""
    column = "proposal_id" if table == "approvals_decision" else "id"

    def do(_: Desk, command: Command) -> None:
        pk = command.proposal_id if table != "workflows_command" else command.pk
        as_superuser(f"UPDATE {table} SET {change} WHERE {column} = %s", pk)

    return do


def _tamper(desk: Desk, command: Command, *, digest_too: bool = False) -> None:
    changed = tampered(command.proposal)
    digest = contract_digest(changed) if digest_too else command.proposal.digest
    as_superuser(
        "UPDATE approvals_proposal SET contract = %s, digest = %s WHERE id = %s", changed, digest, command.proposal_id
    )  # fmt: skip


def _no_contract(desk: Desk, command: Command) -> None:
    digest = contract_digest(b"{}")
    as_superuser(
        "UPDATE approvals_proposal SET contract = %s, digest = %s WHERE id = %s", b"{}", digest, command.proposal_id
    )  # fmt: skip
    as_superuser(
        "UPDATE approvals_decision SET digest = %s WHERE proposal_id = %s", digest, command.proposal_id
    )


def _withdraw(desk: Desk, command: Command) -> None:
    withdraw(
        tenant_id=desk.tenant.pk, proposal_id=command.proposal_id, reason="no", clock=db_clock,
        by=Actor(command.proposal.proposed_by, Via.TOKEN, Owner.AUTOMATION),
    )  # fmt: skip


def _lose_lease(desk: Desk, command: Command) -> None:
    age(command.run_id, 60, "workflows_command")
    assert recover() == 1


def _ended_elsewhere(desk: Desk, command: Command, effect: str, column: str) -> None:
    """Another command has this one's business key or target, and ended with this effect. (In doubt it cannot be: of
    one key and of one target only one command is.)
    """
    other = desk.approved(order="9")
    as_superuser(
        "UPDATE workflows_command SET status = 'confirmed', effect = %s, ended_at = now(), settled_by = 'answer'"
        " WHERE id = %s", effect, other.pk,
    )  # fmt: skip
    as_superuser(
        f"UPDATE workflows_command SET {column} = (SELECT {column} FROM workflows_command WHERE id = %s)"
        " WHERE id = %s", command.pk, other.pk,
    )  # fmt: skip


def _open_circuit(desk: Desk, command: Command) -> None:
    Hold.objects.create(
        tenant_id=desk.tenant.pk, reason=HoldReason.CIRCUIT, provider="till", target=command.target, why="trouble",
        placed_by="worker:1", placed_at=db_clock(), pause_s=30,
    )  # fmt: skip


def _freeze(desk: Desk, command: Command) -> None:
    freeze(
        scope=Scope(desk.tenant.pk, operation="toy.pay", target=command.target), why="odd", by=ROOT, clock=db_clock
    )  # fmt: skip


AFTER: dict[str, Break] = {
    "tampered": _tamper,
    "tampered, digest too": lambda desk, command: _tamper(desk, command, digest_too=True),
    "no contract": _no_contract,
    "votes on other bytes": update("approvals_decision", "view_digest = 'x'"),
    "another target": update("workflows_command", "target = 'order:7'"),
    "another key": update("workflows_command", "idempotency_key = 'OTHER'"),
    "another operation's version": update("workflows_command", "operation_version = 2"),
    "execute-by over": update("approvals_proposal", "execute_by = now()"),
    "a second vote is needed": update("approvals_proposal", "needed = 2"),
    "its vote replaced": update("approvals_decision", "replaced_at = now()"),
    "voted by the proposer's side": lambda desk, command: as_superuser(
        "UPDATE approvals_proposal SET excluded_users = %s WHERE id = %s", [desk.ada.pk], command.proposal_id
    ),
    "not approved any more": update("approvals_proposal", "status = 'pending'"),
    "withdrawn": _withdraw,
    "superseded": update("approvals_proposal", "status = 'superseded', ended_at = now()"),
    "lease lost": _lose_lease,
    "another's token": update("workflows_command", "lease_token = gen_random_uuid()"),
    "an earlier effect": lambda desk, command: _ended_elsewhere(desk, command, "happened", "business_key"),
    "a partial one": lambda desk, command: _ended_elsewhere(desk, command, "partial", "business_key"),
    "overtaken": lambda desk, command: _ended_elsewhere(desk, command, "happened", "target"),
    "frozen": _freeze,
    "circuit open": _open_circuit,
}  # fmt: skip


@pytest.mark.parametrize("why", AFTER)
def test_what_changed_behind_the_look_is_not_sent_and_the_others_are(desk: Desk, why: str) -> None:
    """Invariant 1, check by check."""
    first, broken, last = three(desk)
    claims = claimed()
    looks = look_together(claims)
    AFTER[why](desk, broken)
    before = fresh(broken)
    assert sent_of(claims, looks) == {first.pk, last.pk}
    after = fresh(broken)
    assert (after.status, after.tries, after.state_version) == (
        before.status,
        before.tries,
        before.state_version,
    )
    assert not Attempt.objects.filter(command=broken, sent_at__isnull=False).exists()
    assert not Event.objects.filter(subject_id=broken.pk, kind="command.sent").exists()


@pytest.mark.parametrize("how", ["account", "membership", "role", "group"])
def test_nobody_counts_who_lost_the_right_to_approve(desk: Desk, how: str) -> None:
    """The first and the last were approved by ben, who keeps it."""
    broken = desk.approved(order="2")
    kept = desk.proposed(order="1")
    desk.decide(kept, user=desk.ben)
    claims = claimed()
    looks = look_together(claims)
    if how == "account":
        User.objects.filter(pk=desk.ada.pk).update(is_active=False)
    elif how == "group":
        as_superuser(
            "UPDATE approvals_proposal SET group_id = gen_random_uuid() WHERE id = %s", broken.proposal_id
        )
    else:
        change = {"is_active": False} if how == "membership" else {"roles": ["operator"]}
        Membership.objects.filter(user=desk.ada).update(**change)
    assert sent_of(claims, looks) == {Command.objects.get(proposal=kept).pk}


def test_of_two_who_are_needed_one_is_not_enough(desk: Desk) -> None:
    desk.till.verdict = TWO
    proposal = desk.proposed(order="2")
    desk.decide(proposal)
    desk.decide(proposal, user=desk.ben)
    claims = claimed()
    looks = look_together(claims)
    User.objects.filter(pk=desk.ben.pk).update(is_active=False)
    assert sent_of(claims, looks) == set()


def test_a_policy_that_changed_holds_all_of_it_back(desk: Desk) -> None:
    three(desk)
    claims = claimed()
    looks = look_together(claims)
    as_superuser(
        "UPDATE workflows_definition SET is_current = false WHERE kind = 'policy' AND name = 'toy-policy'"
    )
    as_superuser(
        "INSERT INTO workflows_definition (kind, name, version, content_hash, registered_at, is_current)"
        " VALUES ('policy', 'toy-policy', 2, 'x', now(), true)"
    )
    assert sent_of(claims, looks) == set()


@pytest.mark.parametrize(("left", "sent"), [(1, 3), (0, 2)], ids=["just before", "just then"])
def test_the_clock_that_counts_is_read_after_the_locks(desk: Desk, left: int, sent: int) -> None:
    commands = three(desk)
    end = min(Proposal.objects.get(pk=command.proposal_id).execute_by or db_clock() for command in commands)
    assert len(sent_of(claimed(), clock=lambda: end - timedelta(microseconds=left))) == sent


# -- what is read outside ----------------------------------------------------------------------------------------


def test_a_record_that_changed_since_is_not_touched(desk: Desk) -> None:
    first, broken, last = three(desk)
    desk.till.tags["2"] = "v2"
    assert sent_of(claimed()) == {first.pk, last.pk}
    assert fresh(broken).status == "claimed"


FOUND = [("re_0",), SourceDown("x"), RateLimited(), CredentialRefused("401")]


@pytest.mark.parametrize("found", FOUND, ids=["earlier", "down", "limit", "401"])
def test_what_a_source_says_before_the_send_counts_for_that_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, found: Any
) -> None:
    def earlier(self: Any, site: Any, arguments: Any) -> Any:
        if arguments.order != "2":
            return ()
        if isinstance(found, Exception):
            raise found
        return found

    first, broken, last = three(desk)
    monkeypatch.setattr("tests.workflows.toy.ToyPay.earlier_effects", earlier)
    assert sent_of(claimed()) == {first.pk, last.pk}
    assert fresh(broken).status == "claimed"


def test_pins_are_never_left_unread(desk: Desk) -> None:
    """An operation that has nothing to read today may have bound something yesterday."""
    three(desk)
    claims = claimed()
    assert sent_of(claims, {claim.command_id: None for claim in claims}) == set()


# -- locks -------------------------------------------------------------------------------------------------------


@contextmanager
def held_by_somebody(table: str, pk: Any) -> Any:
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR NO KEY UPDATE", [pk])
        yield


@pytest.mark.parametrize("table", ["approvals_proposal", "workflows_command"])
def test_a_row_that_somebody_has_locked_holds_up_nobody_else(desk: Desk, table: str) -> None:
    first, broken, last = three(desk)
    claims = claimed()
    with held_by_somebody(table, broken.pk if table == "workflows_command" else broken.proposal_id):
        assert sent_of(claims) == {first.pk, last.pk}
    assert fresh(broken).status == "claimed"


def test_somebody_who_is_being_deactivated_is_not_counted_meanwhile(desk: Desk) -> None:
    """Alone the command waits for it: `test_a_send_that_waits_for_a_reviewers_row_beyond_execute_by_is_void`."""
    three(desk)
    claims = claimed()
    with held_by_somebody("access_membership", Membership.objects.get(user=desk.ada).pk):
        assert sent_of(claims) == set()
    assert len(sent_of(claims)) == 3


# -- the last wall -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["command", "attempt"])
def test_fewer_rows_than_were_moved_undo_all_of_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    commands = three(desk)
    claims = claimed()
    made = saving._update
    key = commands[1].pk if model == "command" else Attempt.objects.get(command=commands[1]).pk

    def all_but_one(kind: Any, names: Any) -> str:
        return made(kind, names) + (f" AND r.id <> '{key}'" if kind.__name__.lower() == model else "")

    monkeypatch.setattr(saving, "_update", all_but_one)
    with pytest.raises(RowsChanged):
        sent_of(claims)
    assert {fresh(command).status for command in commands} == {"claimed"}
    assert set(Attempt.objects.values_list("status", flat=True)) == {"claimed"}
    assert not Event.objects.filter(kind="command.sent").exists()


def test_and_then_they_go_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = three(desk)
    monkeypatch.setattr(
        saving, "_update", lambda *_: "UPDATE workflows_command r SET tries = 9 WHERE false AND %s"
    )
    desk.work()
    assert [end_of(command) for command in commands] == [CONFIRMED] * 3
    assert len(desk.till.calls) == 3


def test_a_move_that_is_not_declared_is_not_saved(desk: Desk) -> None:
    command = desk.approved()
    kept = Kept([command])
    command.__dict__["status"] = "confirmed"
    with transaction.atomic(), pytest.raises(RowsChanged, match="from ready to confirmed"):
        kept.save()
