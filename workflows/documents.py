"""Protected storage of inputs and results: written once, reached by reference."""

from datetime import datetime
from typing import Any
from uuid import UUID

from common.digests import tenant_hmac
from common.prepared import insert
from common.strictjson import canonicalize, parse
from workflows.models import Document


def store(tenant_id: UUID, run_id: UUID, kind: str, content: bytes, at: datetime) -> Document:
    document = unsaved(tenant_id, run_id, kind, content, at)
    insert(document)
    return document


def unsaved(tenant_id: UUID, run_id: UUID, kind: str, content: bytes, at: datetime) -> Document:
    """The row to be, for who stores several with one statement."""
    return Document(
        tenant_id=tenant_id, run_id=run_id, kind=kind, content=content, created_at=at,
        digest=tenant_hmac(tenant_id, f"document.{kind}", content),
    )  # fmt: skip


def store_json(tenant_id: UUID, run_id: UUID, kind: str, value: Any, at: datetime) -> Document:
    return store(tenant_id, run_id, kind, canonicalize(value), at)


def load_json(document: Document) -> Any:
    return parse(bytes(document.content))
