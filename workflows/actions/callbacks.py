"""Register where runs may call back, change its secret, end it. The secret is shown once and stored sealed."""

import re
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from access.policies import check_can_manage
from audit.actions import record
from audit.actors import Actor
from common.addresses import AddressPolicy, AddressRefused, check_literal, parse_target
from common.clock import Clock
from common.errors import InvalidInput, NotFound, Refused
from common.signed_webhooks import key_of, new_secret
from common.tx import action
from workflows.actions.outbox import give_up
from workflows.enums import CallStatus
from workflows.models import CallbackCall, CallbackEndpoint, CallbackSecret
from workflows.models.callbacks import MOST_SECRETS

LONGEST_OVERLAP: Final = timedelta(days=30)
_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}", re.ASCII)


class CallbackEnded(Refused):
    """This callback was deactivated; nothing is sent there any more."""

    code = "callback_ended"


class CallbackTaken(Refused):
    """This name, or this address, is registered already."""

    code = "callback_taken"


class BadCallback(InvalidInput):
    """A callback needs a name of small letters, digits and hyphens, and an https address of a public host."""

    code = "bad_callback"


@action
def register_callback(
    *, tenant_id: UUID, name: str, url: str, by: Actor, clock: Clock, secret: str = ""
) -> tuple[str, CallbackEndpoint]:
    """A new destination: its secret, to be shown once, and the row. ``secret``: one that the receiver has chosen.

    The host is not looked up here: each call does that, and refuses what is not public then.
    Raises RoleMissing, BadCallback, CallbackTaken.
    """
    check_can_manage(by, tenant_id)
    secret = secret or new_secret()
    _check(name, url, secret)
    now = clock()
    endpoint = CallbackEndpoint(
        tenant_id=tenant_id, name=name, url=url, created_by=by.performed_by, created_at=now
    )
    _insert(endpoint)
    _add_secret(endpoint, secret, now)
    _note(by, "callback_endpoint.created", endpoint, name=name)
    return secret, endpoint


@action
def rotate_callback_secret(
    *, endpoint: CallbackEndpoint, overlap: timedelta, by: Actor, clock: Clock, secret: str = ""
) -> str:
    """A new secret, shown once; until ``overlap`` is over, calls are signed with the one before, too.

    Raises RoleMissing, CallbackEnded, BadCallback.
    """
    check_can_manage(by, endpoint.tenant_id)
    locked = locked_callback(endpoint.tenant_id, endpoint.pk)
    if locked.deactivated_at is not None:
        raise CallbackEnded
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        raise BadCallback("The old secret may count for at most 30 days more.")
    secret = secret or new_secret()
    _check(locked.name, locked.url, secret)
    now = clock()
    _end_others(locked, now, now + overlap)
    _add_secret(locked, secret, now)
    _note(by, "callback_endpoint.secret_rotated", locked, old_ends_at=(now + overlap).isoformat())
    return secret


@action
def deactivate_callback(*, endpoint: CallbackEndpoint, by: Actor, clock: Clock, reason: str = "") -> None:
    """Send nothing more there, give up what waits, forget its secrets. It never comes back; twice changes nothing."""
    check_can_manage(by, endpoint.tenant_id)
    locked = locked_callback(endpoint.tenant_id, endpoint.pk)
    if locked.deactivated_at is None:
        end_callback(locked, by=by, at=clock(), kind="callback_endpoint.deactivated", reason=reason)


def end_callback(
    locked: CallbackEndpoint, *, by: Actor, at: datetime, kind: str, reason: str = "", gone: bool = False
) -> None:
    """End a locked destination with everything that waits for it, inside the caller's action."""
    locked.deactivated_at, locked.gone = at, gone
    locked.save(update_fields=["deactivated_at", "gone"])
    CallbackSecret.objects.filter(endpoint=locked).update(ends_at=at, sealed=None)
    give_up_on(locked, by=by, at=at)
    _note(by, kind, locked, reason=reason)


def give_up_on(locked: CallbackEndpoint, *, by: Actor, at: datetime) -> None:
    """What still waits for a destination that has ended."""
    rows = CallbackCall.objects.select_for_update(of=("self",), no_key=True)
    for call in rows.filter(endpoint=locked, status=CallStatus.PENDING).order_by("id"):
        give_up(call, by=by, at=at, problem="deactivated")


def callback_named(tenant_id: UUID, name: str) -> CallbackEndpoint:
    """Raises NotFound."""
    found = CallbackEndpoint.objects.filter(tenant_id=tenant_id, name=name).first()
    if found is None:
        raise NotFound()
    return found


def locked_callback(tenant_id: UUID, pk: UUID) -> CallbackEndpoint:
    """Locked until the end of the transaction; before the calls that belong to it. Raises NotFound."""
    rows = CallbackEndpoint.objects.select_for_update(of=("self",), no_key=True)
    found = rows.filter(pk=pk, tenant_id=tenant_id).first()
    if found is None:
        raise NotFound()
    return found


def _check(name: str, url: str, secret: str) -> None:
    if not _SLUG.fullmatch(name) or len(url) > 500:
        raise BadCallback()
    try:
        check_literal(parse_target(url, AddressPolicy.trusting(settings.OUTGOING_TOLD_HOSTS)))
    except AddressRefused as error:
        raise BadCallback(str(error)) from None
    try:
        key_of(secret)
    except ValueError as error:
        raise BadCallback(str(error)) from None


def _insert(endpoint: CallbackEndpoint) -> None:
    try:
        with transaction.atomic():
            endpoint.save(force_insert=True)
    except IntegrityError as error:
        if getattr(error.__cause__, "sqlstate", "") == "23505":
            raise CallbackTaken from error
        raise


def _end_others(endpoint: CallbackEndpoint, now: datetime, ends: datetime) -> None:
    """The secrets before count until ``ends`` at the latest, and only the newest few of them."""
    counting = CallbackSecret.objects.filter(endpoint=endpoint, sealed__isnull=False)
    for number, old in enumerate(counting.order_by("-created_at", "-id"), start=2):
        old.ends_at = min(old.ends_at or ends, ends) if number <= MOST_SECRETS else now
        if old.ends_at <= now:
            old.sealed = None
        old.save(update_fields=["ends_at", "sealed"])


def _add_secret(endpoint: CallbackEndpoint, secret: str, now: datetime) -> None:
    row = CallbackSecret(tenant_id=endpoint.tenant_id, endpoint=endpoint, created_at=now)
    row.seal(secret)
    row.save(force_insert=True)


def _note(by: Actor, kind: str, endpoint: CallbackEndpoint, *, reason: str = "", **body: str) -> None:
    record(
        by=by, kind=kind, tenant_id=endpoint.tenant_id, subject_type="callback_endpoint", subject_id=endpoint.pk,
        reason=reason, body=body or None,
    )  # fmt: skip
