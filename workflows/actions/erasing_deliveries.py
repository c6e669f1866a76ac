"""The end of webhooks that were quarantined: they became no run's input, so no run's key ends with them."""

from typing import Final
from uuid import UUID

from django.db import connection

from access.policies import check_can_manage
from audit.actions import record
from audit.actors import Actor
from common.content_errors import ContentOnHold
from common.rounds import each
from common.tx import action
from workflows import legal_holds
from workflows.actions.erasing import Spans, spans
from workflows.models import Delivery, Endpoint

AT_ONCE: Final = 500
_DUE: Final = """
    SELECT d.tenant_id, d.endpoint_id
    FROM workflows_delivery d JOIN workflows_endpoint e ON e.id = d.endpoint_id
    LEFT JOIN unnest(%(names)s::text[], %(seconds)s::float8[]) AS w(name, seconds) ON w.name = e.workflow
    WHERE d.outcome = 'quarantined' AND d.body IS NOT NULL AND coalesce(w.seconds, %(default)s) > 0
        AND d.ended_at < clock_timestamp() - make_interval(secs => coalesce(w.seconds, %(default)s))
        AND NOT EXISTS (SELECT FROM workflows_legalhold h WHERE h.tenant_id = d.tenant_id AND h.lifted_at IS NULL
            AND h.target = '' AND h.record = '' AND h.person = '')
    GROUP BY 1, 2 LIMIT 20
"""
_ERASE: Final = """
    UPDATE workflows_delivery d SET body = NULL WHERE d.id IN (
        SELECT id FROM workflows_delivery
        WHERE tenant_id = %(tenant)s AND endpoint_id = %(endpoint)s AND outcome = 'quarantined' AND body IS NOT NULL
            AND ended_at < clock_timestamp() - make_interval(secs => %(seconds)s)
        ORDER BY ended_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
"""


def erase_quarantined(*, tenant_id: UUID, why: str, by: Actor) -> int:
    """Erase every quarantined body of the organisation now; returns how many. By an admin, or at the command line.

    Nobody can say whose they are: they were not understood. Raises ContentOnHold.
    """
    check_can_manage(by, tenant_id)
    total = 0
    for endpoint_id in (
        Endpoint.objects.filter(tenant_id=tenant_id).order_by("pk").values_list("pk", flat=True)
    ):
        while count := _erase(tenant_id, endpoint_id, 0.0, why, by=by):
            total += count
    return total


def erase_due_deliveries(*, by: Actor) -> int:
    """Erase bodies whose retention is over, the workflow's or the installation's; returns from how many endpoints."""
    of_workflow = spans()
    if of_workflow is None:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_DUE, of_workflow.parameters())
        rows = cursor.fetchall()
    return each(
        rows, lambda row: _erase_if_over(row[0], row[1], of_workflow, by=by), what="erase_due_deliveries"
    )


def _erase_if_over(tenant_id: UUID, endpoint_id: UUID, of_workflow: Spans, *, by: Actor) -> int:
    workflow = Endpoint.objects.values_list("workflow", flat=True).get(tenant_id=tenant_id, pk=endpoint_id)
    try:
        return _erase(tenant_id, endpoint_id, of_workflow.of(workflow), "retention", by=by)
    except ContentOnHold:
        return 0


@action
def _erase(tenant_id: UUID, endpoint_id: UUID, older_than: float, why: str, *, by: Actor) -> int:
    legal_holds.enter(tenant_id)
    since = legal_holds.all_held_since(tenant_id)
    if since is not None:
        raise ContentOnHold(since=since.isoformat())
    with connection.cursor() as cursor:
        cursor.execute(_ERASE, {
            "tenant": tenant_id, "endpoint": endpoint_id, "seconds": older_than, "limit": AT_ONCE})  # fmt: skip
        count: int = cursor.rowcount
    if count:
        record(
            by=by, kind="endpoint.bodies_erased", tenant_id=tenant_id, subject_type="endpoint",
            subject_id=endpoint_id, reason=why[:500], body={"count": count},
        )  # fmt: skip
    return count


def quarantined_bodies(tenant_id: UUID) -> int:
    """How many there are."""
    return Delivery.objects.filter(tenant_id=tenant_id, outcome="quarantined", body__isnull=False).count()
