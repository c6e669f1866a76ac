"""Do freezes and open circuits still say what the history says of them? For the daily check (`audit.replay`).

Who deletes or narrows a freeze past the product lets go what a person has stopped, and each sending looks as it should.
"""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from audit.actors import INSTALLATION
from audit.bound import ROW, row_digest
from audit.models import Event
from audit.replay import in_their_order, one_state
from workflows.bound import HOLD, of_hold
from workflows.models import Hold

_Told = tuple[str, str]
"""The state that its last event led to, and the digest of its bound columns; empty in events of before."""
_BEGINS: Final = "tenant.created"


def differences(tenant_id: UUID) -> Iterator[str]:
    """A sentence for each row, in the order of ids; of the installation those that freeze everything."""
    with one_state():
        told, rows = _told(tenant_id), _rows(tenant_id)
        knows_all = Event.objects.filter(tenant_id=tenant_id, kind=_BEGINS).exists()
    for row in rows:
        known = told.pop(row["id"], None)
        if known is None:
            if knows_all:
                yield f"The {row['reason']} {row['id']} stands in no event of the history."
        elif row["status"] != known[0]:
            yield f"The {row['reason']} {row['id']} is {row['status']}; the history says {known[0]}."
        elif known[1] not in ("", row_digest(of_hold(row))):
            yield f"The {row['reason']} {row['id']} is not as it was placed."
    for gone in told:
        yield f"The freeze or circuit {gone} stands in the history and no more in its table."


def _rows(tenant_id: UUID) -> list[dict[str, Any]]:
    of_all = tenant_id == INSTALLATION
    found = Hold.objects.filter(**({"tenant": None} if of_all else {"tenant_id": tenant_id}))
    return list(found.order_by("pk").values("id", "status", *HOLD))


def _told(tenant_id: UUID) -> dict[UUID, _Told]:
    found: dict[UUID, _Told] = {}
    events = in_their_order(Event.objects.filter(tenant_id=tenant_id, subject_type="hold"))
    for ident, state, body in events.values_list("subject_id", "to_state", "body"):
        digest = found[ident][1] if ident in found else str(body.get(ROW, ""))
        found[ident] = (state, digest)
    return found
