"""Reads about people: what a membership amounts to now."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from access.enums import Role
from access.models import Agent, ApiToken, BreakGlass, Membership
from common.pipelined import Question
from common.prepared import fetch
from common.tx import require_transaction


@dataclass(frozen=True, slots=True)
class Stead:
    """Somebody who is away at this moment, and is a reviewer, as the deputy who decides in their stead sees them."""

    absence_id: UUID
    user_id: UUID
    accounts: frozenset[UUID]
    group_ids: frozenset[UUID]
    """For which groups: theirs, as far as they were handed over. A deputy gets no role by it."""

    @property
    def standing(self) -> "Standing":
        """What is known of them by it."""
        return Standing(
            self.user_id, frozenset({Role.REVIEWER}), self.group_ids, self.accounts, break_glass=False
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """What one person is in a tenant at this moment."""

    user_id: UUID
    roles: frozenset[str]
    group_ids: frozenset[UUID]
    accounts: frozenset[UUID]
    """All accounts of this person here, active or not, this one among them."""
    break_glass: bool
    """Whether the tenant lets one person decide on their own proposals at this moment."""
    steads: tuple[Stead, ...] = ()
    """In whose stead they decide at this moment, the longest away first. Read by `standings` only."""

    @property
    def person(self) -> UUID:
        """The same for all accounts of one person."""
        return min(self.accounts)


# A person's other accounts count as that person, and the posture is read along: deciding costs no statement for it.
_PERSON = """
        CASE WHEN m.person_id IS NULL THEN ARRAY[m.user_id] ELSE ARRAY(
            SELECT o.user_id FROM access_membership o WHERE o.tenant_id = m.tenant_id AND o.person_id = m.person_id
        ) END,
        EXISTS(
            SELECT FROM access_breakglass b
            WHERE b.tenant_id = m.tenant_id AND b.ended_at IS NULL AND b.ends_at > clock_timestamp()
        )
"""
# Whose deputy this is now: of absences in force, with the delegator's own groups as of now. One level deep: a delegator
# hands over no groups that they hold in somebody else's stead.
_STEADS = """
        COALESCE((SELECT jsonb_agg(jsonb_build_array(a.id, a.user_id,
            ARRAY(
                SELECT o.user_id FROM access_membership o
                WHERE o.tenant_id = d.tenant_id AND (o.id = d.id OR o.person_id = d.person_id)),
            ARRAY(
                SELECT g.group_id FROM access_groupmembership g
                WHERE g.membership_id = d.id AND (a.group_id IS NULL OR g.group_id = a.group_id))
            ) ORDER BY a.starts_at, a.id)
            FROM access_absence a JOIN access_membership d ON d.tenant_id = a.tenant_id AND d.user_id = a.user_id
            JOIN access_user du ON du.id = a.user_id
            WHERE a.tenant_id = m.tenant_id AND a.deputy_id = m.user_id AND a.ended_at IS NULL
              AND a.starts_at <= clock_timestamp() AND a.ends_at > clock_timestamp()
              AND d.is_active AND du.is_active AND 'reviewer' = ANY(d.roles)), '[]')
"""
_STANDINGS = f"""
    SELECT m.user_id, m.roles,
        ARRAY(SELECT g.group_id FROM access_groupmembership g WHERE g.membership_id = m.id),
        {_PERSON}, {_STEADS}
    FROM access_membership m JOIN access_user u ON u.id = m.user_id
    WHERE m.tenant_id = %s AND m.user_id = ANY(%s::uuid[]) AND m.is_active AND u.is_active
    ORDER BY m.id
