"""The columns of proposals and decisions that never change: what their events hold fast, and a bundle takes along."""

from collections.abc import Mapping
from typing import Any, Final

from audit.bound import bound_row

PROPOSAL: Final = (
    "tenant_id", "run_id", "step", "generation", "version", "workflow", "workflow_version", "operation",
    "operation_version", "mode", "target", "digest", "view_digest", "material_digest", "business_key",
    "idempotency_key", "policy", "needed", "group_id", "proposed_by", "excluded_users", "risk", "decide_by",
    "execute_within_s", "supersedes_id", "edited_by_id", "created_at",
)  # fmt: skip
DECISION: Final = (
    "tenant_id", "proposal_id", "kind", "user_id", "role", "group_id", "in_stead_of_id", "rule", "rule_version",
    "digest", "view_digest", "parts_seen", "acknowledged", "reason_code", "performed_by", "via", "posture", "at",
)  # fmt: skip


LATER: Final = ("proposed_through",)
"""Columns of later versions: bound where the row has them, so that the digests of rows of before stay."""


def of_proposal(row: Mapping[str, Any]) -> dict[str, Any]:
    later = tuple(name for name in LATER if row[name] is not None)
    return bound_row("proposal", PROPOSAL + later, row)


def of_decision(row: Mapping[str, Any]) -> dict[str, Any]:
    return bound_row("decision", DECISION, row)
