"""``GET /audit/events``: a tenant's history for programs."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import AwareDatetime, StringConstraints

from audit import selectors
from audit.principals import require_scope
from common.cursors import PAGE

router = Router(tags=["audit"])
SCOPE = "audit:read"
Word = Annotated[str, StringConstraints(max_length=200)]


class EventsQuery(Schema):
    """Filters; all that are given must hold. ``kind`` may end in a point, for all kinds that begin so."""

    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    actor: Word = ""
    run_id: UUID | None = None
    subject_type: Word = ""
    subject_id: UUID | None = None
    kind: Word = ""
    digest: Word = ""
    cursor: Word = ""
    limit: int = PAGE


class EventOut(Schema):
    """One event. ``seq`` is its place in the chain, null for about a second until it is sealed."""

    id: UUID
    seq: int | None
    at: datetime
    kind: str
    subject_type: str
    subject_id: UUID
    run_id: UUID | None
    from_state: str
    to_state: str
    performed_by: str
    on_behalf_of: str
    via: str
    owner: str
    reason: str
    request_id: str
    digest: str
    body: dict[str, Any]


class EventsOut(Schema):
    """Newest first; ``next_cursor`` is empty on the last page."""

    events: list[EventOut]
    next_cursor: str


@router.get("/audit/events", response=EventsOut, summary="Read the history")
def list_events(request: HttpRequest, query: Annotated[EventsQuery, Query()]) -> dict[str, Any]:
    """Needs the scope ``audit:read``; shows the token's own tenant."""
    principal = require_scope(request, SCOPE)
    asked = query.dict(exclude={"cursor", "limit"})
    found = selectors.page(
        principal.tenant.id, selectors.Filters(**asked), cursor=query.cursor, size=query.limit
    )
    return {"events": found.rows, "next_cursor": found.next_cursor}
