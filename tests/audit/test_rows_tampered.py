"""Columns beside the states: somebody with all rights changes one, the daily check and the offline verifier find it."""

from base64 import b64decode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from access.actions import (
    add_to_group,
    create_group,
    create_tenant,
    create_user,
    remove_from_group,
    set_roles,
)
from access.enums import Role
from access.models import Membership, User
from approvals.bound import DECISION, LATER, PROPOSAL
from approvals.models import Decision, Proposal
from approvals.models.proposals import BOUND
from audit.sealer import seal
from audit.tasks import verify_daily
from audit.verify import verify_whole
from common.clock import db_clock
from common.models import Tenant
from tests.access.people import INSTALLER
from tests.audit.bundling import Auditor, found, lines, sign, taken
from tests.audit.events import tamper
from tests.workflows import toy
from tests.workflows.conftest import Desk, desk
from workflows import registry
from workflows.models import Command
from workflows.results import EvidencePiece, Propose

__all__ = ["desk"]
pytestmark = pytest.mark.django_db

PROPOSED = {
    "decide_by": "decide_by + interval '1 day'", "created_at": "created_at - interval '1 day'",
    "decided_at": "decided_at - interval '1 minute'", "execute_by": "execute_by + interval '1 day'",
    "excluded_users": "ARRAY[gen_random_uuid()]", "proposed_by": "'api:other'", "risk": "risk + 1",
    "policy": "jsonb_set(policy, '{version}', '99')", "business_key": "'other'", "generation": "generation + 1",
    "material_digest": "'other'", "idempotency_key": "'other'", "proposed_through": "'token:other'",
    "workflow_version": "workflow_version + 1",
}  # fmt: skip
DECIDED = {
    "at": "at - interval '1 hour'", "role": "'owner'", "reason_code": "'duplicate'", "parts_seen": "'{all}'",
    "acknowledged": "'{all}'", "posture": "'break_glass'",
    "user_id": "(SELECT id FROM access_user WHERE username = 'ben')",
}  # fmt: skip
ORDERED = {
    "target": "'order:999'", "provider_reference": "'other'", "tries": "tries + 1", "business_key": "'other'",
    "settled_by": "'person'", "provider": "'other'", "created_at": "created_at - interval '1 day'",
}  # fmt: skip
TRIED = {"sent_at": "sent_at - interval '1 day'"}
CHANGES = [
    *(
        f"UPDATE approvals_proposal SET {name} = {to} WHERE id = '{{proposal}}'"
        for name, to in PROPOSED.items()
    ),
    *(
        f"UPDATE approvals_decision SET {name} = {to} WHERE proposal_id = '{{proposal}}'"
        for name, to in DECIDED.items()
    ),
    *(f"UPDATE workflows_command SET {name} = {to} WHERE id = '{{command}}'" for name, to in ORDERED.items()),
    *(
        f"UPDATE workflows_attempt SET {name} = {to} WHERE command_id = '{{command}}'"
        for name, to in TRIED.items()
    ),
    "DELETE FROM workflows_attempt WHERE command_id = '{command}'",
    "DELETE FROM approvals_decision WHERE proposal_id = '{proposal}'",
    "DELETE FROM common_contentkey WHERE run_id = (SELECT run_id FROM workflows_command WHERE id = '{command}')",
]


def lived(desk: Desk, order: str = "201", **more: Any) -> Command:
    command = desk.approved(order=order, **more)
    desk.work()
    desk.advance()
    return Command.objects.get(pk=command.pk)


@pytest.fixture
def auditor(tmp_path: Path) -> Auditor:
    return Auditor(tmp_path)


@pytest.mark.parametrize("sql", CHANGES)
def test_a_column_that_was_changed_is_found_inside_and_outside(
    desk: Desk, auditor: Auditor, sql: str
) -> None:
    command = lived(desk)
    auditor.keep(sign(desk.tenant.pk))
    assert verify_whole(desk.tenant.pk).holds
    for name, ident in (("proposal", command.proposal_id), ("command", command.pk)):
        sql = sql.replace(f"{{{name}}}", str(ident))
    tamper(sql)
    assert verify_daily() is False
    code, what = found(auditor.verify(taken(desk.tenant)))
    assert (code, what in ("row", "decision", "content")) == (1, True)


