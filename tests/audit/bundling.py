"""Bundles of a real history: exported, and checked by the verifier with what was kept outside."""

import io
import json
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connections

import verify_history
from audit import checkpoints, exporting
from audit.actors import Actor, Owner, Via
from audit.bundle import Scope
from audit.models import Seal
from audit.sealer import seal
from audit.tree import root
from common.clock import db_clock
from common.ids import new_id
from common.models import Tenant
from common.rates import buckets

KEY = Ed25519PrivateKey.from_private_bytes(b"placet tests: the signer's key..")
AUDITOR = Actor(performed_by="command_line:test", via=Via.COMMAND_LINE, owner=Owner.PERSON)
LATER = timedelta(seconds=5)


def sign(tenant_id: UUID, at: datetime | None = None) -> str:
    """What the signer would sign now of everything that can be sealed; a while ago, by its clock."""
    seal(db_clock)
    hashes = list(Seal.objects.filter(tenant_id=tenant_id).order_by("seq").values_list("hash", flat=True))
    at = at or datetime.now(UTC) - LATER
    those = checkpoints.Checkpoint(tenant_id, len(hashes), root(map(bytes.fromhex, hashes)), at, hashes[-1])
    note = checkpoints.sign(those, KEY)
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_checkpoint (id, tenant_id, size, root, note, key_hash, signed_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [new_id(), tenant_id, len(hashes), those.root.hex(), note, "0" * 8, at],
        )
    return note


def taken(tenant: Tenant, **scope: Any) -> bytes:
    """The bundle."""
    buckets.__init__()  # type: ignore[misc] - each test may ask as often as it likes
    with exporting.export(tenant, Scope(tenant.pk, **scope), by=AUDITOR).file as file:
        return file.read()


def bytes_of(bundle: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return archive.read(name)


def lines(bundle: bytes, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in bytes_of(bundle, name).splitlines()]


@dataclass
class Auditor:
    """Somebody with a folder of their own, outside of the server."""

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "kept").mkdir(exist_ok=True)
        (self.folder / "key.pub").write_text(checkpoints.public_key(KEY).vkey + "\n")

    def keep(self, note: str) -> None:
        (self.folder / "kept" / f"{len(list((self.folder / 'kept').iterdir()))}.checkpoint").write_text(note)

    def verify(self, bundle: bytes, *receipts: Path, **options: Any) -> verify_history.Report:
        (self.folder / "bundle.zip").write_bytes(bundle)
        return verify_history.verify(
            self.folder / "bundle.zip", self.folder / "kept", [self.folder / "key.pub"], receipts, **options
        )


def found(report: verify_history.Report) -> tuple[int, str]:
    """Exit status, and the word for what does not hold."""
    return report.code, report.broken.what if report.broken else ""
