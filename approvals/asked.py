"""Of whom a proposal is asked, as a condition for the database: the same rule as `approvals.policies` has for one."""

from django.db.models import Q

from access.enums import Role
from access.models import Membership
from access.selectors import Standing, Stead, standings


def asked_of(membership: Membership) -> Q:
    """The proposals that this person is asked about: for their own place, or for that of somebody who is away."""
    return asked_by(standing_of(membership))


def standing_of(membership: Membership) -> Standing | None:
    """What this person is in the tenant at this moment, in whose stead they decide included."""
    return standings(membership.tenant_id, [membership.user_id]).get(membership.user_id)


def asked_by(standing: Standing | None) -> Q:
    """The same of a standing that was read already."""
    if standing is None:
        return Q(pk__in=[])
    wide = [role for role in standing.roles if role != Role.REVIEWER]
    asked = Q(also_roles__overlap=wide) if wide else Q(pk__in=[])
    if Role.REVIEWER not in standing.roles:
        return asked
    asked |= Q(also_roles__contains=[Role.REVIEWER.value]) | Q(group__isnull=True)
    groups = list(standing.group_ids)
    asked |= Q(group_id__in=groups) | Q(also_groups__overlap=groups) if groups else Q()
    for stead in standing.steads:
        asked |= _in_stead_of(stead)
    return asked


def _in_stead_of(stead: Stead) -> Q:
    groups = list(stead.group_ids)
    held = Q(group_id__in=groups) | Q(also_groups__overlap=groups)
    return held & ~Q(excluded_users__overlap=list(stead.accounts))
