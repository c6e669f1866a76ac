"""Every kind of event that is recorded, in the one list from which people choose.

A test compares it with what the code records, so that a filter offers neither a kind that never occurs nor leaves
one out. A kind is ``<thing>.<what happened>``; for things with states, mostly the state that was reached.
"""

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "proposal": (
        "made", "vote", "decision_refused", "approved", "rejected", "changes_requested", "expired", "withdrawn",
        "superseded", "invalidated", "consumed", "lapsed",
    ),
    "command": (
        "ready", "claimed", "sent", "looked_up", "retry_wait", "held", "unknown", "confirmed", "refused", "dead",
        "cancelled", "void",
    ),
    "attempt": ("late_evidence",),
    "run": (
        "queued", "running", "waiting_for_data", "waiting_for_approval", "waiting_for_provider", "waiting_for_retry",
        "waiting_for_children", "executing", "degraded", "unknown", "manual_repair", "completed", "failed",
        "cancelled", "cancel_requested", "data_supplied", "duplicate_prevented", "outcome_corrected",
    ),
    "step": ("pending", "running", "waiting", "completed", "failed", "skipped", "cancelled", "late_result_dropped"),
    "packet": ("opened", "raised_again", "resolved"),
    "document": ("opened",),
    "tenant": ("created",),
    "user": ("created", "signed_in", "signed_out", "sign_in_failed", "deactivated"),
    "membership": ("roles_set", "deactivated"),
    "group": ("created", "joined", "left"),
    "agent": ("created", "deactivated"),
    "token": ("issued", "revoked"),
    "chain": ("verified", "broken"),
}  # fmt: skip


def all_kinds() -> list[str]:
    return [f"{thing}.{what}" for thing, happened in KINDS.items() for what in happened]
