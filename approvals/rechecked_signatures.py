"""Are the stored signatures of passkeys those that the history tells of? For the daily check (`audit.replay`).

Whether each holds is asked before anything is sent, and offline; here it is whether one was changed, put in or removed.
"""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from approvals.models import Signature
from approvals.signing import PARTS, SIGNED
from audit.models import Event
from audit.replay import batch_by_batch, one_state
from common.strictjson import canonicalize

AT_ONCE: Final = 200
_COLUMNS: Final = ("document", "credential_id", *PARTS)


def differences(tenant_id: UUID) -> Iterator[str]:
    """A sentence for each signature that differs, in the order of decisions."""
    yield from batch_by_batch(tenant_id, _differ)
    yield from _without_row(tenant_id)


def _differ(tenant_id: UUID, after: UUID) -> tuple[UUID | None, list[str]]:
    found = Signature.objects.filter(tenant_id=tenant_id, decision_id__gt=after).order_by("decision_id")
    rows = list(found.values("decision_id", "decision__proposal_id", *_COLUMNS)[:AT_ONCE])
    told = _told(tenant_id, {row["decision__proposal_id"] for row in rows})
    says = [
        f"The signature of the decision {row['decision_id']} is not the one that was given."
        for row in rows if told.get(str(row["decision_id"])) != {name: row[name] for name in _COLUMNS}
    ]  # fmt: skip
    return (rows[-1]["decision_id"] if rows else None), says


def _told(tenant_id: UUID, proposals: set[UUID]) -> dict[str, dict[str, Any]]:
    """What the history says of each, by decision."""
    events = Event.objects.filter(tenant_id=tenant_id, subject_id__in=proposals, kind=SIGNED)
    found = {}
    for body in events.values_list("body", flat=True):
        document = canonicalize(body.get("document")).decode()
        found[str(body.get("decision_id"))] = {name: body.get(name) for name in _COLUMNS} | {
            "document": document
        }
    return found


def _without_row(tenant_id: UUID) -> Iterator[str]:
    with one_state():
        rows = Signature.objects.filter(tenant_id=tenant_id).values_list("decision_id", flat=True)
        kept = set(map(str, rows))
        events = Event.objects.filter(tenant_id=tenant_id, kind=SIGNED).order_by("at", "id")
        told = [str(body.get("decision_id")) for body in events.values_list("body", flat=True)]
    for ident in told:
        if ident not in kept:
            yield f"The signature of the decision {ident} stands in the history and no more in its table."
