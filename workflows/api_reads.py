"""Reads that only the API needs: pages by cursor, steps and results by address, and whether a run has moved."""

from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Q

from common.cursors import PAGE, Page, page
from common.errors import NotFound
from common.pipelined import Question
from workflows.models import Document, Run, Step
from workflows.selectors import runs_newest_first


def list_runs(
    tenant_id: UUID, *, workflow: str = "", status: str = "", cursor: str = "", size: int = PAGE
) -> Page[Run]:
    """A page of the tenant's runs, newest first. Raises BadCursor."""
    found = runs_newest_first(tenant_id, workflow=workflow, status=status)
    return page(found, list_name="runs", cursor=cursor, size=size)


def get_step(tenant_id: UUID, run_id: UUID, key: str) -> Step:
    """The step of that key. Raises NotFound, also for another tenant's run."""
    steps = Step.objects.filter(tenant_id=tenant_id, run_id=run_id)
    found = next((step for step in steps if step.key == key), None)  # a key of an address may be any text
    if found is None:
        raise NotFound()
    return found


def get_result(tenant_id: UUID, ref: UUID) -> Document:
    """A document that envelopes and receipts point at: an input or a result. Raises NotFound for all others."""
    pointed_at = Q(kind="input") | Q(kind__startswith="result.")
    found = Document.objects.filter(pointed_at, tenant_id=tenant_id, pk=ref).first()
    if found is None:
        raise NotFound()
    return found


def known_event(tenant_id: UUID, workflow: str, system: str, event_id: str, key: str) -> Question[bool]:
    """Whether this request of an agent came before."""
    return Question(_KNOWN, [tenant_id, workflow, system, event_id, key], bool)


_KNOWN: Final = """
    SELECT FROM workflows_sourceevent e
    WHERE e.tenant_id = %s AND e.workflow = %s AND e.system = %s AND e.event_id = %s AND e.key = %s LIMIT 1
"""


def has_moved(tenant_id: UUID, run_id: UUID, since: int) -> bool:
    """Whether a run is no longer at that state version. One row by its key."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state_version FROM workflows_run WHERE tenant_id = %s AND id = %s", [tenant_id, run_id]
        )
        row = cursor.fetchone()
    return row is None or row[0] != since
