"""Reads about people: what a membership amounts to now."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from access.models import ApiToken, Membership
from common.tx import require_transaction


@dataclass(frozen=True, slots=True)
class Standing:
    """What one person is in a tenant at this moment."""

    user_id: UUID
    roles: frozenset[str]
    group_ids: frozenset[UUID]


_STANDINGS = """
    SELECT m.user_id, m.roles,
        ARRAY(SELECT g.group_id FROM access_groupmembership g WHERE g.membership_id = m.id)
    FROM access_membership m JOIN access_user u ON u.id = m.user_id
    WHERE m.tenant_id = %s AND m.user_id = ANY(%s) AND m.is_active AND u.is_active
    ORDER BY m.id
"""


def standings(tenant_id: UUID, user_ids: Collection[UUID], *, lock: bool = False) -> dict[UUID, Standing]:
    """The standing of each person who is an active member; who is missing from the answer is none.

    With ``lock`` (inside a transaction) nobody of them is deactivated and no role or group of theirs is lost until it
    ends: the transaction that commits *sent* uses it, so that a revocation counts for everything after it.
    """
    with connection.cursor() as cursor:
        if lock:
            require_transaction()
            # Read by a statement of its own: one that had to wait for the lock knows the groups from before it.
            cursor.execute(_STANDINGS + " FOR SHARE OF m, u", [tenant_id, list(user_ids)])
        cursor.execute(_STANDINGS, [tenant_id, list(user_ids)])
        rows = cursor.fetchall()
    return {user: Standing(user, frozenset(roles), frozenset(groups)) for user, roles, groups in rows}


def members(tenant_id: UUID) -> QuerySet[Membership]:
    """The people of a tenant, active or not, by name."""
    found = Membership.objects.filter(tenant_id=tenant_id).select_related("user").prefetch_related("groups")
    return found.order_by("user__username", "id")


def tokens(tenant_id: UUID) -> QuerySet[ApiToken]:
    """The tokens of a tenant, newest first; their text is not stored."""
    return ApiToken.objects.filter(tenant_id=tenant_id).select_related("agent").order_by("-created_at", "-id")
