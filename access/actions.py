"""The only writers of people, roles, automations and tokens; each with its audit event in one transaction."""

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Model

from access import tokens
from access.actions_account import end_sessions
from access.enums import Role, Scope
from access.models import Agent, ApiToken, Group, GroupMembership, Membership, User
from access.policies import (
    UnknownRole,
    check_agent_usable,
    check_can_install,
    check_can_manage,
    check_keeps_an_admin,
    check_member,
    check_reason,
)
from audit.actions import Entry, record, record_many
from audit.actors import INSTALLATION, Actor
from common.clock import Clock
from common.errors import NotFound, Refused
from common.models import Tenant
from common.tx import action, system_action

Row = TypeVar("Row", bound=Model)

LONGEST_TOKEN_LIFE = timedelta(days=366)


class NameTaken(Refused):
    """This name is already in use."""

    code = "name_taken"


class TokenLife(Refused):
    """A token lives from one second to 366 days."""

    code = "token_life"
    http_status = 422


@action
def create_tenant(*, slug: str, name: str, by: Actor, clock: Clock) -> Tenant:
    """A new, empty tenant. Raises NameTaken."""
    check_can_install(by)
    tenant = _insert(Tenant(slug=slug, name=name, created_at=clock()))
    _note(by, "tenant.created", tenant.id, "tenant", tenant.id)
    return tenant


@action
def create_user(
    *,
    tenant: Tenant,
    username: str,
    password: str | None,
    by: Actor,
    clock: Clock,
    display_name: str = "",
    email: str = "",
    roles: Collection[Role] = (),
) -> User:
    """A new person with a membership of the tenant. ``password=None`` makes an account that cannot sign in.

    Raises NameTaken, UnknownRole. The name is not in the event: it is personal and the history is kept.
    """
    check_can_manage(by, tenant.id)
    user = User(username=username, display_name=display_name, email=email, date_joined=clock())
    user.set_password(password)
    _insert(user)
    membership = Membership.objects.create(tenant=tenant, user=user, roles=_checked(roles, Role))
    _note(
        by, "user.created", tenant.id, "user", user.id, membership=str(membership.id), roles=membership.roles
    )
    return user


@action
def set_roles(
    *, tenant: Tenant, user: User, roles: Collection[Role], by: Actor, clock: Clock, reason: str = ""
) -> Membership:
    """Give the person exactly these roles in the tenant; makes the membership where there is none. Who is deactivated
    stays so: `reactivate_membership` lets them back in, and says that it does.

    Raises UnknownRole, LastAdmin, and ReasonNeeded of people who change their own. A lost role counts from the commit
    on. What somebody gave themself stands in the history as that, and opens none of their own proposals to them.
    """
    check_can_manage(by, tenant.id)
    wanted = _checked(roles, Role)
    if Role.ADMIN not in wanted:
        check_keeps_an_admin(by, tenant.id, user.id)
    membership, _ = Membership.objects.get_or_create(tenant=tenant, user=user)
    membership = locked_row(Membership, membership.id, tenant.id)
    own = by.user_id in membership.accounts
    reason = check_reason(reason) if own else reason.strip()
    before, membership.roles = list(membership.roles), wanted
    membership.save(update_fields=["roles"])
    record(
        by=by, kind="membership.roles_set", tenant_id=tenant.id, subject_type="user", subject_id=user.id,
        reason=reason, body={"before": before, "after": wanted, "own": own},
    )  # fmt: skip
    return membership


@action
def create_group(*, tenant: Tenant, name: str, by: Actor, clock: Clock) -> Group:
    """A new group of reviewers. Raises NameTaken."""
    check_can_manage(by, tenant.id)
    group = _insert(Group(tenant=tenant, name=name))
    _note(by, "group.created", tenant.id, "group", group.id)
    return group


