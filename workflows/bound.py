"""The columns of runs, commands and holds that never change: what their first events hold fast."""

from collections.abc import Mapping
from typing import Any, Final

from audit.bound import bound_row

COMMAND: Final = (
    "tenant_id", "proposal_id", "mode", "run_id", "operation", "operation_version", "provider", "target",
    "business_key", "idempotency_key", "created_at",
)  # fmt: skip
RUN: Final = (
    "tenant_id", "kind", "original_id", "workflow", "workflow_version", "stage", "requested_by", "on_behalf_of",
    "excluded_users", "source_system", "source_event_id", "source_record", "input_ref", "input_hash",
    "callback", "created_at",
)  # fmt: skip
"""Who asked, for whom, and who may not decide about what comes of it."""
LATER: Final = ("requested_through",)
"""A column of runs of later versions: bound where the row has it, so that the digests of rows of before stay."""
HOLD: Final = (
    "tenant_id", "reason", "workflow", "workflow_version", "operation", "provider", "target", "runs", "why",
    "placed_by", "placed_at",
)  # fmt: skip
"""What it holds, and since when: where it ends is its state."""


def of_command(row: Mapping[str, Any]) -> dict[str, Any]:
    return bound_row("command", COMMAND, row)


def of_hold(row: Mapping[str, Any]) -> dict[str, Any]:
    return bound_row("hold", HOLD, row)


def of_run(row: Mapping[str, Any]) -> dict[str, Any]:
    later = tuple(name for name in LATER if row[name] is not None)
    return bound_row("run", RUN + later, row)
