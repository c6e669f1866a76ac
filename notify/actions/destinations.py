"""Register where chat messages go, try it, end it. The address is never shown again, and lies sealed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from access.models import Group
from access.policies import check_can_manage
from audit.actions import record
from audit.actors import Actor
from common.addresses import AddressPolicy, AddressRefused, check_literal, parse_target
from common.clock import Clock
from common.errors import InvalidInput, NotFound, Refused
from common.signed_webhooks import new_secret
from common.tx import action
from notify.actions import ending
from notify.enums import DispatchStatus, Style
from notify.kinds import CHECKPOINT, all_kinds
from notify.models import Destination, Dispatch

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}", re.ASCII)


class DestinationTaken(Refused):
    """There is a destination of this name already."""

    code = "destination_taken"


class BadDestination(InvalidInput):
    """A destination needs a name of small letters, digits and hyphens, and an https address of a public host."""

    code = "bad_destination"


class BadAddress(InvalidInput):
    """Who keeps checkpoints needs a name of small letters, digits and hyphens, and an e-mail address."""

    code = "bad_address"


class NotDead(Refused):
    """Only what was given up is sent again."""

    code = "not_given_up"


@dataclass(frozen=True, slots=True)
class Room:
    """What an admin says about a destination. ``group``: hears what concerns it; None hears what concerns anybody."""

    name: str
    url: str
    group: Group | None
    kinds: Sequence[str]
    style: str = Style.TEXT
    signed: bool = False


@action
def register_destination(*, tenant_id: UUID, room: Room, by: Actor, clock: Clock) -> tuple[str, Destination]:
    """A new destination, and its secret where it is signed, to be shown once (else empty).

    The host is not looked up here: each call does that, and refuses what is not public then.
    Raises RoleMissing, BadDestination, DestinationTaken.
    """
    check_can_manage(by, tenant_id)
    _check(room)
    secret = new_secret() if room.signed else ""
    known = [kind.name for kind in all_kinds() if kind.name in room.kinds]
    row = Destination(
        tenant_id=tenant_id, name=room.name, style=room.style, group=room.group, kinds=known,
        created_by=by.performed_by, created_at=clock(),
    )  # fmt: skip
    row.seal_in(room.url, secret)
    _insert(row)
    _note(by, "destination.created", row, body={"name": row.name, "host": row.host, "kinds": known})
    return secret, row


@action
def register_address(*, tenant_id: UUID, name: str, address: str, by: Actor, clock: Clock) -> Destination:
    """An address to which checkpoints of the history are mailed. Raises RoleMissing, BadAddress, DestinationTaken."""
    check_can_manage(by, tenant_id)
    try:
        validate_email(address)
    except ValidationError:
        raise BadAddress from None
    if not _SLUG.fullmatch(name):
        raise BadAddress
    row = Destination(
        tenant_id=tenant_id, name=name, style=Style.MAIL, kinds=[CHECKPOINT.name], created_by=by.performed_by,
        created_at=clock(),
    )  # fmt: skip
    row.seal_in(f"mailto:{address}", "")
    _insert(row)
    _note(by, "destination.created", row, body={"name": row.name, "host": row.host, "kinds": row.kinds})
    return row


def _check(room: Room) -> None:
    if not _SLUG.fullmatch(room.name) or len(room.url) > 1000 or room.style not in Style.rooms:
        raise BadDestination
    try:
        check_literal(parse_target(room.url, AddressPolicy.trusting(settings.OUTGOING_TOLD_HOSTS)))
    except AddressRefused as error:
        raise BadDestination(str(error)) from None


def _insert(row: Destination) -> None:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if getattr(error.__cause__, "sqlstate", "") == "23505":
            raise DestinationTaken from error
        raise


@action
def deactivate_destination(*, destination: Destination, by: Actor, clock: Clock, reason: str = "") -> None:
    """Send nothing more there, give up what waits, forget address and secret. Twice changes nothing."""
    check_can_manage(by, destination.tenant_id)
    row = locked_destination(destination.tenant_id, destination.pk)
    if row.deactivated_at is None:
        end_destination(row, by=by, at=clock(), kind="destination.deactivated", reason=reason)


def end_destination(row: Destination, *, by: Actor, at: datetime, kind: str, reason: str) -> None:
    """End a locked destination, inside the caller's action. Its people get by mail what still waited for it."""
    row.deactivated_at, row.sealed_url, row.sealed_secret = at, None, None
    row.save(update_fields=["deactivated_at", "sealed_url", "sealed_secret"])
    waiting = Dispatch.objects.filter(destination=row, status=DispatchStatus.PENDING).values_list(
        "pk", flat=True
    )
    still = [one for one in ending.locked(waiting) if one.status == DispatchStatus.PENDING]
    ending.give_up(still, by=by, at=at, problem="deactivated")
    _note(by, kind, row, reason=reason)


def locked_destination(tenant_id: UUID, pk: UUID) -> Destination:
    """Locked until the end of the transaction; before what is to leave for it. Raises NotFound."""
    rows = Destination.objects.select_for_update(of=("self",), no_key=True)
    found = rows.filter(pk=pk, tenant_id=tenant_id).first()
    if found is None:
        raise NotFound
    return found


@action
def send_again(*, tenant_id: UUID, dispatch_id: UUID, by: Actor, clock: Clock) -> Dispatch:
    """What was given up is tried anew from the first try on. Raises RoleMissing, NotFound, NotDead."""
    check_can_manage(by, tenant_id)
    found = [one for one in ending.locked([dispatch_id]) if one.tenant_id == tenant_id]
    if not found:
        raise NotFound
    row = found[0]
    if row.status != DispatchStatus.DEAD or (row.destination and row.destination.deactivated_at):
        raise NotDead
    ending.begin_again(row, by=by, at=clock())
    return row


def _note(
    by: Actor, kind: str, row: Destination, *, reason: str = "", body: dict[str, object] | None = None
) -> None:
    record(
        by=by, kind=kind, tenant_id=row.tenant_id, subject_type="destination", subject_id=row.pk, reason=reason,
        body=body,
    )  # fmt: skip
