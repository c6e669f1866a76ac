"""Checking a chain on the record: the verdict becomes an event of the very history that was checked."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from audit.actions import record
from audit.actors import Actor
from audit.models import Event
from audit.verify import Verdict, verify_whole

HOLDS: Final = "chain.verified"
BROKEN: Final = "chain.broken"


@dataclass(frozen=True, slots=True)
class LastCheck:
    """What the last check of the whole chain found, and when."""

    at: datetime
    holds: bool
    sealed: int
    meaning: str
    performed_by: str


def check_chain(tenant_id: UUID, *, by: Actor) -> Verdict:
    """Recompute the whole chain of a tenant, compare the tables with it, and write down what was found."""
    verdict = verify_whole(tenant_id)
    record_verdict(verdict, by=by)
    return verdict


@transaction.atomic(durable=True)
def record_verdict(verdict: Verdict, *, by: Actor) -> None:
    record(
        by=by, kind=HOLDS if verdict.holds else BROKEN, tenant_id=verdict.tenant_id, subject_type="chain",
        subject_id=verdict.tenant_id, reason=verdict.cause or "", digest=verdict.head,
        body={"sealed": verdict.sealed, "seq": verdict.seq, "meaning": verdict.meaning},
    )  # fmt: skip


def last_check(tenant_id: UUID) -> LastCheck | None:
    """The newest recorded check; None where there was none yet."""
    found = Event.objects.filter(tenant_id=tenant_id, subject_id=tenant_id, kind__in=(HOLDS, BROKEN))
    event = found.order_by("-at", "-id").first()
    if event is None:
        return None
    sealed = said(event, "sealed")
    return LastCheck(
        at=event.at, holds=event.kind == HOLDS, sealed=sealed if type(sealed) is int else 0,
        meaning=str(said(event, "meaning")), performed_by=event.performed_by,
    )  # fmt: skip


def said(event: Event, name: str) -> Any:
    """A member of an event's body; empty where somebody wrote an event that has none. Pages are shown all the same."""
    return event.body.get(name, "") if isinstance(event.body, dict) else ""