def test_what_never_changes_is_bound() -> None:
    """A column that is added to the wall's list is held fast by the event as well, or named here with its reason."""
    columns = {Proposal._meta.get_field(name).attname for name in BOUND}
    elsewhere = {"contract", "view", "volatile"}  # their digests; what is not bound to the approval
    assert columns - elsewhere <= {*PROPOSAL, *LATER}
    frozen = {field.attname for field in Decision._meta.concrete_fields} - {"id", "reason", "replaced_at"}
    assert frozen >= set(DECISION)


# -- who decided, and when --------------------------------------------------------------------------------------------


@pytest.fixture
def known(transactional_db: None) -> Desk:
    """A tenant whose history knows everybody, because the product's own actions made them."""
    toy.install()
    registry.register_definitions(clock=db_clock)
    tenant = create_tenant(slug="harbour", name="Harbour", by=INSTALLER, clock=db_clock)
    ada, ben = (member(tenant, name) for name in ("ada", "ben"))
    return Desk(tenant, ada, ben, toy.reset())


def member(tenant: Tenant, name: str, *roles: Role) -> User:
    wanted = roles or (Role.REVIEWER,)
    return create_user(
        tenant=tenant, username=name, password=None, roles=wanted, by=INSTALLER, clock=db_clock
    )


def verdict(desk: Desk, auditor: Auditor) -> tuple[int, str]:
    """Of a bundle all of which is signed: the signer signs what is in the chain, not what is true."""
    seal(db_clock)
    auditor.keep(sign(desk.tenant.pk))
    return found(auditor.verify(taken(desk.tenant)))


def test_a_history_that_knows_everybody_holds(known: Desk, auditor: Auditor) -> None:
    group = create_group(tenant=known.tenant, name="Desk", by=INSTALLER, clock=db_clock)
    add_to_group(group=group, user=known.ada, by=INSTALLER, clock=db_clock)
    lived(known)
    remove_from_group(group=group, user=known.ada, by=INSTALLER, clock=db_clock)
    set_roles(tenant=known.tenant, user=known.ada, roles=[Role.AUDITOR], by=INSTALLER, clock=db_clock)
    assert verify_whole(known.tenant.pk).holds
    assert verdict(known, auditor) == (0, "")


@pytest.mark.parametrize("sql", [
    "UPDATE access_membership SET roles = '{owner,reviewer}' WHERE user_id = %s",
    "UPDATE access_membership SET is_active = false WHERE user_id = %s",
    "DELETE FROM access_membership WHERE user_id = %s",
    """INSERT INTO access_groupmembership (id, tenant_id, membership_id, group_id)
    SELECT gen_random_uuid(), m.tenant_id, m.id, g.id FROM access_membership m JOIN access_group g USING (tenant_id)
    WHERE m.user_id = %s""",
])  # fmt: skip
def test_a_place_that_somebody_was_given_past_the_product(known: Desk, sql: str) -> None:
    create_group(tenant=known.tenant, name="Desk", by=INSTALLER, clock=db_clock)
    seal(db_clock)
    assert verify_whole(known.tenant.pk).holds
    tamper(sql, known.ben.pk)
    assert f"user:{known.ben.pk}" in verify_whole(known.tenant.pk).meaning


def test_a_member_of_whom_the_history_knows_nothing(known: Desk, auditor: Auditor) -> None:
    """Their own session, their own vote, all of it signed: only who they were does not fit."""
    stranger = User.objects.create_user("eve")
    Membership.objects.create(tenant=known.tenant, user=stranger, roles=[Role.REVIEWER])
    known.decide(known.proposed(order="300"), user=stranger)
    seal(db_clock)
    assert "stands in no event" in verify_whole(known.tenant.pk).meaning
    assert verdict(known, auditor) == (1, "decider")