@action
def add_to_group(*, group: Group, user: User, by: Actor, clock: Clock) -> GroupMembership:
    """Put an active member into a group of the same tenant; once is enough. Raises NotAMember."""
    check_can_manage(by, group.tenant_id)
    membership = check_member(user.id, group.tenant_id)
    place, created = GroupMembership.objects.get_or_create(
        membership=membership, group=group, defaults={"tenant_id": group.tenant_id}
    )
    if created:
        _note(by, "group.joined", group.tenant_id, "user", user.id, group=str(group.id))
    return place


@action
def remove_from_group(*, group: Group, user: User, by: Actor, clock: Clock) -> None:
    """Take a person out of a group; nothing happens when they were not in it.

    The membership is locked first: whoever counts this person's approval either sees them leave, or is waited for.
    """
    check_can_manage(by, group.tenant_id)
    members = Membership.objects.filter(tenant_id=group.tenant_id, user=user)
    member = members.select_for_update(no_key=True).first()
    places = GroupMembership.objects.filter(group=group, membership=member)
    if places.delete()[0]:
        _note(by, "group.left", group.tenant_id, "user", user.id, group=str(group.id))


@system_action
def deactivate_user(*, user: User, by: Actor, clock: Clock, reason: str = "") -> None:
    """Close the account in every tenant. From the commit on the person neither signs in nor counts as reviewer.

    Needs the right to manage people in each of the person's tenants, and each of them gets the event.
    """
    tenant_ids = sorted(Membership.objects.filter(user=user).values_list("tenant_id", flat=True))
    for tenant_id in tenant_ids or [INSTALLATION]:
        check_can_manage(by, tenant_id)
        check_keeps_an_admin(by, tenant_id, user.id)
    locked = User.objects.select_for_update(no_key=True).get(id=user.id)
    if not locked.is_active:
        return
    locked.is_active = False
    locked.save(update_fields=["is_active"])
    end_sessions(user.id)
    record_many(
        [
            Entry(
                by=by, kind="user.deactivated", tenant_id=tenant_id, subject_type="user", subject_id=user.id,
                from_state="active", to_state="inactive", reason=reason,
            )
            for tenant_id in tenant_ids or [INSTALLATION]
        ]
    )  # fmt: skip


@action
def deactivate_membership(*, tenant: Tenant, user: User, by: Actor, clock: Clock, reason: str = "") -> None:
    """End a person's membership of one tenant; the account and other memberships stay. Raises LastAdmin.

    From the commit on their sessions are over, and stay so when they are let back in. Agents that act for them are
    refused, and what they approved and was not sent yet goes back to review as a new version.
    """
    check_can_manage(by, tenant.id)
    check_keeps_an_admin(by, tenant.id, user.id)
    membership = check_member(user.id, tenant.id)
    membership = locked_row(Membership, membership.id, tenant.id)
    membership.is_active = False
    membership.save(update_fields=["is_active"])
    end_sessions(user.id)
    record(
        by=by, kind="membership.deactivated", tenant_id=tenant.id, subject_type="user", subject_id=user.id,
        from_state="active", to_state="inactive", reason=reason,
    )  # fmt: skip


@action
def create_agent(
    *, tenant: Tenant, name: str, by: Actor, clock: Clock, acts_for: User | None = None, acts_for_system: str = "",
    owner: User | None = None, workflows: Sequence[str] | None = None, operations: Sequence[str] | None = None,
) -> Agent:  # fmt: skip
    """A new automation, acting for a member of its tenant or for a system, where one is named.

    ``owner`` answers for it; ``workflows`` and ``operations`` bound it, None not at all. Raises NameTaken, NotAMember.
    """
    check_can_manage(by, tenant.id)
    for person in (acts_for, owner):
        if person is not None:
            check_member(person.id, tenant.id)
    agent = _insert(
        Agent(
            tenant=tenant, name=name, acts_for=acts_for, acts_for_system="" if acts_for else acts_for_system.strip(),
            owner=owner, workflows=_names(workflows), operations=_names(operations), created_at=clock(),
        )
    )  # fmt: skip
    _note(by, "agent.created", tenant.id, "agent", agent.id, **said_of(agent))
    return agent


