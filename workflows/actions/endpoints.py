"""Make an endpoint for webhooks, change its secret, end it. The secret is shown once and stored sealed."""

import re
import secrets
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import IntegrityError, transaction

from access.actions import NameTaken
from access.models import Agent
from access.policies import check_agent_usable, check_can_manage
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.errors import NotFound
from common.signed_webhooks import SIGNATURE_HEADER, TIME_HEADER, key_of, new_secret
from common.tx import action
from workflows import registry
from workflows.actions.runs import ProposalsOnly
from workflows.models import Endpoint, EndpointSecret
from workflows.webhooks import BadEndpoint, EndpointEnded, Names, Scheme

LONGEST_OVERLAP: Final = timedelta(days=30)
_HEADER: Final = re.compile(r"[a-z0-9-]{1,60}", re.ASCII)
_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}", re.ASCII)


@action
def create_endpoint(
    *, agent: Agent, name: str, workflow: str, system: str, by: Actor, clock: Clock, names: Names | None = None,
    input_member: str = "", secret: str = "",
) -> tuple[str, Endpoint]:  # fmt: skip
    """A new endpoint: its secret, to be shown once, and the row. ``secret``: one that the sender has chosen.

    Raises RoleMissing, NotAMember, UnknownWorkflow, ProposalsOnly, BadEndpoint or NameTaken.
    """
    check_can_manage(by, agent.tenant_id)
    check_agent_usable(agent)
    if not registry.workflow(workflow).stages:
        raise ProposalsOnly()
    names = names or Names()
    secret = secret or new_secret()
    _check(name, system, names, secret)
    now = clock()
    endpoint = _insert(Endpoint(
        tenant_id=agent.tenant_id, name=name, address=secrets.token_urlsafe(32), agent=agent, workflow=workflow,
        source_system=system, scheme=names.scheme, signature_header=names.signature,
        timestamp_header=names.timestamp, input_member=input_member, created_by=by.performed_by, created_at=now,
    ))  # fmt: skip
    _add_secret(endpoint, secret, by, now)
    _note(by, "endpoint.created", endpoint, workflow=workflow, system=system, agent=str(agent.pk))
    return secret, endpoint


@action
def rotate_secret(
    *, endpoint: Endpoint, overlap: timedelta, by: Actor, clock: Clock, secret: str = ""
) -> str:
    """A new secret, shown once; the one before counts until ``overlap`` is over. Raises EndpointEnded, BadEndpoint."""
    check_can_manage(by, endpoint.tenant_id)
    locked = _locked(endpoint)
    if locked.deactivated_at is not None:
        raise EndpointEnded
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        raise BadEndpoint("The old secret may count for at most 30 days more.")
    secret = secret or new_secret()
    _check(locked.name, locked.source_system, locked.header_names, secret)
    now = clock()
    ends = now + overlap
    for old in EndpointSecret.objects.filter(endpoint=locked, sealed__isnull=False):
        old.ends_at = min(old.ends_at or ends, ends)
        if old.ends_at <= now:
            old.sealed = None
        old.save(update_fields=["ends_at", "sealed"])
    _add_secret(locked, secret, by, now)
    _note(by, "endpoint.secret_rotated", locked, old_ends_at=ends.isoformat())
    return secret


@action
def deactivate_endpoint(*, endpoint: Endpoint, by: Actor, clock: Clock, reason: str = "") -> None:
    """Take nothing more there, and forget its secrets; a second time changes nothing. It never comes back."""
    check_can_manage(by, endpoint.tenant_id)
    locked = _locked(endpoint)
    if locked.deactivated_at is not None:
        return
    locked.deactivated_at = now = clock()
    locked.save(update_fields=["deactivated_at"])
    EndpointSecret.objects.filter(endpoint=locked).update(ends_at=now, sealed=None)
    _note(by, "endpoint.deactivated", locked, reason=reason)


def endpoint_named(tenant_id: UUID, name: str) -> Endpoint:
    """Raises NotFound."""
    found = Endpoint.objects.filter(tenant_id=tenant_id, name=name).first()
    if found is None:
        raise NotFound()
    return found


def _check(name: str, system: str, names: Names, secret: str) -> None:
    if not _SLUG.fullmatch(name) or not 1 <= len(system) <= 60:
        raise BadEndpoint()
    if names.scheme == Scheme.STANDARD and (names.signature, names.timestamp) != (
        SIGNATURE_HEADER,
        TIME_HEADER,
    ):
        raise BadEndpoint("Standard Webhooks have their own header names.")
    if not _HEADER.fullmatch(names.signature) or not _HEADER.fullmatch(names.timestamp):
        raise BadEndpoint()
    try:
        key_of(secret)
    except ValueError as error:
        raise BadEndpoint(str(error)) from None


def _insert(endpoint: Endpoint) -> Endpoint:
    try:
        with transaction.atomic():
            endpoint.save(force_insert=True)
    except IntegrityError as error:
        if getattr(error.__cause__, "sqlstate", "") == "23505":
            raise NameTaken from error
        raise
    return endpoint


def _locked(endpoint: Endpoint) -> Endpoint:
    rows = Endpoint.objects.select_for_update(of=("self",), no_key=True)
    found = rows.filter(pk=endpoint.pk, tenant_id=endpoint.tenant_id).first()
    if found is None:
        raise NotFound()
    return found


def _add_secret(endpoint: Endpoint, secret: str, by: Actor, now: datetime) -> None:
    row = EndpointSecret(tenant_id=endpoint.tenant_id, endpoint=endpoint, made_by=by.user_id, created_at=now)
    row.seal(secret)
    row.save(force_insert=True)


def _note(by: Actor, kind: str, endpoint: Endpoint, *, reason: str = "", **body: str) -> None:
    record(
        by=by, kind=kind, tenant_id=endpoint.tenant_id, subject_type="endpoint", subject_id=endpoint.pk,
        reason=reason, body=body or None,
    )  # fmt: skip
