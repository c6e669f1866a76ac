"""``GET /audit/events``: a tenant's history for programs."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router, Schema
from pydantic import AwareDatetime, BeforeValidator, StringConstraints

from audit import receipts, selectors
from audit.bundle import Scope
from audit.exporting import MEDIA_TYPE, export, file_response
from audit.principals import ScopeMissing, principal_of, require_scope
from common.clock import db_clock
from common.cursors import PAGE
from common.problems import Problem

router = Router(tags=["audit"])
SCOPE = "audit:read"
CONTRACTS = "proposals:read"
BINARY = {"type": "string", "format": "binary"}
Word = Annotated[str, StringConstraints(max_length=200)]


def _instant(value: Any) -> Any:
    """RFC 3339 with its zone: a number is not taken for seconds since 1970."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


Instant = Annotated[AwareDatetime, BeforeValidator(_instant)]


class EventsQuery(Schema):
    """Filters; all that are given must hold. ``kind`` may end in a point, for all kinds that begin so."""

    since: Instant | None = None
    until: Instant | None = None
    actor: Word = ""
    through: Word = ""
    run_id: UUID | None = None
    subject_type: Word = ""
    subject_id: UUID | None = None
    kind: Word = ""
    digest: Word = ""
    cursor: Word = ""
    limit: int = PAGE


class EventOut(Schema):
    """One event. ``seq`` is its place in the chain, null for about a second until it is sealed.

    ``through`` names which token, session or endpoint the actor came through; it is empty where ``performed_by`` says
    all, as of workers, and null in events of before it was recorded.
    """

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
    through: str | None
    owner: str
    reason: str
    request_id: str
    digest: str
    body: dict[str, Any]


class EventsOut(Schema):
    """Newest first; ``next_cursor`` is empty on the last page."""

    events: list[EventOut]
    next_cursor: str


@router.get(
    "/audit/events",
    response={200: EventsOut, frozenset({401, 403, 422}): Problem},
    summary="Read the history",
)
def list_events(request: HttpRequest, query: Annotated[EventsQuery, Query()]) -> dict[str, Any]:
    """Needs the scope ``audit:read``; shows the token's own tenant."""
    principal = require_scope(request, SCOPE)
    asked = query.dict(exclude={"cursor", "limit"})
    found = selectors.page(
        principal.tenant.id, selectors.Filters(**asked), cursor=query.cursor, size=query.limit
    )
    return {"events": found.rows, "next_cursor": found.next_cursor}


class BundleQuery(Schema):
    """Of one run; without it, or with an empty one, of the whole tenant."""

    run_id: UUID | None = None


@router.get(
    "/audit/bundle",
    response={frozenset({401, 403, 404, 422}): Problem},
    summary="Take the history along",
    openapi_extra={
        "responses": {200: {"description": "A zip file.", "content": {MEDIA_TYPE: {"schema": BINARY}}}}
    },
)
def get_bundle(request: HttpRequest, query: Annotated[BundleQuery, Query()]) -> HttpResponseBase:
    """A bundle that ``verify_history.py`` checks offline: events, proofs, contracts, decisions, rows as they are.

    Needs the scope ``audit:read``; contracts come along for a token that also has ``proposals:read``, views for people
    only. That it was taken along becomes an event of the history.
    """
    principal = require_scope(request, SCOPE)
    scope = Scope(principal.tenant.pk, query.run_id, contracts=CONTRACTS in principal.scopes, views=False)
    return file_response(export(principal.tenant, scope, by=principal.actor))


class EventReceiptOut(Schema):
    """What was signed of one event. ``seq``, ``hash``: its place in the chain, null until it is sealed; ``proof`` and
    ``checkpoint``: the way to what the signer has signed, null until then.
    """

    v: int
    tenant_id: UUID
    event_id: UUID
    kind: str
    subject: str
    run_id: UUID | None
    at: str
    content_hash: str
    issued_at: str
    seq: int | None
    hash: str | None
    proof: dict[str, Any] | None
    checkpoint: str | None
    signature: dict[str, str]


@router.get(
    "/audit/receipts/{event_id}",
    response={200: EventReceiptOut, frozenset({401, 403, 404, 422}): Problem},
    summary="A receipt of an event",
)
def get_event_receipt(request: HttpRequest, event_id: UUID) -> dict[str, Any]:
    """Keep it: whoever has it can show later that the event was there. `verify_history.py --receipt` compares it.

    Needs ``audit:read``; for an event about a proposal ``proposals:read`` does, about a run, a step or a command
    ``runs:read``.
    """
    principal = principal_of(request)
    event = receipts.get_event(principal.tenant.pk, event_id, _subjects(principal.scopes))
    return receipts.receipt(event, db_clock)


def _subjects(scopes: frozenset[str]) -> tuple[str, ...] | None:
    """The things whose events these scopes show; None for all."""
    if SCOPE in scopes:
        return None
    found = (receipts.OF_PROPOSALS if "proposals:read" in scopes else ()) + (
        receipts.OF_RUNS if "runs:read" in scopes else ()
    )
    if not found:
        raise ScopeMissing(scope=SCOPE)
    return found
