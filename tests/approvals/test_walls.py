"""Every wall of the approvals tables is broken on purpose, as the application role, and named by what it says."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Model

from approvals.enums import Mode, ProposalStatus
from approvals.models import BOUND, Decision, Evidence, Proposal
from common.fsm import allowed_moves
from common.sealed import Ready
from tests import factories, rows
from tests.approvals import later_walls, signature_walls, talk_walls, trait_walls
from tests.walls import WAYS, another_value, delete_by_sql, insert, names_in, refused_by

pytestmark = pytest.mark.django_db

P = ProposalStatus


def proposal_row(**fields: Any) -> Proposal:
    """Not saved; of a step that has no proposal."""
    run = factories.make_run()
    return rows.proposal_row(run, factories.make_step(run), **fields)


def proposal_of_another_step(step_of: Proposal, **fields: Any) -> Proposal:
    run = factories.make_run(step_of.tenant)
    return rows.proposal_row(run, factories.make_step(run), **fields)


def decision_row(**fields: Any) -> Decision:
    proposal = factories.make_proposal()
    return rows.decision_row(proposal, factories.make_user(proposal.tenant), **fields)


def second_vote() -> Decision:
    first = decision_row()
    first.save()
    return rows.decision_row(first.proposal, first.user, kind="reject")


def second_live_proposal() -> Proposal:
    first = factories.make_proposal()
    run = factories.Run.objects.get(pk=first.run_id)
    return rows.proposal_row(run, run.steps.get(key=first.step))


def second_successor() -> Proposal:
    old = factories.make_proposal(status=P.SUPERSEDED)
    proposal_of_another_step(old, supersedes=old).save()
    return proposal_of_another_step(old, supersedes=old)


def evidence_at_the_same_place() -> Evidence:
    first = factories.make_evidence(factories.make_proposal())
    return rows.evidence_row(first.proposal, position=first.position)


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("approvals_proposal_moves", lambda: proposal_row(status=P.APPROVED)),
    ("approvals_proposal_group_tenant", lambda: proposal_row(group=factories.make_group(factories.make_tenant()))),
    ("approvals_proposal_supersedes_tenant",
        lambda: proposal_row(supersedes=factories.make_proposal(status=P.EXPIRED))),
    ("approvals_proposal_mode_known", lambda: proposal_row(mode="pretend")),
    ("approvals_proposal_quorum", lambda: proposal_row(needed=0, policy={"verdict": "ask_one"})),
    ("approvals_proposal_one_successor", second_successor),
    ("approvals_proposal_one_live_per_step", second_live_proposal),
    ("approvals_evidence_proposal_tenant", lambda: rows.evidence_row(
        factories.make_proposal(), tenant_id=factories.make_tenant().pk)),
    ("approvals_evidence_position", evidence_at_the_same_place),
    ("approvals_decision_proposal_tenant", lambda: decision_row(tenant_id=factories.make_tenant().pk)),
    ("approvals_decision_group_tenant", lambda: decision_row(group=factories.make_group(factories.make_tenant()))),
    ("approvals_decision_kind_known", lambda: decision_row(kind="shrug")),
    ("approvals_decision_by_a_person_or_a_rule", lambda: decision_row(via="token")),
    ("approvals_decision_one_standing_vote", second_vote),
    *talk_walls.INSERTS,
    *later_walls.INSERTS,
    *trait_walls.INSERTS,
    *signature_walls.INSERTS,
]  # fmt: skip


@pytest.mark.parametrize(("wall", "make"), INSERTS, ids=[name for name, _ in INSERTS])
def test_insert_is_refused(wall: str, make: Callable[[], Model]) -> None:
    row = make()
    with refused_by(wall):
        insert(row)


@pytest.mark.parametrize("fields", [
    {"user": None, "rule": "", "via": "rule"}, {"rule": "refund.limit", "rule_version": 1}, {"via": "worker"},
    {"user": None, "rule": "refund.limit", "rule_version": None, "via": "rule"},
])  # fmt: skip
def test_a_decision_is_by_one_person_in_a_session_or_by_one_versioned_rule(fields: dict[str, Any]) -> None:
    row = decision_row()
    for name, value in fields.items():
        setattr(row, name, value)
    with refused_by("approvals_decision_by_a_person_or_a_rule"):
        insert(row)


@pytest.mark.parametrize("needed", [0, 3])
def test_quorum_is_one_or_two_people_unless_the_rule_approves(needed: int) -> None:
    row = proposal_row()
    row.needed = needed
    with refused_by("approvals_proposal_quorum"):
        insert(row)


NOW = rows.now()
UPDATES: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("approvals_proposal_moves", lambda: factories.make_proposal(status=P.REJECTED), {"status": P.APPROVED}),
    ("approvals_proposal_approved_in_time", factories.make_proposal, {"status": P.APPROVED}),
    ("approvals_proposal_approved_in_time", factories.make_proposal, {
        "status": P.APPROVED, "execute_by": NOW, "decided_at": NOW + timedelta(days=1)}),
    ("approvals_proposal_ended_once_final", factories.make_proposal, {"status": P.EXPIRED}),
    ("approvals_proposal_ended_once_final", factories.make_proposal, {"ended_at": NOW}),
    ("approvals_proposal_bound", lambda: factories.make_proposal(status=P.APPROVED), {"execute_by": NOW}),
    ("approvals_proposal_bound", lambda: factories.make_proposal(status=P.APPROVED), {"decided_at": NOW}),
    ("approvals_proposal_bound", lambda: factories.make_proposal(status=P.EXPIRED), {"ended_at": NOW}),
    ("approvals_evidence_bound", lambda: factories.make_evidence(factories.make_proposal()), {"content": b"Other."}),
    *talk_walls.UPDATES,
    *later_walls.UPDATES,
    *trait_walls.UPDATES,
    *signature_walls.UPDATES,
]  # fmt: skip


@pytest.mark.parametrize(
    ("wall", "make", "changes"), UPDATES, ids=[f"{u[0]}-{n}" for n, u in enumerate(UPDATES)]
)
def test_update_is_refused(wall: str, make: Callable[[], Model], changes: dict[str, Any]) -> None:
    row = make()
    for way in WAYS:
        with refused_by(wall):
            way(row, changes)


def test_a_replaced_vote_stays_replaced() -> None:
    vote = decision_row(replaced_at=NOW)
    vote.save()
    for way in WAYS:
        with refused_by("approvals_decision_bound"):
            way(vote, {"replaced_at": None})


@pytest.mark.parametrize("column", BOUND)
def test_bound_columns_of_a_proposal_never_change(column: str) -> None:
    proposal = factories.make_proposal()
    for way in WAYS:
        with refused_by("approvals_proposal_bound"):
            way(proposal, {column: another_value(proposal, column)})


@pytest.mark.parametrize("column", ["kind", "title", "source", "ref", "salt", "digest", "captured_at", "fresh_until",
                                    "asserted", "data_class", "proposal", "tenant", "position"])  # fmt: skip
def test_bound_columns_of_evidence_never_change(column: str) -> None:
    evidence = factories.make_evidence(factories.make_proposal())
    for way in WAYS:
        with refused_by("approvals_evidence_bound"):
            way(evidence, {column: another_value(evidence, column)})


def test_evidence_may_be_erased_once_and_for_ever() -> None:
    evidence = factories.make_evidence(factories.make_proposal())
    Evidence.objects.update(content=None)
    with refused_by("approvals_evidence_bound"):
        Evidence.objects.update(content=Ready(b"It was like that."))
    evidence.refresh_from_db()
    assert evidence.content is None


@pytest.mark.parametrize("column", ["kind", "user", "role", "rule", "digest", "view_digest", "parts_seen",
                                    "acknowledged", "reason", "performed_by", "via", "at"])  # fmt: skip
def test_bound_columns_of_a_decision_never_change(column: str) -> None:
    decision = decision_row()
    decision.save()
    for way in WAYS:
        with refused_by("approvals_decision_bound"):
            way(decision, {column: another_value(decision, column)})


@pytest.mark.parametrize(("wall", "make"), [
    ("approvals_proposal_bound", factories.make_proposal),
    ("approvals_evidence_bound", lambda: factories.make_evidence(factories.make_proposal())),
    ("approvals_decision_bound", lambda: factories.make_decision(factories.make_proposal(), None)),
    *talk_walls.ROWS,
    *later_walls.ROWS,
    *trait_walls.ROWS,
    *signature_walls.ROWS,
])  # fmt: skip
def test_rows_are_not_deleted(wall: str, make: Callable[[], Model]) -> None:
    row = make()
    with refused_by(wall):
        delete_by_sql(row)
    with refused_by(wall):
        type(row)._default_manager.filter(pk=row.pk).delete()


@pytest.mark.parametrize("source", P.values)
def test_every_undeclared_move_is_refused_whichever_way(source: str) -> None:
    proposal = factories.make_proposal(status=source)
    allowed = {target for start, target in allowed_moves(Proposal) if start == source}
    for target in set(P.values) - allowed - {source}:
        for way in WAYS:
            with refused_by("approvals_proposal_moves"):
                way(proposal, {"status": target})


def test_unknown_states_are_refused_even_without_triggers() -> None:
    """The owner's migrations run with triggers; should they ever be off, the words are still checked."""
    proposal = factories.make_proposal()
    with refused_by("approvals_proposal_status_known"):
        Proposal.objects.using("owner").filter(pk=proposal.pk).update(status="bogus", ended_at=NOW)


def test_modes_other_than_live_end_at_their_decision() -> None:
    proposal = factories.make_proposal(mode=Mode.SHADOW, status=P.APPROVED)
    assert proposal.status == P.APPROVED


def test_every_wall_is_broken_here() -> None:
    broken = {name for name, _ in INSERTS} | {name for name, _, _ in UPDATES}
    elsewhere = {
        "approvals_proposal_status_known", "approvals_evidence_bound", "approvals_decision_bound",
        # Targets of composite foreign keys: the primary key is refused first.
        "approvals_proposal_tenant_id", "approvals_proposal_tenant_id_mode", "approvals_decision_tenant_id",
        "approvals_question_tenant_id", "approvals_sample_tenant_id", "approvals_claim_tenant_id",
    }  # fmt: skip
    assert names_in("approvals") - broken - elsewhere == set()
