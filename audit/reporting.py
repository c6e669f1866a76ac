"""What the signer reports, and what is wrong with the installation's own chain, becomes events that people are told of.

The signer may add rows of its own and no events. And nobody reads the chain of the installation, which is no tenant's:
what is found there is written into the history of every tenant, since all of them depend on it.
"""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from django.db import connection

from audit.actions import Entry, record_many
from audit.actors import INSTALLATION, Actor
from audit.checks import BROKEN, HOLDS
from audit.models import Event, SignerReport
from audit.verify import Verdict
from common.models import Tenant
from common.tx import system_action

REFUSED: Final = "chain.refused"
ACCEPTED: Final = "chain.accepted"
LOCK: Final = 0x506C6163_65747270  # "Placetrp", a number of our own among the advisory locks
_NEW: Final = """
    SELECT r.id, r.tenant_id, r.kind, r.cause, r.detail FROM audit_signer_report r
    WHERE NOT EXISTS (SELECT FROM audit_event e WHERE e.tenant_id = r.tenant_id AND e.subject_id = r.id)
    ORDER BY r.recorded_at LIMIT 100
"""


@system_action
def write_down_reports(*, by: Actor) -> int:
    """Each report of the signer once; returns how many. One process at a time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute(_NEW)
        rows = cursor.fetchall()
    record_many([entry for row in rows for entry in _entries(*row, by=by)])
    return len(rows)


def _entries(report: UUID, chain: UUID, kind: str, cause: str, detail: str, *, by: Actor) -> Iterator[Entry]:
    for tenant_id in concerned(chain):
        yield Entry(
            by=by, kind=REFUSED if kind == SignerReport.Kind.REFUSED else ACCEPTED, tenant_id=tenant_id,
            subject_type="signer_report", subject_id=report, reason=cause,
            body={"chain": str(chain), "detail": detail},
        )  # fmt: skip


def concerned(chain: UUID) -> list[UUID]:
    """In whose histories it stands: its own, and of the installation's everybody's."""
    everybody = (
        list(Tenant.objects.order_by("pk").values_list("pk", flat=True)) if chain == INSTALLATION else []
    )
    return [chain, *everybody]


@system_action
def spread_verdict(verdict: Verdict, *, by: Actor) -> None:
    """What the daily check found of the installation's chain, for those who would not see it: that it is broken, and
    that it holds again where they were told that it did not.
    """
    tenants = concerned(INSTALLATION)[1:]
    if verdict.holds:
        tenants = [
            tenant_id for tenant_id in tenants if (last := last_spread(tenant_id)) and last.kind == BROKEN
        ]
    body: dict[str, Any] = {"sealed": verdict.sealed, "seq": verdict.seq, "meaning": verdict.meaning}
    record_many([
        Entry(
            by=by, kind=HOLDS if verdict.holds else BROKEN, tenant_id=tenant_id, subject_type="chain",
            subject_id=INSTALLATION, reason=verdict.cause or "", body=body,
        )
        for tenant_id in tenants
    ])  # fmt: skip


def last_spread(tenant_id: UUID) -> Event | None:
    """The newest event of this tenant about the check of the installation's chain."""
    found = Event.objects.filter(tenant_id=tenant_id, subject_id=INSTALLATION, kind__in=(HOLDS, BROKEN))
    return found.order_by("-at", "-id").first()


def last_report(tenant_id: UUID) -> Event | None:
    """The newest event of this tenant about what the signer says of the installation's chain."""
    found = Event.objects.filter(
        tenant_id=tenant_id, kind__in=(REFUSED, ACCEPTED), body__chain=str(INSTALLATION)
    )
    return found.order_by("-at", "-id").first()