def said_of(agent: Agent) -> dict[str, Any]:
    """What the history keeps of an automation."""
    return {
        "acts_for": str(agent.acts_for_id) if agent.acts_for_id else None, "system": agent.acts_for_system or None,
        "owner": str(agent.owner_id) if agent.owner_id else None, "workflows": agent.workflows,
        "operations": agent.operations,
    }  # fmt: skip


def _names(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else sorted({name.strip() for name in names} - {""})


@action
def deactivate_agent(*, agent: Agent, by: Actor, clock: Clock, reason: str = "") -> None:
    """Stop an automation: none of its tokens works from the commit on."""
    check_can_manage(by, agent.tenant_id)
    locked = locked_row(Agent, agent.id, agent.tenant_id)
    if not locked.is_active:
        return
    locked.is_active = False
    locked.save(update_fields=["is_active"])
    record(
        by=by, kind="agent.deactivated", tenant_id=agent.tenant_id, subject_type="agent", subject_id=agent.id,
        from_state="active", to_state="inactive", reason=reason,
    )  # fmt: skip


@action
def issue_token(
    *, agent: Agent, scopes: Collection[Scope], life: timedelta, by: Actor, clock: Clock
) -> tuple[str, ApiToken]:
    """A new bearer token: its text, to be shown once, and the stored row.

    Raises UnknownRole, TokenLife, NotAMember.
    """
    check_can_manage(by, agent.tenant_id)
    check_agent_usable(agent)
    if not timedelta(seconds=1) <= life <= LONGEST_TOKEN_LIFE:
        raise TokenLife
    text, now = tokens.new_token(), clock()
    row = ApiToken.objects.create(
        tenant_id=agent.tenant_id, agent=agent, prefix=text[: tokens.SHOWN], sha256=tokens.fingerprint(text),
        scopes=_checked(scopes, Scope), created_at=now, expires_at=now + life, issued_by_id=by.user_id,
    )  # fmt: skip
    _note(
        by, "token.issued", agent.tenant_id, "token", row.id,
        agent=str(agent.id), scopes=row.scopes, expires_at=row.expires_at.isoformat(),
    )  # fmt: skip
    return text, row


@action
def revoke_token(*, token: ApiToken, by: Actor, clock: Clock, reason: str = "") -> None:
    """End a token now; a second time changes nothing."""
    check_can_manage(by, token.tenant_id)
    locked = locked_row(ApiToken, token.id, token.tenant_id)
    if locked.revoked_at is not None:
        return
    locked.revoked_at = clock()
    locked.save(update_fields=["revoked_at"])
    record(
        by=by, kind="token.revoked", tenant_id=token.tenant_id, subject_type="token", subject_id=token.id,
        reason=reason,
    )  # fmt: skip


@system_action
def note_sign_out(*, membership: Membership, by: Actor, clock: Clock) -> None:
    """The person signed out."""
    _note(by, "user.signed_out", membership.tenant_id, "user", membership.user_id)


def _insert(row: Row) -> Row:
    """INSERT, with the violation of a unique name as NameTaken."""
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if getattr(error.__cause__, "sqlstate", "") == "23505":
            raise NameTaken from error
        raise
    return row


def locked_row(model: type[Row], row_id: UUID, tenant_id: UUID) -> Row:
    rows = model._default_manager.select_for_update(of=("self",), no_key=True)
    row = rows.filter(id=row_id, tenant_id=tenant_id).first()
    if row is None:
        raise NotFound
    return row


def _checked(values: Iterable[str], allowed: type[Role] | type[Scope]) -> list[str]:
    """The values in the enum's order, each once. Raises UnknownRole."""
    wanted = set(values)
    unknown = sorted(wanted - set(allowed.values))
    if unknown:
        raise UnknownRole(unknown=unknown)
    return [value for value in allowed.values if value in wanted]


def _note(by: Actor, kind: str, tenant_id: UUID, subject_type: str, subject_id: UUID, **body: Any) -> None:
    record(
        by=by,
        kind=kind,
        tenant_id=tenant_id,
        subject_type=subject_type,
        subject_id=subject_id,
        body=body or None,
    )
