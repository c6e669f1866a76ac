"""The break-glass posture of a tenant: the only writers of it."""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from access.models import BreakGlass
from access.policies import check_can_manage, check_reason
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.errors import InvalidInput, Refused
from common.models import Tenant
from common.rounds import each
from common.tx import action

LONGEST: Final = timedelta(days=90)


class BreakGlassOn(Refused):
    """Break-glass is in force already. End it first, or let it end."""

    code = "break_glass_on"


class BreakGlassEnd(InvalidInput):
    """Break-glass ends: in the future, and after 90 days at the latest."""

    code = "break_glass_end"


@action
def turn_on(*, tenant: Tenant, reason: str, ends_at: datetime, by: Actor, clock: Clock) -> BreakGlass:
    """Let one person decide on their own proposals until ``ends_at``: a team of one has nobody else.

    Where two people are asked, it still takes two. Each decision under it says so. Raises ReasonNeeded, BreakGlassEnd,
    BreakGlassOn; a page asks for a fresh proof of who it is before.
    """
    check_can_manage(by, tenant.id)
    reason, waiting = check_reason(reason), _locked(tenant.id)
    now = clock()
    if not now < ends_at <= now + LONGEST:
        raise BreakGlassEnd(latest=(now + LONGEST).isoformat())
    for left in waiting:
        if left.ends_at > now:
            raise BreakGlassOn
        _end(left, "break_glass.expired", left.ends_at, by=by, reason="")
    row, made = BreakGlass.objects.get_or_create(
        tenant=tenant, ended_at=None,
        defaults={"reason": reason, "created_at": now, "created_by": by.performed_by, "ends_at": ends_at},
    )  # fmt: skip
    if not made:
        raise BreakGlassOn  # somebody was faster
    _record(row, "break_glass.on", by=by, reason=reason, body={"ends_at": ends_at.isoformat()})
    return row


@action
def turn_off(*, tenant: Tenant, by: Actor, clock: Clock, reason: str = "") -> bool:
    """End it now; whether it was on. What was decided under it stays decided.

    One whose time is over already is written down as that: it was on until then, and no longer.
    """
    check_can_manage(by, tenant.id)
    rows = _locked(tenant.id)
    now, was_on = clock(), False
    for row in rows:
        if row.ends_at <= now:
            _end(row, "break_glass.expired", row.ends_at, by=by, reason="")
        else:
            _end(row, "break_glass.off", now, by=by, reason=reason.strip())
            was_on = True
    return was_on


def expire_postures(*, by: Actor, clock: Clock) -> int:
    """Write down that they are over. It counts from its end on by itself: this only makes the rows say so."""
    due = BreakGlass.objects.filter(ended_at=None, ends_at__lte=clock()).values_list("tenant_id", flat=True)
    return each(list(due), lambda tenant_id: _expire(tenant_id, by, clock), what="expire_postures")


@action
def _expire(tenant_id: UUID, by: Actor, clock: Clock) -> bool:
    rows = [row for row in _locked(tenant_id) if row.ends_at <= clock()]
    for row in rows:
        _end(row, "break_glass.expired", row.ends_at, by=by, reason="")
    return bool(rows)


def _locked(tenant_id: UUID) -> list[BreakGlass]:
    """The one that is not ended, if there is one; it may be over."""
    return list(BreakGlass.objects.select_for_update(no_key=True).filter(tenant_id=tenant_id, ended_at=None))


def _end(row: BreakGlass, kind: str, at: datetime, *, by: Actor, reason: str) -> None:
    row.ended_at, row.ended_by, row.end_reason = at, by.performed_by, reason[:500]
    row.save(update_fields=["ended_at", "ended_by", "end_reason"])
    _record(row, kind, by=by, reason=reason)


def _record(
    row: BreakGlass, kind: str, *, by: Actor, reason: str, body: dict[str, Any] | None = None
) -> None:
    record(
        by=by, kind=kind, tenant_id=row.tenant_id, subject_type="break_glass", subject_id=row.id, reason=reason,
        body=body,
    )  # fmt: skip
