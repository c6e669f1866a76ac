"""The end of what a run held: erased for good, kept by a legal hold, or due because its time is over.

To erase is to destroy the run's key: every sealed column under it, in whatever table, is unreadable from then on, also
in backups that were made without the key. Digests, times, states and the history stay, and so does the proof.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connection

from access.policies import check_can_manage
from approvals.models import Evidence, Proposal
from audit.actions import record
from audit.actors import Actor
from common import content_keys
from common.clock import Clock
from common.content_errors import AlreadyErased, ContentInUse, ContentOnHold
from common.ids import new_id
from common.models import ContentKey
from common.rounds import each
from common.sealed import MARK
from common.tx import action
from workflows import legal_holds, registry
from workflows.actions.settle import lock_run
from workflows.enums import CommandStatus, RunStatus
from workflows.hooks import with_open_stops
from workflows.legal_holds import COVERS
from workflows.models import Command, Delivery, Run

PER_ROUND: Final = 100


@dataclass(frozen=True, slots=True)
class Erasure:
    """``left_plain``: rows of before contents were sealed, which no key opens and which stay as they are."""

    done: bool
    left_plain: int = 0


def erase_content(*, tenant_id: UUID, run_id: UUID, why: str, by: Actor, clock: Clock) -> Erasure:
    """Erase what one run was given, found, proposed and answered. By an admin, or at the command line; again: nothing.

    Its replays, and what followed its effects, go with it: they were given the same. All of them or none.
    ``why`` is a code or a file number, without personal data. Raises UnknownRun, ContentInUse, ContentOnHold.
    """
    check_can_manage(by, tenant_id)
    return _erase(tenant_id, run_id, why, by=by, clock=clock)


@action
def _erase(
    tenant_id: UUID, run_id: UUID, why: str, *, by: Actor, clock: Clock, alone: bool = False
) -> Erasure:  # fmt: skip
    """``alone``: without its replays, whose time is counted by itself."""
    legal_holds.enter(tenant_id)
    ids = [run_id] if alone else sorted({run_id, *follows(tenant_id, run_id)})
    runs = [lock_run(tenant_id, one) for one in ids]
    for run in runs:
        if is_in_use(run):
            raise ContentInUse(status=run.status, run_id=str(run.pk))
    keys = ContentKey.objects.select_for_update(of=("self",)).filter(tenant_id=tenant_id, run_id__in=ids)
    by_run = {key.run_id: key for key in keys.order_by("run_id")}
    left = [run for run in runs if run.pk not in by_run or by_run[run.pk].erased_at is None]
    if not left:
        return Erasure(done=False)
    since = legal_holds.held_since(tenant_id, family(tenant_id, runs[ids.index(run_id)]))
    if since is not None:
        raise ContentOnHold(since=since.isoformat())
    plain = [_destroy(run, by_run.get(run.pk), why, by=by, now=clock()) for run in left]
    return Erasure(done=True, left_plain=sum(plain))


def follows(tenant_id: UUID, run_id: UUID) -> list[UUID]:
    """Its replays, and the runs that took its effects back or on: they were given the same."""
    found = Run.objects.filter(tenant_id=tenant_id, original_id=run_id)
    return list(found.order_by("pk").values_list("pk", flat=True))


def family(tenant_id: UUID, run: Run) -> list[UUID]:
    """The original and everything that follows it. A hold on one of them keeps them all: they tell one case."""
    first = run.original_id or run.pk
    return [first, *follows(tenant_id, first)]


def _destroy(run: Run, key: ContentKey | None, why: str, *, by: Actor, now: datetime) -> int:
    """The key, and what lies under no key. Returns how many rows of before stay in clear."""
    if key is not None:
        key.wrapped, key.erased_at = None, now
        key.save(update_fields=["wrapped", "erased_at"])
    Evidence.objects.filter(tenant_id=run.tenant_id, proposal__run_id=run.pk).update(content=None)
    Delivery.objects.filter(tenant_id=run.tenant_id, run_id=run.pk, body__isnull=False).update(body=None)
    left = _left_plain(run.tenant_id, run.pk)
    record(
        by=by, kind="run.content_erased", tenant_id=run.tenant_id, subject_type="run", subject_id=run.pk,
        run_id=run.pk, reason=why[:500], body={"left_plain": left},
    )  # fmt: skip
    return left


def is_in_use(run: Run) -> bool:
    """Whether anything of it may still be read by code that acts: itself, its orders, its packets, its replays."""
    if run.status not in RunStatus.final_states or with_open_stops([run.pk]):
        return True
    commands = Command.objects.filter(tenant_id=run.tenant_id, run=run).exclude(
        status__in=CommandStatus.final_states
    )
    replays = Run.objects.filter(tenant_id=run.tenant_id, original=run).exclude(
        status__in=RunStatus.final_states
    )
    proposals = Proposal.objects.filter(tenant_id=run.tenant_id, run_id=run.pk).only("status", "mode")
    return commands.exists() or replays.exists() or any(row.is_live for row in proposals)


_PLAIN: Final = """
    SELECT (SELECT count(*) FROM workflows_document
            WHERE tenant_id = %(tenant)s AND run_id = %(run)s AND substr(content, 1, %(length)s) <> %(mark)s)
         + (SELECT count(*) FROM approvals_proposal
            WHERE tenant_id = %(tenant)s AND run_id = %(run)s AND substr(contract, 1, %(length)s) <> %(mark)s)
