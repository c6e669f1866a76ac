"""The only writers of working hours."""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Final

from access.actions_absence import UnknownZone
from access.hours import DAYS, MIDNIGHT, Day, known_zone
from access.models import Group, WorkingHours
from access.policies import check_can_manage
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.db import lock_name
from common.errors import InvalidInput
from common.models import Tenant
from common.tx import action

MOST_HOLIDAYS: Final = 400


class BadWeek(InvalidInput):
    """Each day of a week is a day off, or has working hours that begin before they end."""

    code = "bad_week"


@action
def set_hours(
    *, tenant: Tenant, group: Group | None, zone: str, week: Sequence[Day], by: Actor, clock: Clock,
    holidays: Collection[date] = (),
) -> WorkingHours:  # fmt: skip
    """Say when a group works, or where none is named the whole organisation. Raises UnknownZone, BadWeek.

    It decides about no proposal: nobody is kept from deciding at night. It is for the alarm that nobody will be there.
    """
    check_can_manage(by, tenant.id)
    if known_zone(zone) is None:
        raise UnknownZone
    _check_week(week, holidays)
    lock_name(f"working hours of {tenant.id}")
    row = WorkingHours.objects.filter(tenant=tenant, group=group).first() or WorkingHours(
        tenant=tenant, group=group
    )
    row.zone, row.week, row.changed_at = zone, [list(day) if day else None for day in week], clock()
    row.holidays = sorted(set(holidays))
    row.save()
    body = {"zone": zone, "week": row.week, "holidays": [day.isoformat() for day in row.holidays]}
    record(
        by=by, kind="working_hours.set", tenant_id=tenant.id, subject_type="group" if group else "tenant",
        subject_id=group.id if group else tenant.id, body=body,
    )  # fmt: skip
    return row


@action
def clear_hours(*, tenant: Tenant, group: Group | None, by: Actor, clock: Clock) -> bool:
    """The group works as the organisation does, the organisation always; whether anything else was said before."""
    check_can_manage(by, tenant.id)
    lock_name(f"working hours of {tenant.id}")
    gone, _ = WorkingHours.objects.filter(tenant=tenant, group=group).delete()
    if gone:
        record(
            by=by, kind="working_hours.cleared", tenant_id=tenant.id,
            subject_type="group" if group else "tenant", subject_id=group.id if group else tenant.id,
        )  # fmt: skip
    return bool(gone)


def _check_week(week: Sequence[Day], holidays: Collection[date]) -> None:
    right = len(week) == len(DAYS) and any(week) and len(holidays) <= MOST_HOLIDAYS
    if not right or any(day and not 0 <= day[0] < day[1] <= MIDNIGHT for day in week):
        raise BadWeek
