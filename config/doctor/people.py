"""People and tokens: who could do nothing tomorrow, and who is badly protected."""

from collections.abc import Iterator
from typing import Final

from django.apps import apps

from config import observed
from config.doctor.findings import Finding, ok, warning

DAYS_BEFORE: Final = 7
NAMED: Final = 5
LOOKED_AT: Final = 500
"""The oldest pending proposals for which eligible people are counted."""

_TOKENS: Final = """
    SELECT t.slug || '/' || a.name || ' (' || k.prefix || '…)', k.expires_at < clock_timestamp() + interval '1 day'
    FROM access_apitoken k JOIN access_agent a ON a.id = k.agent_id JOIN common_tenant t ON t.id = k.tenant_id
    WHERE k.revoked_at IS NULL AND a.is_active AND k.expires_at > clock_timestamp()
      AND k.expires_at < clock_timestamp() + make_interval(days => %s)
      AND NOT EXISTS (SELECT FROM access_apitoken n WHERE n.replaces_id = k.id AND n.revoked_at IS NULL)
    ORDER BY k.expires_at LIMIT 100
"""


def tokens() -> Iterator[Finding]:
    """Those without a successor that end within a week."""
    found = observed.rows(_TOKENS, [DAYS_BEFORE])
    if found:
        names = ", ".join(name for name, _ in found[:NAMED]) + ("…" if len(found) > NAMED else "")
        soon = sum(today for _, today in found)
        yield warning(
            f"{len(found)} API tokens end within {DAYS_BEFORE} days, {soon} of them within one: {names}.",
            "Make successors and hand them over; the old ones stay valid for the overlap.",
        )
    else:
        yield ok(f"No API token in use ends within {DAYS_BEFORE} days.")


_WITHOUT_SECOND: Final = """
    SELECT count(*), count(*) FILTER (WHERE powerful) FROM (
        SELECT u.id, bool_or(m.roles && ARRAY['admin', 'owner', 'operator']::varchar[]) AS powerful FROM access_user u
        JOIN access_membership m ON m.user_id = u.id AND m.is_active
        WHERE u.is_active AND NOT EXISTS (
            SELECT FROM mfa_authenticator f WHERE f.user_id = u.id AND f.type IN ('totp', 'webauthn'))
        GROUP BY u.id) people
"""


def second_factors() -> Iterator[Finding]:
    if not apps.is_installed("allauth.mfa"):
        return
    [(people, powerful)] = observed.rows(_WITHOUT_SECOND)
    if people:
        yield warning(
            f"{people} people sign in with a password alone, {powerful} of them operators, owners or admins.",
            "Ask them to add a passkey or an app under their account, or demand it: PLACET_REQUIRE_MFA.",
        )
    else:
        yield ok("Everybody has a second factor.")


_WITHOUT_PEOPLE: Final = """
    SELECT t.slug, coalesce(g.name, 'every reviewer'), count(*) FROM (
        SELECT id, tenant_id, group_id, also_groups, also_roles, needed, excluded_users FROM approvals_proposal
        WHERE status = 'pending' ORDER BY decide_by LIMIT %s) p
    JOIN common_tenant t ON t.id = p.tenant_id LEFT JOIN access_group g ON g.id = p.group_id
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT coalesce(m.person_id, m.id)) AS number FROM access_membership m
        JOIN access_user u ON u.id = m.user_id AND u.is_active
        WHERE m.tenant_id = p.tenant_id AND m.is_active AND ('reviewer' = ANY(m.roles) OR m.roles && p.also_roles)
          AND NOT m.user_id = ANY(p.excluded_users)
          AND (p.group_id IS NULL OR m.roles && p.also_roles OR EXISTS (
              SELECT FROM access_groupmembership gm
              WHERE gm.membership_id = m.id AND gm.group_id = ANY(p.group_id || p.also_groups)))
    ) people
    WHERE people.number < p.needed GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 100
"""


def eligible() -> Iterator[Finding]:
    """Questions that too few people could decide: they would only expire."""
    found = observed.rows(_WITHOUT_PEOPLE, [LOOKED_AT])
    if found:
        words = ", ".join(f"{count} for {group} of {tenant}" for tenant, group, count in found[:NAMED])
        yield warning(
            f"{sum(count for *_, count in found)} questions wait for more people than may decide them: {words}.",
            "Give somebody the role of reviewer and the group, who is not the one that asks.",
        )
    else:
        yield ok("Every open question has enough people who may decide it.")


CHECKS: Final = (tokens, second_factors, eligible)
