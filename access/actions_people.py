"""More writers of people: other accounts of the same person, who comes back, and what somebody answers for."""

from collections.abc import Iterable
from uuid import UUID

from access.actions import locked_row
from access.enums import DutyKind
from access.models import Duty, Membership, User
from access.policies import NotAMember, check_can_install, check_can_manage, check_member, check_reason
from audit.actions import Entry, record, record_many
from audit.actors import INSTALLATION, Actor
from common.clock import Clock
from common.db import lock_name
from common.errors import NotFound, Refused
from common.ids import new_id
from common.models import Tenant
from common.tx import action


class OwnAccounts(Refused):
    """Nobody takes their own accounts apart: another admin does that, or whoever runs the installation."""

    code = "own_accounts"
    http_status = 403


class SameAccount(Refused):
    """An account is the same person as itself already. Name another one."""

    code = "same_account"
    http_status = 422


@action
def link_accounts(
    *, tenant: Tenant, user: User, other: User, by: Actor, clock: Clock, reason: str = ""
) -> UUID:
    """Say that two accounts belong to one person; what either was linked with before is that person too.

    From the commit on they have one vote and one word together, and *their own* means what any of them asked for. All
    their rows are locked: whoever counts their approvals either sees it, or is waited for. Returns the person's id.
    """
    check_can_manage(by, tenant.id)
    if user.id == other.id:
        raise SameAccount
    rows = _locked_accounts(tenant.id, [user.id, other.id])
    if not {user.id, other.id} <= {row.user_id for row in rows}:
        raise NotAMember
    known = sorted({row.person_id for row in rows if row.person_id is not None})
    person = known[0] if known else new_id()
    Membership.objects.filter(id__in=[row.id for row in rows]).update(person_id=person)
    _record_accounts("membership.linked", tenant.id, user.id, rows, by=by, reason=reason.strip())
    return person


@action
def unlink_account(*, tenant: Tenant, user: User, by: Actor, clock: Clock, reason: str) -> None:
    """Say that this account is a person of its own after all. Raises ReasonNeeded, OwnAccounts.

    What was proposed before keeps all accounts that were the proposer's then.
    """
    check_can_manage(by, tenant.id)
    reason = check_reason(reason)
    rows = _locked_accounts(tenant.id, [user.id])
    if by.user_id is not None and by.user_id in {row.user_id for row in rows}:
        raise OwnAccounts
    if len(rows) < 2:
        return
    # A person with one account left needs no id.
    gone = rows if len(rows) == 2 else [row for row in rows if row.user_id == user.id]
    Membership.objects.filter(id__in=[row.id for row in gone]).update(person_id=None)
    _record_accounts("membership.unlinked", tenant.id, user.id, rows, by=by, reason=reason)


def _locked_accounts(tenant_id: UUID, user_ids: Iterable[UUID]) -> list[Membership]:
    """These accounts and all others of the same people, locked in one order; one admin at a time says who is who.

    Locks on rows alone do not do: whoever joins these people meanwhile is in none of the rows that were found.
    """
    lock_name(f"accounts of people {tenant_id}")
    named = Membership.objects.filter(tenant_id=tenant_id, user_id__in=user_ids)
    people = [person for person in named.values_list("person_id", flat=True) if person is not None]
    theirs = Membership.objects.filter(tenant_id=tenant_id, person_id__in=people)
    ids = [*named.values_list("id", flat=True), *theirs.values_list("id", flat=True)]
    return list(Membership.objects.select_for_update(no_key=True).filter(id__in=ids).order_by("id"))


def _record_accounts(
    kind: str, tenant_id: UUID, user_id: UUID, rows: Iterable[Membership], *, by: Actor, reason: str
) -> None:
    accounts = sorted(str(row.user_id) for row in rows)
    record(
        by=by, kind=kind, tenant_id=tenant_id, subject_type="user", subject_id=user_id, reason=reason,
        body={"accounts": accounts, "own": str(by.user_id) in accounts},
    )  # fmt: skip


