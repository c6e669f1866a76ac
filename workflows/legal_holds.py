"""Which runs a legal hold keeps. One lock, as for freezes: whoever erases takes it shared and reads the holds after
that; whoever places one has it for themself, so no erasure is left under way that has not seen the hold.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection

from common.db import lock_name, lock_name_shared

# For hand-written SQL with the aliases h (legal hold) and r (run).
COVERS: Final = """
    h.lifted_at IS NULL AND h.tenant_id = r.tenant_id AND (
        (h.target = '' AND h.record = '' AND h.person = '')
        OR (h.target <> '' AND EXISTS (
            SELECT FROM approvals_proposal p
            WHERE p.tenant_id = r.tenant_id AND p.run_id = r.id AND p.target = h.target))
        OR (h.record <> '' AND r.source_record = h.record)
        OR (h.person <> '' AND (h.person IN (r.requested_by, r.on_behalf_of) OR EXISTS (
            SELECT FROM approvals_proposal p JOIN approvals_decision d ON d.proposal_id = p.id
            WHERE p.tenant_id = r.tenant_id AND p.run_id = r.id AND d.performed_by = h.person))))
"""
_HELD: Final = f"""
    SELECT least(
        (SELECT min(k.held_at) FROM common_contentkey k
            WHERE k.tenant_id = %(tenant)s AND k.run_id = ANY(%(runs)s::uuid[])),
        (SELECT min(h.placed_at) FROM workflows_legalhold h JOIN workflows_run r ON {COVERS}
            WHERE r.tenant_id = %(tenant)s AND r.id = ANY(%(runs)s::uuid[])))
"""  # noqa: S608 - our own text
_ALL: Final = """
    SELECT min(placed_at) FROM workflows_legalhold
    WHERE tenant_id = %s AND lifted_at IS NULL AND target = '' AND record = '' AND person = ''
"""


def enter(tenant_id: UUID) -> None:
    """Before anything is erased, and first of all locks: the holds that are read now stand until we have committed."""
    lock_name_shared(_name(tenant_id))


def alone(tenant_id: UUID) -> None:
    """For whoever places a hold: every erasure that had entered has ended."""
    lock_name(_name(tenant_id))


def held_since(tenant_id: UUID, runs: Collection[UUID]) -> datetime | None:
    """Since when a hold keeps any of these runs, by itself or by what it is about; None if none does."""
    return _one(_HELD, {"tenant": tenant_id, "runs": list(runs)})


def all_held_since(tenant_id: UUID) -> datetime | None:
    """Since when everything of the organisation is held: also what belongs to no run."""
    return _one(_ALL, [tenant_id])


def _one(query: str, values: object) -> datetime | None:
    with connection.cursor() as cursor:
        cursor.execute(query, values)  # type: ignore[arg-type]
        found: datetime | None = cursor.fetchone()[0]
    return found


def _name(tenant_id: UUID) -> str:
    return f"legal-holds:{tenant_id}"
