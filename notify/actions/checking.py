"""Before anything leaves: does it still ask, is it still in time, and is it still for this person?"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from uuid import UUID

from access.audience import Audience, reached
from access.selectors import accounts_of
from notify import hooks
from notify.hooks import Standing
from notify.kinds import kind_of
from notify.models import Message

Subject = tuple[UUID, str, UUID]
OVER, LATE, NOT_THEIRS, DONE = "over", "too_late", "not_theirs", "done"


def standings(messages: Iterable[Message]) -> Mapping[Subject, Standing]:
    """Of all their subjects, asked for together."""
    wanted: dict[tuple[UUID, str], set[UUID]] = defaultdict(set)
    for message in messages:
        wanted[message.tenant_id, message.subject_type].add(message.subject_id)
    return {
        (tenant_id, kind, subject_id): standing
        for (tenant_id, kind), ids in wanted.items()
        for subject_id, standing in hooks.standings_of(tenant_id, kind, ids).items()
    }


def why_moot(message: Message, standing: Standing, now: datetime) -> str:
    """A code; empty where it is still to be told."""
    if message.until is not None and message.until <= now:
        return LATE
    if not kind_of(message.kind).asks:
        return ""
    return OVER if message.closed_at is not None or not standing.waits else ""


def still_theirs(message: Message, standing: Standing, users: Collection[UUID]) -> set[UUID]:
    """Which of these people it still concerns: active, of that group and role, and not done with it."""
    asks = kind_of(message.kind).asks
    audience = Audience(
        group_id=message.group_id, role=message.role, people=users, without=message.without,
        done=standing.done if asks else (),
    )  # fmt: skip
    named = message.people
    allowed = None if named is None else accounts_of(message.tenant_id, named)
    return {
        it.user_id for it in reached(message.tenant_id, audience) if allowed is None or it.user_id in allowed
    }
