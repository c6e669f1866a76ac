"""The row of a bearer token with all that a request needs of it: read before a tenant is known, on each request."""

from dataclasses import dataclass
from typing import Final, Literal, cast
from uuid import UUID

from access.models import Agent, ApiToken
from common.models import Tenant
from common.pipelined import Question, ask, rows_of
from common.prepared import Reading

_IS: Final = {"sha256": "sha256 = %s", "id": "id = %s"}
_USABLE: Final = {
    by: Reading(ApiToken, f"WHERE r.{is_} AND r.revoked_at IS NULL AND r.expires_at > statement_timestamp()")
    for by, is_ in _IS.items()
}
_AGENT: Final = {
    by: Reading(Agent, f"JOIN access_apitoken t ON t.agent_id = r.id WHERE t.{is_}")
    for by, is_ in _IS.items()
}
_TENANT: Final = {
    by: Reading(Tenant, f"JOIN access_apitoken t ON t.tenant_id = r.id WHERE t.{is_}")
    for by, is_ in _IS.items()
}
# All accounts of the people behind it come along: no proposal of the automation costs a statement for them.
_SAME_PEOPLE: Final = {
    by: f"""
        SELECT o.user_id FROM access_apitoken t JOIN access_agent a ON a.id = t.agent_id
        JOIN access_membership m ON m.tenant_id = t.tenant_id
          AND m.user_id IN (a.acts_for_id, a.owner_id, t.issued_by_id)
        JOIN access_membership o ON o.tenant_id = t.tenant_id AND o.person_id = m.person_id
        WHERE t.{is_}
    """  # noqa: S608 - our own words
    for by, is_ in _IS.items()
}


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token that is neither expired nor revoked, with its automation and tenant."""

    token: ApiToken
    behind: tuple[UUID, ...]
    """Whom the automation acts for, who answers for it and who issued the token: all their accounts as of now."""


def usable(by: Literal["sha256", "id"], value: str | UUID) -> TokenRow | None:
    """On one way to the database. Whether its automation may work is for the caller to check."""
    tokens, agents, tenants, others = ask(
        rows_of(_USABLE[by], value), rows_of(_AGENT[by], value), rows_of(_TENANT[by], value),
        Question(_SAME_PEOPLE[by], [value], lambda rows: {user for (user,) in rows}),
    )  # fmt: skip
    if not tokens:
        return None
    [token], [token.agent], [token.tenant] = tokens, agents, tenants
    named = {token.agent.acts_for_id, token.agent.owner_id, token.issued_by_id} - {None}
    return TokenRow(token, tuple(sorted(cast("set[UUID]", others | named))))