def test_a_decision_by_somebody_whose_role_was_put_in_the_table(known: Desk, auditor: Auditor) -> None:
    cleo = member(known.tenant, "cleo", Role.AUDITOR)
    proposal = known.proposed(order="300")
    tamper("UPDATE access_membership SET roles = '{reviewer}' WHERE user_id = %s", cleo.pk)
    known.decide(proposal, user=cleo)
    tamper("UPDATE access_membership SET roles = '{auditor}' WHERE user_id = %s", cleo.pk)
    assert verdict(known, auditor) == (1, "decider")


def test_a_decision_after_its_time(known: Desk, auditor: Auditor) -> None:
    """The time was put off in the row, by somebody who can switch the walls off."""
    proposal = known.proposed(order="300")
    late = proposal.decide_by + timedelta(hours=1)
    tamper(
        "UPDATE approvals_proposal SET decide_by = decide_by + interval '1 day' WHERE id = %s", proposal.pk
    )
    known.decide(proposal, clock=lambda: late)
    assert verdict(known, auditor) == (1, "late")


def test_a_break_glass_that_nobody_broke(known: Desk, auditor: Auditor) -> None:
    """Put into the table for the while of one decision: the history knows of none."""
    proposal = known.proposed(order="300")
    tamper(
        "UPDATE approvals_proposal SET excluded_users = ARRAY[%s]::uuid[] WHERE id = %s",
        known.ada.pk,
        proposal.pk,
    )
    tamper(
        "INSERT INTO access_breakglass (id, tenant_id, created_at, created_by, ends_at, reason, ended_by, end_reason)"
        " VALUES (gen_random_uuid(), %s, now(), 'user:x', now() + interval '1 hour', 'x', '', '')", known.tenant.pk,
    )  # fmt: skip
    known.decide(proposal)
    assert verdict(known, auditor) == (1, "decider")


# -- what it rested on ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [
    "UPDATE approvals_evidence SET content = 'Pay nothing.' WHERE proposal_id = %s",
    "UPDATE approvals_evidence SET content = set_byte(content, length(content) - 1, 7) WHERE proposal_id = %s",
    "UPDATE approvals_evidence SET digest = 'sha256:' || repeat('0', 64) WHERE proposal_id = %s",
    "UPDATE approvals_evidence SET salt = decode(repeat('00', 32), 'hex') WHERE proposal_id = %s",
    "UPDATE approvals_evidence SET content = NULL WHERE proposal_id = %s",
    "DELETE FROM approvals_evidence WHERE proposal_id = %s",
])  # fmt: skip
def test_evidence_that_was_changed(desk: Desk, auditor: Auditor, sql: str) -> None:
    pieces = (EvidencePiece("message", "What was said", b"Please pay.", db_clock()),)
    arguments = {"order": "201", "amount": "10.00", "currency": "EUR"}
    desk.till.stages["pay"] = Propose("toy.pay", arguments, "the test wants it", evidence=pieces)
    command = lived(desk)
    auditor.keep(sign(desk.tenant.pk))
    assert verify_whole(desk.tenant.pk).holds
    bundle = taken(desk.tenant)
    [piece] = lines(bundle, "contracts.jsonl")[0]["evidence"]
    assert b64decode(piece["content"]) == b"Please pay."
    assert found(auditor.verify(bundle)) == (0, "")
    tamper(sql, command.proposal_id)
    assert "evidence" in verify_whole(desk.tenant.pk).meaning
    code, what = found(auditor.verify(taken(desk.tenant)))
    assert (code, what in ("evidence", "content")) == (1, True)


def test_without_the_contents_the_salt_stays_here(desk: Desk) -> None:
    """With it and the digest, what was erased or is not shown could be guessed."""
    pieces = (EvidencePiece("message", "What was said", b"yes", db_clock()),)
    arguments = {"order": "201", "amount": "10.00", "currency": "EUR"}
    desk.till.stages["pay"] = Propose("toy.pay", arguments, "the test wants it", evidence=pieces)
    lived(desk)
    [piece] = lines(taken(desk.tenant, contracts=False), "contracts.jsonl")[0]["evidence"]
    assert (piece["content"], piece["salt"], piece["erased"]) == (None, None, False)