"""  # noqa: S608 - texts of ours


def standings(tenant_id: UUID, user_ids: Collection[UUID], *, lock: bool = False) -> dict[UUID, Standing]:
    """The standing of each person who is an active member; who is missing from the answer is none.

    With ``lock`` (inside a transaction) nobody of them is deactivated and no role or group of theirs is lost until it
    ends: the transaction that commits *sent* uses it, so that a revocation counts for everything after it.
    """
    if lock:
        require_transaction()
        # Read by a statement of its own: one that had to wait for the lock knows the groups from before it.
        fetch(_STANDINGS + " FOR SHARE OF m, u", [tenant_id, list(user_ids)])
    rows = fetch(_STANDINGS, [tenant_id, list(user_ids)])
    return {user: _standing(user, *rest) for user, *rest in rows}


def _standing(
    user: UUID, roles: list[str], groups: list[UUID], accounts: list[UUID], open_: bool, steads: str = "[]"
) -> Standing:
    held = tuple(_stead(*stead) for stead in json.loads(steads))
    return Standing(user, frozenset(roles), frozenset(groups), frozenset(accounts), open_, held)


def _stead(absence: str, user: str, accounts: list[str], groups: list[str]) -> Stead:
    return Stead(UUID(absence), UUID(user), frozenset(map(UUID, accounts)), frozenset(map(UUID, groups)))


_OF_MANY = f"""
    SELECT m.tenant_id, m.user_id, m.roles,
        ARRAY(SELECT g.group_id FROM access_groupmembership g WHERE g.membership_id = m.id),
        {_PERSON}
    FROM access_membership m JOIN access_user u ON u.id = m.user_id
    WHERE (m.tenant_id, m.user_id) IN (SELECT * FROM unnest(%s::uuid[], %s::uuid[])) AND m.is_active AND u.is_active
    ORDER BY m.id
"""  # noqa: S608 - texts of ours


Standings = dict[tuple[UUID, UUID], Standing]


def standings_unless_busy(
    people: Collection[tuple[UUID, UUID]],
) -> tuple[Question[Standings], Question[Standings]]:
    """As `standings` with ``lock``, of people of many tenants (tenant, user) at once, and without ever waiting.

    To be asked together in this order: the first locks; the second reads by a statement of its own, for the groups, as
    above. Whom the first does not find counts as missing, because somebody else has locked their row: the caller counts
    them again by himself, and waits there.
    """
    require_transaction()
    locking = _OF_MANY + " FOR SHARE OF m, u SKIP LOCKED"
    return Question(locking, _columns(people), _by_person), Question(_OF_MANY, _columns(people), _by_person)


def _by_person(rows: list[tuple[Any, ...]]) -> Standings:
    return {(tenant, user): _standing(user, *rest) for tenant, user, *rest in rows}


def _columns(people: Collection[tuple[UUID, UUID]]) -> list[list[UUID]]:
    return [[tenant for tenant, _ in people], [user for _, user in people]]


def accounts_of(tenant_id: UUID, user_ids: Collection[UUID]) -> frozenset[UUID]:
    """These accounts and all others of the same people in this tenant."""
    theirs = Membership.objects.filter(tenant_id=tenant_id, user_id__in=user_ids, person_id__isnull=False)
    others = Membership.objects.filter(tenant_id=tenant_id, person_id__in=theirs.values("person_id"))
    return frozenset(user_ids) | frozenset(others.values_list("user_id", flat=True))


def people_behind(agent: Agent, *holders: UUID | None) -> tuple[UUID, ...]:
    """Whom an automation acts for, who answers for it, and ``holders`` of its secrets: all their accounts as of now.

    They never decide on what it asks for.
    """
    named = {agent.acts_for_id, agent.owner_id, *holders} - {None}
    return tuple(sorted(accounts_of(agent.tenant_id, named)))  # type: ignore[arg-type]


def duties_question(tenant_id: UUID, workflow: str, policy_version: int) -> Question[frozenset[UUID]]:
    """Who owns this workflow or wrote this version of its policy. Under no account do they decide on it."""
    return Question(
        _DUTIES, [tenant_id, workflow, policy_version], lambda rows: frozenset(user for (user,) in rows)
    )


_DUTIES: Final = """
    SELECT d.user_id FROM access_duty d WHERE d.tenant_id = %s AND d.workflow = %s AND d.ended_at IS NULL
      AND (d.policy_version IS NULL OR d.policy_version = %s)
"""


def break_glass_of(tenant_id: UUID) -> BreakGlass | None:
    """The posture of a team of one, where it is in force at this moment."""
    return BreakGlass.objects.filter(tenant_id=tenant_id, ended_at=None, ends_at__gt=Now()).first()


def members(tenant_id: UUID) -> QuerySet[Membership]:
    """The people of a tenant, active or not, by name."""
    found = Membership.objects.filter(tenant_id=tenant_id).select_related("user").prefetch_related("groups")
    return found.order_by("user__username", "id")


def tokens(tenant_id: UUID) -> QuerySet[ApiToken]:
    """The tokens of a tenant, newest first; their text is not stored."""
    return ApiToken.objects.filter(tenant_id=tenant_id).select_related("agent").order_by("-created_at", "-id")