@action
def reactivate_membership(*, tenant: Tenant, user: User, by: Actor, clock: Clock, reason: str = "") -> None:
    """Let a person back into the tenant, with the roles and groups they had. What was voided stays so."""
    check_can_manage(by, tenant.id)
    found = Membership.objects.filter(tenant=tenant, user=user).first()
    if found is None:
        raise NotAMember
    membership = locked_row(Membership, found.id, tenant.id)
    if membership.is_active:
        return
    membership.is_active = True
    membership.save(update_fields=["is_active"])
    record(
        by=by, kind="membership.reactivated", tenant_id=tenant.id, subject_type="user", subject_id=user.id,
        from_state="inactive", to_state="active", reason=reason, body={"roles": membership.roles},
    )  # fmt: skip


@action
def reactivate_user(*, user: User, by: Actor, clock: Clock, reason: str = "") -> None:
    """Open a closed account again, in all its tenants: at the command line only; no admin answers for all of them."""
    check_can_install(by)
    locked = User.objects.select_for_update(no_key=True).get(id=user.id)
    if locked.is_active:
        return
    locked.is_active = True
    locked.save(update_fields=["is_active"])
    tenants = sorted(Membership.objects.filter(user=user).values_list("tenant_id", flat=True))
    record_many(
        [
            Entry(
                by=by, kind="user.reactivated", tenant_id=tenant_id, subject_type="user", subject_id=user.id,
                from_state="inactive", to_state="active", reason=reason,
            )
            for tenant_id in tenants or [INSTALLATION]
        ]
    )  # fmt: skip


@action
def give_duty(
    *, tenant: Tenant, user: User, kind: DutyKind, workflow: str, by: Actor, clock: Clock,
    policy_version: int | None = None,
) -> Duty:  # fmt: skip
    """Say that a person owns a workflow, or wrote its policy (one version, or all). They do not decide on it from then.

    It counts for what is proposed after it. The same duty twice is one. Raises NotAMember.
    """
    check_can_manage(by, tenant.id)
    check_member(user.id, tenant.id)
    version = policy_version if kind == DutyKind.POLICY_EDITOR else None
    same = Duty.objects.filter(
        tenant=tenant, user=user, kind=kind, workflow=workflow, policy_version=version, ended_at=None
    )
    known = same.first()
    if known is not None:
        return known
    duty = Duty.objects.create(
        tenant=tenant, user=user, kind=kind, workflow=workflow, policy_version=version, created_at=clock()
    )
    _record_duty("duty.given", duty, by=by)
    return duty


@action
def end_duty(*, tenant: Tenant, duty_id: UUID, by: Actor, clock: Clock, reason: str) -> None:
    """The person no longer answers for it. Raises ReasonNeeded; what was proposed before stays closed to them."""
    check_can_manage(by, tenant.id)
    reason = check_reason(reason)
    duty = locked_row(Duty, duty_id, tenant.id)
    if duty.ended_at is not None:
        return
    duty.ended_at = clock()
    duty.save(update_fields=["ended_at"])
    _record_duty("duty.ended", duty, by=by, reason=reason)


def _record_duty(kind: str, duty: Duty, *, by: Actor, reason: str = "") -> None:
    record(
        by=by, kind=kind, tenant_id=duty.tenant_id, subject_type="user", subject_id=duty.user_id, reason=reason,
        body={"duty": duty.kind, "workflow": duty.workflow, "policy_version": duty.policy_version},
    )  # fmt: skip


def account_in(tenant: Tenant, user_id: UUID) -> User:
    """The person behind an account of this tenant; NotFound for everybody else's alike."""
    found = Membership.objects.filter(tenant=tenant, user_id=user_id).select_related("user").first()
    if found is None:
        raise NotFound
    return found.user
