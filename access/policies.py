"""Who may do what: ``check_*`` raises with a reason, ``can_*`` is the same rule as a bool.

*When* something may be done (states, clocks) is the business of the app that owns the thing.
"""

from collections.abc import Iterable
from uuid import UUID

from access.enums import Role
from access.models import Agent, Membership, User
from access.signed_in import oldest_membership
from audit.actors import Actor, Via
from common.dbroles import as_system
from common.errors import InvalidInput, Refused

PEOPLE_MANAGERS = frozenset({Role.ADMIN})
PEOPLE_READERS = frozenset({Role.ADMIN, Role.AUDITOR})
LONGEST_REASON = 500


class NotAMember(Refused):
    """This person has no active account in this organisation."""

    code = "not_a_member"
    http_status = 403


class RoleMissing(Refused):
    """Your role does not allow this."""

    code = "role_missing"
    http_status = 403


class GroupMissing(Refused):
    """This is decided by another group."""

    code = "not_in_group"
    http_status = 403


class UnknownRole(InvalidInput):
    """There is no such role or scope."""

    code = "unknown_role"


def membership_of(user_id: UUID | None, tenant_id: UUID) -> Membership | None:
    """The person's membership if account and membership are active, else None."""
    if user_id is None:
        return None
    active = Membership.objects.filter(is_active=True, user__is_active=True)
    return active.filter(user_id=user_id, tenant_id=tenant_id).select_related("user", "tenant").first()


@as_system()
def only_membership(user: User) -> Membership | None:
    """The active membership under which a signed-in person works; the oldest where there are several.

    By the system role: their tenant is not known before.
    """
    if not user.is_active:
        return None
    return oldest_membership(user)


def check_member(user_id: UUID | None, tenant_id: UUID) -> Membership:
    """The active membership, or NotAMember."""
    membership = membership_of(user_id, tenant_id)
    if membership is None:
        raise NotAMember
    return membership


def check_role(membership: Membership | None, *roles: Role) -> None:
    """Raises RoleMissing unless the membership is active and holds one of ``roles``."""
    if membership is None or not membership.has_role(*roles):
        raise RoleMissing(roles=sorted(roles))


def can_role(membership: Membership | None, *roles: Role) -> bool:
    """Whether `check_role` would pass."""
    return membership is not None and membership.has_role(*roles)


def check_group(membership: Membership, group_ids: Iterable[UUID]) -> None:
    """Raises GroupMissing unless the membership belongs to one of the groups; no groups means everybody."""
    wanted = list(group_ids)
    if wanted and not membership.groups.filter(id__in=wanted).exists():
        raise GroupMissing


def can_group(membership: Membership, group_ids: Iterable[UUID]) -> bool:
    """Whether `check_group` would pass."""
    try:
        check_group(membership, group_ids)
    except GroupMissing:
        return False
    return True


def check_can_manage(by: Actor, tenant_id: UUID) -> None:
    """People, roles, automations and tokens are managed by an admin of the tenant, or at the command line.

    A token never manages: the person behind it would not see what is done in their name.
    """
    if by.via == Via.COMMAND_LINE:
        return
    if by.via != Via.SESSION:
        raise RoleMissing(roles=sorted(PEOPLE_MANAGERS))
    check_role(check_member(by.user_id, tenant_id), *PEOPLE_MANAGERS)


def can_manage(by: Actor, tenant_id: UUID) -> bool:
    """Whether `check_can_manage` would pass."""
    try:
        check_can_manage(by, tenant_id)
    except Refused:
        return False
    return True


class LastAdmin(Refused):
    """This is the last active admin here. Make somebody else admin first."""

    code = "last_admin"


class ReasonNeeded(InvalidInput):
    """Say why: it stands in the history for good."""

    code = "reason_needed"


class NotAllowedForAgent(Refused):
    """This automation may not ask for this: it is not among the workflows and operations that it was given."""

    code = "not_allowed_for_agent"
    http_status = 403


def check_reason(reason: str) -> str:
    """The reason without blanks around it. Raises ReasonNeeded."""
    reason = reason.strip()
    if not reason or len(reason) > LONGEST_REASON:
        raise ReasonNeeded(longest=LONGEST_REASON)
    return reason


def check_keeps_an_admin(by: Actor, tenant_id: UUID, user_id: UUID) -> None:
    """Raises LastAdmin where nobody but this person could manage the tenant. The command line may do it.

    The admins are locked, all in one order: of two who leave at once, the second one finds out.
    """
    if by.via == Via.COMMAND_LINE:
        return
    admins = Membership.objects.select_for_update(of=("self",), no_key=True).filter(
        tenant_id=tenant_id, is_active=True, user__is_active=True, roles__contains=[Role.ADMIN]
    )
    found = set(admins.order_by("id").values_list("user_id", flat=True))
    if user_id in found and len(found) == 1:
        raise LastAdmin


def check_agent_may_start(agent: Agent, workflow: str) -> None:
    """Raises NotAllowedForAgent where the automation was given workflows, and this is none of them."""
    if agent.workflows is not None and workflow not in agent.workflows:
        raise NotAllowedForAgent(workflow=workflow)


def check_agent_may_propose(agent: Agent, workflow: str, operation: str) -> None:
    """As `check_agent_may_start`, and the same for the operation."""
    check_agent_may_start(agent, workflow)
    if agent.operations is not None and operation not in agent.operations:
        raise NotAllowedForAgent(operation=operation)


def check_can_install(by: Actor) -> None:
    """Tenants are made at the command line of the installation only."""
    if by.via != Via.COMMAND_LINE:
        raise RoleMissing


def check_agent_usable(agent: Agent) -> None:
    """An automation works while it is active and the person it acts for is an active member of its tenant."""
    if not agent.is_active:
        raise NotAMember
    if agent.acts_for_id is not None:
        check_member(agent.acts_for_id, agent.tenant_id)
