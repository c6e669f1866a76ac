"""The only writers of absences, and of who decides in whose stead meanwhile."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError

from access.actions import locked_row
from access.enums import Role
from access.hours import known_zone
from access.models import Absence, Group, Membership, User
from access.policies import NotAMember, check_can_manage, check_member
from access.selectors import accounts_of
from audit.actions import record
from audit.actors import Actor, Via
from common.clock import Clock
from common.db import lock_name, violates
from common.errors import InvalidInput, Refused
from common.models import Tenant
from common.tx import action

LONGEST: Final = timedelta(days=366)


class AbsenceTimes(InvalidInput):
    """An absence ends after it begins, ends in the future, and lasts a year at most."""

    code = "absence_times"


class UnknownZone(InvalidInput):
    """There is no such time zone."""

    code = "unknown_zone"


class DeputyUnfit(Refused):
    """A deputy is another active member who is a reviewer: that role comes from an admin, not from whoever is away."""

    code = "deputy_unfit"
    http_status = 422


class NoSuchPlace(Refused):
    """Nobody hands over a group that they are not in, and only reviewers have something to hand over."""

    code = "no_such_place"
    http_status = 422


class DeputyAway(Refused):
    """That person is away in a part of this time. Choose somebody who is there."""

    code = "deputy_away"


class DeputyCircle(Refused):
    """That person is away in a part of this time, and you decide in their stead then: it would be a circle."""

    code = "deputy_circle"


class DeputyChain(Refused):
    """Nobody hands on what they hold in somebody's stead: whoever decides for others then, or has a deputy, is none."""

    code = "deputy_chain"


@action
def note_absence(
    *, tenant: Tenant, user: User, starts_at: datetime, ends_at: datetime, zone: str, by: Actor, clock: Clock,
    deputy: User | None = None, group: Group | None = None,
) -> Absence:  # fmt: skip
    """Say that somebody is away from ``starts_at`` up to and without ``ends_at``, and who decides in their stead.

    For themself, or by an admin for whoever cannot. The deputy gets the places in the groups, or in this ``group``, and
    no role; what they approve counts as long as both hold theirs, also after the absence. Raises AbsenceTimes,
    UnknownZone, DeputyUnfit, NoSuchPlace, DeputyAway, DeputyCircle, DeputyChain, NotAMember.
    """
    _check_may(by, tenant.id, user.id)
    if known_zone(zone) is None:
        raise UnknownZone
    away = check_member(user.id, tenant.id)
    lock_name(f"absences of {tenant.id}")
    now = clock()
    if not (starts_at < ends_at and now < ends_at <= max(now, starts_at) + LONGEST):
        raise AbsenceTimes
    if deputy is not None:
        _check_deputy(away, deputy, group, starts_at, ends_at)
    row = _insert(Absence(
        tenant=tenant, user=user, starts_at=starts_at, ends_at=ends_at, zone=zone, deputy=deputy,
        group=group if deputy is not None else None, created_at=now, created_by=by.performed_by,
    ))  # fmt: skip
    _record("absence.noted", row, by=by, accounts=away.accounts)
    return row


@action
def end_absence(*, tenant: Tenant, absence_id: UUID, by: Actor, clock: Clock) -> bool:
    """Take it back: they are there again, and nobody decides in their stead from now on. Whether it was in force yet.

    What was approved in their stead stays approved.
    """
    row = locked_row(Absence, absence_id, tenant.id)
    _check_may(by, tenant.id, row.user_id)
    now = clock()
    if row.ended_at is not None or row.ends_at <= now:
        return False
    row.ended_at, row.ended_by = now, by.performed_by
    row.save(update_fields=["ended_at", "ended_by"])
    _record("absence.ended", row, by=by, accounts=accounts_of(tenant.id, [row.user_id]))
    return True


def _check_may(by: Actor, tenant_id: UUID, user_id: UUID) -> None:
    """One's own, under any of one's accounts, in a session; or as an admin. A token never says it."""
    if by.via == Via.SESSION and by.user_id in accounts_of(tenant_id, [user_id]):
        check_member(by.user_id, tenant_id)
    else:
        check_can_manage(by, tenant_id)


def _check_deputy(
    away: Membership, deputy: User, group: Group | None, starts_at: datetime, ends_at: datetime
) -> None:
    """Under the lock on the tenant's absences; the database looks once more by itself."""
    tenant_id = away.tenant_id
    try:
        chosen = check_member(deputy.id, tenant_id)
    except NotAMember as missing:
        raise DeputyUnfit from missing
    if deputy.id in away.accounts or not chosen.has_role(Role.REVIEWER):
        raise DeputyUnfit
    theirs = away.groups.filter(id=group.id) if group is not None else away.groups.all()
    if not away.has_role(Role.REVIEWER) or not theirs.exists():
        raise NoSuchPlace
    meanwhile = Absence.objects.filter(
        tenant_id=tenant_id, ended_at=None, starts_at__lt=ends_at, ends_at__gt=starts_at
    )
    mine, others = away.accounts, chosen.accounts
    if meanwhile.filter(user__in=others, deputy__in=mine).exists():
        raise DeputyCircle
    if (
        meanwhile.filter(user__in=others, deputy__isnull=False).exists()
        or meanwhile.filter(deputy__in=mine).exists()
    ):
        raise DeputyChain
    if meanwhile.filter(user__in=others).exists():
        raise DeputyAway


def _insert(row: Absence) -> Absence:
    try:
        row.save(force_insert=True)
    except DatabaseError as error:
        if violates(error, "access_absence_no_chains"):
            raise DeputyChain from error
        raise
    return row


def _record(kind: str, row: Absence, *, by: Actor, accounts: Collection[UUID]) -> None:
    body: dict[str, Any] = {
        "absence": str(row.pk), "from": row.starts_at.isoformat(), "until": row.ends_at.isoformat(), "zone": row.zone,
        "deputy": str(row.deputy_id) if row.deputy_id else None,
        "group": str(row.group_id) if row.group_id else None, "own": by.user_id in accounts,
    }  # fmt: skip
    record(by=by, kind=kind, tenant_id=row.tenant_id, subject_type="user", subject_id=row.user_id, body=body)
