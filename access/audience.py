"""Whom something concerns: the people behind words such as *reviewers of this group*, as of now, one account each."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from common.prepared import fetch


@dataclass(frozen=True, slots=True)
class Audience:
    """Who is meant. ``people`` names accounts, in place of everybody in the group; empty words ask for nothing.

    ``without``: accounts whose people are not meant, unless the tenant lets one person decide alone. ``done``: accounts
    whose people are not meant whatever the tenant lets them do.
    """

    group_id: UUID | None = None
    role: str = ""
    people: Collection[UUID] | None = None
    without: Collection[UUID] = ()
    done: Collection[UUID] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """One person, by the account that they are told under: one with an address where they have one."""

    user_id: UUID
    email: str
    away: bool
    """Whether they said that they are away now."""


_DISTANCE = """
    EXISTS(SELECT FROM access_membership o WHERE o.tenant_id = m.tenant_id AND o.user_id = ANY(%s::uuid[])
           AND (o.user_id = m.user_id OR o.person_id = m.person_id))
"""
_IN_FORCE = "a.ended_at IS NULL AND a.starts_at <= clock_timestamp() AND a.ends_at > clock_timestamp()"
# In a group is who belongs to it, and for a while who decides in the stead of somebody who does.
_IN_GROUP = f"""
    EXISTS(SELECT FROM access_groupmembership g WHERE g.membership_id = m.id AND g.group_id = %s::uuid)
    OR EXISTS(
        SELECT FROM access_absence a JOIN access_membership w ON w.tenant_id = a.tenant_id AND w.user_id = a.user_id
        JOIN access_groupmembership g ON g.membership_id = w.id AND g.group_id = %s::uuid
        WHERE a.tenant_id = m.tenant_id AND a.deputy_id = m.user_id AND {_IN_FORCE}
          AND (a.group_id IS NULL OR a.group_id = g.group_id))
"""  # noqa: S608 - texts of ours
_REACHED = f"""
    SELECT DISTINCT ON (coalesce(m.person_id, m.user_id)) m.user_id, u.email,
        EXISTS(SELECT FROM access_absence a WHERE a.tenant_id = m.tenant_id AND a.user_id = m.user_id AND {_IN_FORCE})
    FROM access_membership m JOIN access_user u ON u.id = m.user_id
    WHERE m.tenant_id = %s AND m.is_active AND u.is_active
      AND (%s = '' OR %s = ANY(m.roles))
      AND (%s::uuid[] IS NULL OR m.user_id = ANY(%s::uuid[]))
      AND (%s::uuid IS NULL OR {_IN_GROUP})
      AND NOT {_DISTANCE}
      AND (NOT {_DISTANCE} OR EXISTS(
        SELECT FROM access_breakglass b
        WHERE b.tenant_id = m.tenant_id AND b.ended_at IS NULL AND b.ends_at > clock_timestamp()))
    ORDER BY coalesce(m.person_id, m.user_id), u.email = '', m.user_id
"""  # noqa: S608 - texts of ours


def reached(tenant_id: UUID, audience: Audience) -> list[Reached]:
    """Everybody who is meant and active here, in one statement."""
    named = None if audience.people is None else list(audience.people)
    group = audience.group_id
    values = [
        tenant_id, audience.role, audience.role, named, named, group, group, group, list(audience.done),
        list(audience.without),
    ]  # fmt: skip
    return [Reached(*row) for row in fetch(_REACHED, values)]