"""


def _left_plain(tenant_id: UUID, run_id: UUID) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_PLAIN, {"tenant": tenant_id, "run": run_id, "mark": MARK, "length": len(MARK)})
        return int(cursor.fetchone()[0])


# -- legal hold ---------------------------------------------------------------------------------------------------


@action
def hold_content(*, tenant_id: UUID, run_id: UUID, reason: str, by: Actor, clock: Clock) -> bool:
    """Keep the content of a run whatever its retention says; False if it was held already.

    ``reason`` is a reference such as a file number. Raises UnknownRun, and ContentInUse where it is erased already.
    """
    check_can_manage(by, tenant_id)
    lock_run(tenant_id, run_id)
    key = _key_of(tenant_id, run_id, clock)
    if key.erased_at is not None:
        raise AlreadyErased(at=key.erased_at.isoformat())
    if key.held_at is not None:
        return False
    key.held_at, key.held_by, key.hold_reason = clock(), by.performed_by, reason.strip()[:200]
    key.save(update_fields=["held_at", "held_by", "hold_reason"])
    _record_hold(tenant_id, run_id, "run.content_held", reason, by)
    return True


@action
def release_content(*, tenant_id: UUID, run_id: UUID, reason: str, by: Actor) -> bool:
    """End the hold: from then on the retention counts again. False if there was none. Raises UnknownRun."""
    check_can_manage(by, tenant_id)
    lock_run(tenant_id, run_id)
    key = ContentKey.objects.select_for_update().filter(tenant_id=tenant_id, run_id=run_id).first()
    if key is None or key.held_at is None:
        return False
    key.held_at, key.held_by, key.hold_reason = None, "", ""
    key.save(update_fields=["held_at", "held_by", "hold_reason"])
    _record_hold(tenant_id, run_id, "run.content_released", reason, by)
    return True


def _key_of(tenant_id: UUID, run_id: UUID, clock: Clock) -> ContentKey:
    fresh = content_keys.new_key(tenant_id, run_id)
    assert fresh.wrapped is not None
    key, _ = ContentKey.objects.select_for_update().get_or_create(
        tenant_id=tenant_id, run_id=run_id,
        defaults={
            "id": new_id(), "wrapped": fresh.wrapped, "wrapped_with": content_keys.wrapped_with(fresh.wrapped),
            "created_at": clock(),
        },
    )  # fmt: skip
    return key


def _record_hold(tenant_id: UUID, run_id: UUID, kind: str, reason: str, by: Actor) -> None:
    record(
        by=by, kind=kind, tenant_id=tenant_id, subject_type="run", subject_id=run_id, run_id=run_id,
        reason=reason.strip()[:500],
    )  # fmt: skip


# -- retention ----------------------------------------------------------------------------------------------------


_DUE: Final = f"""
    SELECT k.tenant_id, k.run_id, k.created_at
    FROM common_contentkey k
    JOIN workflows_run r ON r.tenant_id = k.tenant_id AND r.id = k.run_id
    LEFT JOIN unnest(%(names)s::text[], %(seconds)s::float8[]) AS w(name, seconds) ON w.name = r.workflow
    WHERE k.wrapped IS NOT NULL AND k.held_at IS NULL AND k.created_at > %(after)s
        AND k.created_at < clock_timestamp() - make_interval(secs => %(shortest)s)
        AND coalesce(w.seconds, %(default)s) > 0
        AND r.finished_at < clock_timestamp() - make_interval(secs => coalesce(w.seconds, %(default)s))
        AND NOT EXISTS (SELECT FROM workflows_legalhold h WHERE {COVERS})
    ORDER BY k.created_at LIMIT %(limit)s
"""  # noqa: S608 - our own text
_BEGINNING: Final = datetime.fromisoformat("0001-01-02T00:00:00+00:00")


class _Place:
    """How far this process has looked: what is refused (a packet is open, say) must not stand before the rest."""

    after: datetime = _BEGINNING


def erase_due(*, by: Actor, clock: Clock, limit: int = PER_ROUND) -> int:
    """Erase a bounded number of runs whose retention is over, each in a transaction of its own; returns how many."""
    rows = list(_due(limit))
    _Place.after = rows[-1][2] if len(rows) == limit else _BEGINNING
    return each(rows, lambda row: _erase_if_over(row[0], row[1], by=by, clock=clock), what="erase_due")


def _erase_if_over(tenant_id: UUID, run_id: UUID, *, by: Actor, clock: Clock) -> bool:
    try:
        return _erase(tenant_id, run_id, "retention", by=by, clock=clock, alone=True).done
    except (ContentInUse, ContentOnHold):
        return False  # another round asks again


@dataclass(frozen=True, slots=True)
class Spans:
    """How long contents are kept, in seconds: by workflow, and for all others; zero is for ever."""

    own: Mapping[str, float]
    default: float

    def of(self, workflow: str) -> float:
        return self.own.get(workflow, self.default)

    def parameters(self) -> dict[str, Any]:
        return {"names": list(self.own), "seconds": list(self.own.values()), "default": self.default}

    @property
    def shortest(self) -> float:
        return min(span for span in (*self.own.values(), self.default) if span > 0)


def spans() -> Spans | None:
    """None where nothing is ever due."""
    default = float(settings.PLACET_RETENTION_DAYS * 86_400)
    own = {flow.name: flow.contract.retention for flow in registry.workflows()}
    found = Spans({name: span.total_seconds() for name, span in own.items() if span is not None}, default)
    return found if any(span > 0 for span in (*found.own.values(), default)) else None


def _due(limit: int) -> Iterator[tuple[UUID, UUID, datetime]]:
    of_workflow = spans()
    if of_workflow is None:
        return
    more = {"limit": limit, "shortest": of_workflow.shortest, "after": _Place.after}
    with connection.cursor() as cursor:
        cursor.execute(_DUE, of_workflow.parameters() | more)
        yield from cursor.fetchall()
