"""More writers of automations and their tokens: bounds, what was denied, rotation, the end that comes near."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from access import tokens
from access.actions import LONGEST_TOKEN_LIFE, TokenLife, locked_row, said_of
from access.auth import Principal
from access.models import Agent, ApiToken, User
from access.policies import (
    NotAllowedForAgent,
    check_agent_may_propose,
    check_agent_may_start,
    check_agent_usable,
    check_can_manage,
    check_member,
)
from audit.actions import record
from audit.actors import Actor
from audit.principals import Principal as BasePrincipal
from common.clock import Clock
from common.errors import Refused
from common.tx import action

LONGEST_OVERLAP: Final = timedelta(days=30)
WARN_BEFORE: Final = timedelta(days=14)
"""So long before its end a token is said to end soon: once, in the history and on the page of its automation."""


class TokenEnded(Refused):
    """This token has ended. Issue a new one."""

    code = "token_ended"


class AlreadyRotated(Refused):
    """Another token has taken its place already."""

    code = "already_rotated"


class Overlap(Refused):
    """The old token goes on for at least no time and at most 30 days."""

    code = "token_overlap"
    http_status = 422


@action
def change_agent(
    *, agent: Agent, by: Actor, clock: Clock, acts_for: User | None, acts_for_system: str, owner: User | None,
    workflows: Sequence[str] | None, operations: Sequence[str] | None,
) -> Agent:  # fmt: skip
    """Give the automation exactly these bounds and people. What it proposed before keeps its own. Raises NotAMember."""
    check_can_manage(by, agent.tenant_id)
    for person in (acts_for, owner):
        if person is not None:
            check_member(person.id, agent.tenant_id)
    locked = locked_row(Agent, agent.id, agent.tenant_id)
    before = said_of(locked)
    locked.acts_for, locked.owner = acts_for, owner
    locked.acts_for_system = "" if acts_for else acts_for_system.strip()
    locked.workflows = None if workflows is None else sorted(set(workflows))
    locked.operations = None if operations is None else sorted(set(operations))
    after = said_of(locked)
    if after != before:
        locked.save(update_fields=["acts_for", "acts_for_system", "owner", "workflows", "operations"])
        _note(by, "agent.changed", locked, before=before, after=after)
    return locked


@action
def reactivate_agent(*, agent: Agent, by: Actor, clock: Clock, reason: str = "") -> None:
    """Let an automation work again; tokens that are neither expired nor revoked are valid again."""
    check_can_manage(by, agent.tenant_id)
    locked = locked_row(Agent, agent.id, agent.tenant_id)
    if locked.is_active:
        return
    locked.is_active = True
    locked.save(update_fields=["is_active"])
    record(
        by=by, kind="agent.reactivated", tenant_id=agent.tenant_id, subject_type="agent", subject_id=agent.id,
        from_state="inactive", to_state="active", reason=reason,
    )  # fmt: skip


def require_may_start(principal: BasePrincipal, workflow: str) -> None:
    """Raises NotAllowedForAgent, and keeps that it was tried. People are not bounded by it."""
    _require(principal, lambda agent: check_agent_may_start(agent, workflow), workflow=workflow)


def require_may_propose(principal: BasePrincipal, workflow: str, operation: str) -> None:
    """As `require_may_start`, and the same for the operation."""
    _require(
        principal, lambda agent: check_agent_may_propose(agent, workflow, operation),
        workflow=workflow, operation=operation,
    )  # fmt: skip


def _require(principal: BasePrincipal, check: Callable[[Agent], None], **asked: str) -> None:
    agent = principal.agent if isinstance(principal, Principal) else None
    if agent is None:
        return
    try:
        check(agent)
    except NotAllowedForAgent:
        _record_denied(agent, {name: text[:100] for name, text in asked.items()}, by=principal.actor)
        raise


@action
def _record_denied(agent: Agent, asked: dict[str, str], *, by: Actor) -> None:
    _note(by, "agent.denied", agent, **asked)


@action
def rotate_token(
    *, token: ApiToken, overlap: timedelta, by: Actor, clock: Clock, life: timedelta | None = None
) -> tuple[str, ApiToken]:
    """A new token with the same scopes; the old one ends after ``overlap``, or earlier where it would have.

    Its life is as long as the old one's was. The text is to be shown once.
    Raises TokenEnded, AlreadyRotated, Overlap, TokenLife.
    """
    check_can_manage(by, token.tenant_id)
    old = locked_row(ApiToken, token.id, token.tenant_id)
    check_agent_usable(old.agent)
    now = clock()
    _check_can_rotate(old, overlap, now)
    life = life if life is not None else min(old.expires_at - old.created_at, LONGEST_TOKEN_LIFE)
    if not timedelta(seconds=1) <= life <= LONGEST_TOKEN_LIFE:
        raise TokenLife
    old.expires_at = min(old.expires_at, now + overlap)
    old.save(update_fields=["expires_at"])
    text = tokens.new_token()
    row = ApiToken.objects.create(
        tenant_id=old.tenant_id, agent=old.agent, prefix=text[: tokens.SHOWN], sha256=tokens.fingerprint(text),
        scopes=old.scopes, created_at=now, expires_at=now + life, replaces=old, issued_by_id=by.user_id,
    )  # fmt: skip
    record(
        by=by, kind="token.rotated", tenant_id=old.tenant_id, subject_type="token", subject_id=old.id,
        body={"by": str(row.id), "ends_at": old.expires_at.isoformat(), "expires_at": row.expires_at.isoformat()},
    )  # fmt: skip
    return text, row


def _check_can_rotate(old: ApiToken, overlap: timedelta, now: Any) -> None:
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        raise Overlap
    if old.revoked_at is not None or old.expires_at <= now:
        raise TokenEnded
    if ApiToken.objects.filter(tenant_id=old.tenant_id, replaces=old).exists():
        raise AlreadyRotated


@action
def warn_of_ends(*, by: Actor, clock: Clock, limit: int = 100) -> int:
    """Say once of each token that ends soon and has no successor that it does; how many."""
    now = clock()
    free = ApiToken.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    due = free.filter(
        revoked_at=None, warned_at=None, expires_at__gt=now, expires_at__lte=now + WARN_BEFORE, agent__is_active=True
    )  # fmt: skip
    rows = list(due.order_by("expires_at", "id")[:limit])
    replaced = set(ApiToken.objects.filter(replaces__in=rows).values_list("replaces_id", flat=True))
    for row in rows:
        row.warned_at = now
        row.save(update_fields=["warned_at"])
        if row.id not in replaced:
            record(
                by=by, kind="token.ends_soon", tenant_id=row.tenant_id, subject_type="token", subject_id=row.id,
                body={"agent": str(row.agent_id), "expires_at": row.expires_at.isoformat()},
            )  # fmt: skip
    return len(rows)


def _note(by: Actor, kind: str, agent: Agent, **body: Any) -> None:
    record(
        by=by,
        kind=kind,
        tenant_id=agent.tenant_id,
        subject_type="agent",
        subject_id=agent.id,
        body=body or None,
    )


def token_in(tenant_id: UUID, token_id: UUID) -> ApiToken | None:
    """The token of this tenant, or None."""
    return ApiToken.objects.filter(tenant_id=tenant_id, id=token_id).select_related("agent").first()
