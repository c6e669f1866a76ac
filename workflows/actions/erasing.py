"""The end of what a run held: erased for good, kept by a legal hold, or due because its time is over.

To erase is to destroy the run's key: every sealed column under it, in whatever table, is unreadable from then on, also
in backups that were made without the key. Digests, times, states and the history stay, and so does the proof.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final
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
from common.content_keys import KeyUnknown, SealBroken
from common.ids import new_id
from common.models import ContentKey
from common.rounds import each
from common.sealed import MARK
from common.tx import action
from workflows import registry
from workflows.actions.settle import lock_run
from workflows.enums import CommandStatus, RunStatus
from workflows.hooks import with_open_stops
from workflows.models import Command, Delivery, Run

PER_ROUND: Final = 100


@dataclass(frozen=True, slots=True)
class Erasure:
    """``left_plain``: rows of before contents were sealed, which no key opens and which stay as they are."""

    done: bool
    left_plain: int = 0


def erase_content(*, tenant_id: UUID, run_id: UUID, why: str, by: Actor, clock: Clock) -> Erasure:
    """Erase what one run was given, found, proposed and answered. By an admin, or at the command line; again: nothing.

    Its replays, and what followed its effects, go first: they were given the same.
    ``why`` is a code or a file number, without personal data. Raises UnknownRun, ContentInUse, ContentOnHold.
    """
    check_can_manage(by, tenant_id)
    given_the_same = Run.objects.filter(tenant_id=tenant_id, original_id=run_id)
    for other_id in given_the_same.order_by("pk").values_list("pk", flat=True):
        _erase(tenant_id, other_id, why, by=by, clock=clock)
    return _erase(tenant_id, run_id, why, by=by, clock=clock)


@action
def _erase(tenant_id: UUID, run_id: UUID, why: str, *, by: Actor, clock: Clock) -> Erasure:
    run = lock_run(tenant_id, run_id)
    if _is_in_use(run):
        raise ContentInUse(status=run.status)
    key = ContentKey.objects.select_for_update().filter(tenant_id=tenant_id, run_id=run_id).first()
    if key is not None and key.erased_at is not None:
        return Erasure(done=False)
    if key is not None and key.held_at is not None:
        raise ContentOnHold(since=key.held_at.isoformat())
    if key is not None:
        key.wrapped, key.erased_at = None, clock()
        key.save(update_fields=["wrapped", "erased_at"])
    Evidence.objects.filter(tenant_id=tenant_id, proposal__run_id=run_id).update(content=None)
    Delivery.objects.filter(tenant_id=tenant_id, run_id=run_id, body__isnull=False).update(body=None)
    left = _left_plain(tenant_id, run_id)
    record(
        by=by, kind="run.content_erased", tenant_id=tenant_id, subject_type="run", subject_id=run_id, run_id=run_id,
        reason=why[:500], body={"left_plain": left},
    )  # fmt: skip
    return Erasure(done=True, left_plain=left)


def _is_in_use(run: Run) -> bool:
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


_DUE: Final = """
    SELECT k.tenant_id, k.run_id, k.created_at
    FROM common_contentkey k
    JOIN workflows_run r ON r.tenant_id = k.tenant_id AND r.id = k.run_id
    LEFT JOIN unnest(%(names)s::text[], %(seconds)s::float8[]) AS w(name, seconds) ON w.name = r.workflow
    WHERE k.wrapped IS NOT NULL AND k.held_at IS NULL AND k.created_at > %(after)s
        AND k.created_at < clock_timestamp() - make_interval(secs => %(shortest)s)
        AND coalesce(w.seconds, %(default)s) > 0
        AND r.finished_at < clock_timestamp() - make_interval(secs => coalesce(w.seconds, %(default)s))
    ORDER BY k.created_at LIMIT %(limit)s
"""
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
        return _erase(tenant_id, run_id, "retention", by=by, clock=clock).done
    except (ContentInUse, ContentOnHold):
        return False  # another round asks again


def _due(limit: int) -> Iterator[tuple[UUID, UUID, datetime]]:
    default = float(settings.PLACET_RETENTION_DAYS * 86_400)
    own = {flow.name: flow.contract.retention for flow in registry.workflows()}
    spans = {name: span.total_seconds() for name, span in own.items() if span is not None}
    positive = [span for span in (*spans.values(), default) if span > 0]
    if not positive:
        return
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {
            "names": list(spans), "seconds": list(spans.values()), "default": default, "limit": limit,
            "shortest": min(positive), "after": _Place.after,
        })  # fmt: skip
        yield from cursor.fetchall()


# -- wrapping keys --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rewrapped:
    """``left``: keys that none of the wrapping keys opens, and which stay as they are."""

    done: int
    left: int


def rewrap_keys(*, by: Actor, batch: int = 500) -> Rewrapped:
    """Wrap every run's key that another wrapping key holds under the current one. No content moves.

    A key that somebody has locked just now is waited for: when this returns, no other than ``left`` needs an old one.
    """
    done, left, after = 0, 0, UUID(int=0)
    while True:
        some, not_opened, last = _rewrap_some(batch, after, by=by)
        done, left = done + some, left + not_opened
        if last is None:
            return Rewrapped(done, left)
        after = last


@action
def _rewrap_some(batch: int, after: UUID, *, by: Actor) -> tuple[int, int, UUID | None]:
    old = ContentKey.objects.select_for_update(of=("self",)).filter(wrapped__isnull=False, pk__gt=after)
    rows = list(old.exclude(wrapped_with=content_keys.current_name()).order_by("pk")[:batch])
    tenants: Counter[UUID] = Counter(row.tenant_id for row in rows if _rewrap(row))
    for tenant_id, count in tenants.items():
        record(
            by=by, kind="tenant.content_keys_rewrapped", tenant_id=tenant_id, subject_type="tenant",
            subject_id=tenant_id, body={"keys": count, "wrapped_with": content_keys.current_name()},
        )  # fmt: skip
    return tenants.total(), len(rows) - tenants.total(), rows[-1].pk if rows else None


def _rewrap(row: ContentKey) -> bool:
    """One that does not open, because its wrapping key is not here or it is damaged, keeps no other from its turn."""
    assert row.wrapped is not None
    try:
        row.wrapped = content_keys.rewrapped(row.tenant_id, row.run_id, bytes(row.wrapped))
    except (KeyUnknown, SealBroken):
        return False
    row.wrapped_with = content_keys.wrapped_with(row.wrapped)
    row.save(update_fields=["wrapped", "wrapped_with"])
    return True
