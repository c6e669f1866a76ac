"""The columns of a command that never change: what its first event holds fast, and a bundle takes along."""

from collections.abc import Mapping
from typing import Any, Final

from audit.bound import bound_row

COMMAND: Final = (
    "tenant_id", "proposal_id", "mode", "run_id", "operation", "operation_version", "provider", "target",
    "business_key", "idempotency_key", "created_at",
)  # fmt: skip


def of_command(row: Mapping[str, Any]) -> dict[str, Any]:
    return bound_row("command", COMMAND, row)
