"""How many people could decide, for tests that are about something else."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from access.presence import Question, muster
from common.clock import db_clock


def count_reviewers(tenant_id: UUID, group_id: UUID | None, without: Collection[UUID]) -> int:
    """In the next hour: reviewers of the group, people and not accounts, without these accounts' people."""
    now, groups = db_clock(), (group_id,) if group_id else ()
    question = Question(tenant_id, groups, (), tuple(without), now, now + timedelta(hours=1))
    return muster(question).able
