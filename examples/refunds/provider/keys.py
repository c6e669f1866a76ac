"""API keys: which tenant a caller is. 401 for unknown and expired ones, 403 for revoked ones."""

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from examples.refunds.provider.exchange import Refusal, Request

DEMO_KEYS: dict[str, Any] = {
    "demo-provider-key": "demo",
    "other-provider-key": "other",
    "expired-provider-key": {"tenant": "demo", "expires_at": "2026-01-01T00:00:00+00:00"},
    "revoked-provider-key": {"tenant": "demo", "revoked": True},
}
"""What the provider accepts without ``--keys``; they open nothing but this example's own data."""


class Keys:
    """``{key: tenant}`` or ``{key: {"tenant", "expires_at", "revoked"}}``."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.lock = threading.Lock()
        self.known = {key: _entry(value) for key, value in known.items()}

    @classmethod
    def read(cls, path: Path | None) -> "Keys":
        return cls(json.loads(path.read_text()) if path else DEMO_KEYS)

    def tenant_of(self, request: Request) -> str:
        """The caller's tenant; raises :class:`Refusal` 401 or 403."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        entry = self.known.get(key.strip()) if scheme.lower() == "bearer" else None
        if entry is None:
            raise Refusal(401, "invalid_key", "The API key is missing or not known.")
        if entry.get("revoked"):
            raise Refusal(403, "key_revoked", "The API key was revoked.")
        expires_at = entry.get("expires_at")
        if expires_at and datetime.fromisoformat(expires_at) <= datetime.now(UTC):
            raise Refusal(401, "key_expired", "The API key has expired.")
        return str(entry["tenant"])

    def change(self, changes: Any) -> None:
        """Add keys or change what is said about them, until the next restart."""
        if not isinstance(changes, dict):
            raise Refusal(422, "invalid_keys", "Expected an object of keys.")
        with self.lock:
            for key, value in changes.items():
                self.known[key] = self.known.get(key, {}) | _entry(value)


def _entry(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"tenant": value}
