"""Do break-glass and duties still say what the history says of them? For the daily check (`audit.replay`).

The one lets a person decide alone, the other keeps one from deciding: who writes these rows past the product changes
who may decide, and no decision shows it.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from access.models import BreakGlass, Duty
from audit.models import Event
from audit.replay import in_their_order, one_state

_DutyKey = tuple[UUID, str, str, int | None]


def differences(tenant_id: UUID) -> Iterator[str]:
    """A sentence for each row. None where the history does not begin with its tenant: it does not know everything."""
    if not Event.objects.filter(tenant_id=tenant_id, kind="tenant.created").exists():
        return
    with one_state():
        found = [*_postures(tenant_id), *_duties(tenant_id)]
    yield from found


def _postures(tenant_id: UUID) -> Iterator[str]:
    events = in_their_order(Event.objects.filter(tenant_id=tenant_id, subject_type="break_glass"))
    told: dict[UUID, dict[str, Any]] = {}
    for ident, kind, body in events.values_list("subject_id", "kind", "body"):
        known = told.setdefault(ident, {"ends_at": None})
        known["on"] = kind == "break_glass.on"
        known["ends_at"] = body.get("ends_at") or known["ends_at"]
    for row in BreakGlass.objects.filter(tenant_id=tenant_id).order_by("pk"):
        said = told.pop(row.pk, None)
        if said is None:
            yield f"The break-glass {row.pk} stands in no event of the history."
        elif said["on"] != (row.ended_at is None) or datetime.fromisoformat(said["ends_at"]) != row.ends_at:
            yield f"The break-glass {row.pk} is not what the history says."
    for gone in told:
        yield f"The break-glass {gone} stands in the history and no more in its table."


def _duties(tenant_id: UUID) -> Iterator[str]:
    """By person, kind, workflow and version, since no event names the row. A duty that is given twice is one."""
    events = in_their_order(Event.objects.filter(tenant_id=tenant_id, kind__in=("duty.given", "duty.ended")))
    told: Counter[_DutyKey] = Counter()
    for user, kind, body in events.values_list("subject_id", "kind", "body"):
        key = (user, str(body.get("duty")), str(body.get("workflow")), body.get("policy_version"))
        told[key] += 1 if kind == "duty.given" else -1
    rows = Duty.objects.filter(tenant_id=tenant_id, ended_at=None)
    stored = Counter(rows.values_list("user_id", "kind", "workflow", "policy_version"))
    for user, *_ in sorted((stored - told) + (told - stored), key=str):
        yield f"The duties of user:{user} are not those that the history says."
