"""What a bundle of the history has of runs, their steps, and what was done: rows without contents."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from audit.bound import plain
from workflows.bound import COMMAND, of_command
from workflows.models import Attempt, Command, Run, Step

AT_ONCE: Final = 2000
_RUN: Final = (
    "status", "kind", "original_id", "workflow", "workflow_version", "requested_by", "requested_through", "outcome",
    "corrected_outcome",
)  # fmt: skip
_STEP: Final = ("run_id", "key", "status", "proposal_id", "generation")
_COMMAND: Final = (
    "proposal_id", "run_id", "step_id", "operation", "operation_version", "provider", "target", "idempotency_key",
    "status", "effect", "settled_by", "provider_reference", "tries",
)  # fmt: skip
_ATTEMPT: Final = ("command_id", "number", "status", "outcome", "sent_at", "ended_at")


def rows(tenant_id: UUID, run_id: UUID | None) -> Iterator[dict[str, Any]]:
    """Runs, steps, commands, attempts."""
    for table, model, names, way in (
        ("run", Run, _RUN, "pk"), ("step", Step, _STEP, "run_id"), ("command", Command, _COMMAND, "run_id"),
        ("attempt", Attempt, _ATTEMPT, "command__run_id"),
    ):  # fmt: skip
        also = set(COMMAND) - set(names) if model is Command else ()
        found = model._default_manager.filter(tenant_id=tenant_id, **({way: run_id} if run_id else {}))
        for row in found.order_by("pk").values("pk", *also, *names).iterator(chunk_size=AT_ONCE):
            said = {"table": table, "id": str(row["pk"]), **{name: plain(row[name]) for name in names}}
            yield said | ({"bound": of_command(row)} if model is Command else {})
