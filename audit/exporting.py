"""Taking the history along: made first, then written down with its digest, and only then given out."""

import hashlib
import tempfile
from dataclasses import dataclass
from typing import IO, Any, Final
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase

from audit import bundle
from audit.actions import record
from audit.actors import Actor
from audit.bundle import Scope
from audit.models import Event
from audit.verify import NEVER_WRITTEN
from common.errors import NotFound, Refused
from common.models import Tenant
from common.rates import Rate, check_rate

log = structlog.get_logger("placet.audit")
EXPORTED: Final = "chain.exported"
OF_A_TENANT: Final = Rate(per_minute=0.5, burst=3)
"""Each reads all that there is."""
OF_A_RUN: Final = Rate(per_minute=10, burst=20)
IN_MEMORY: Final = 4_000_000
"""Bytes; what is larger goes into a file without a name."""
MEDIA_TYPE: Final = "application/zip"


class HistoryUnreadable(Refused):
    """Something in this history has a form that the product never writes: no bundle can be made of it.

    Somebody changed it past the product. `manage.py verify_audit` says more.
    """

    code = "history_unreadable"
    http_status = 409


@dataclass(frozen=True, slots=True)
class Export:
    """A finished bundle in memory, or in a file without a name that is gone when it is closed."""

    file: IO[bytes]
    name: str
    bytes: int
    digest: str


def export(tenant: Tenant, scope: Scope, *, by: Actor) -> Export:
    """Make the bundle and record who takes it along.

    Raises NotFound for a run without events, RateLimited, and HistoryUnreadable.

    It is made in a file: nobody's slow line holds the snapshot open, and what cannot be read is an error instead of
    half a bundle.
    """
    _check(scope)
    file: Any = tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="placet-bundle-")  # noqa: SIM115 - closed when sent
    try:
        counts = _written(file, scope, name=tenant.name, made_by=by.performed_by)
        size, digest = file.tell(), _digest(file)
        _record(scope, by=by, digest=digest, size=size, counts=counts)
    except BaseException:
        file.close()
        raise
    return Export(file, _name(tenant, scope), size, digest)


def _written(file: IO[bytes], scope: Scope, *, name: str, made_by: str) -> dict[str, int]:
    try:
        return bundle.write(file, scope, name=name, made_by=made_by)
    except (OperationalError, InterfaceError):
        raise
    except NEVER_WRITTEN as error:
        log.exception("history_not_exported", tenant=str(scope.tenant_id))
        raise HistoryUnreadable from error


def file_response(made: Export) -> HttpResponseBase:
    """The file as it is read, closed behind its last byte; a small one at once."""
    if made.bytes > IN_MEMORY:
        return FileResponse(made.file, as_attachment=True, filename=made.name, content_type=MEDIA_TYPE)
    with made.file:
        content = made.file.read()
    headers = {"Content-Disposition": f'attachment; filename="{made.name}"'}
    return HttpResponse(content, content_type=MEDIA_TYPE, headers=headers)


def _check(scope: Scope) -> None:
    whole = scope.run_id is None
    check_rate(f"bundle:{'tenant' if whole else 'run'}:{scope.tenant_id}", OF_A_TENANT if whole else OF_A_RUN)
    if scope.run_id is not None and not _has_events(scope.tenant_id, scope.run_id):
        raise NotFound


def _has_events(tenant_id: UUID, run_id: UUID) -> bool:
    return Event.objects.filter(tenant_id=tenant_id, run_id=run_id).exists()


def _digest(file: IO[bytes]) -> str:
    file.seek(0)
    found = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    file.seek(0)
    return found


@transaction.atomic(durable=True)
def _record(scope: Scope, *, by: Actor, digest: str, size: int, counts: dict[str, int]) -> None:
    """That it was taken along, with the digest of the file: it can be told from another later."""
    record(
        by=by, kind=EXPORTED, tenant_id=scope.tenant_id, subject_type="chain", subject_id=scope.tenant_id,
        run_id=scope.run_id, digest=digest, body={
            "scope": scope.words, "bytes": size, "events": counts["events"], "contracts": scope.contracts,
            "views": scope.views,
        },
    )  # fmt: skip


def _name(tenant: Tenant, scope: Scope) -> str:
    part = {"run": f"-run-{scope.run_id}", "range": "-part"}.get(scope.words["kind"], "")
    return f"history-{tenant.slug}{part}.zip"
