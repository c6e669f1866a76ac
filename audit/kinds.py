"""Every kind of event that is recorded, in the one list from which people choose.

A test compares it with what the code records, so that a filter offers neither a kind that never occurs nor leaves
one out. A kind is ``<thing>.<what happened>``; for things with states, mostly the state that was reached.
"""

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "proposal": (
        "made", "vote", "signed", "decision_refused", "approved", "rejected", "changes_requested", "expired",
        "withdrawn", "superseded", "invalidated", "consumed", "lapsed", "carried_over", "question_asked",
        "question_answered", "edited", "votes_dropped", "rejection_remembered", "rejection_lifted", "unmanned",
        "manned", "escalated", "held", "released", "taken_over",
    ),
    "sample": ("drawn", "said", "limit_passed"),
    "command": (
        "ready", "claimed", "sent", "looked_up", "retry_wait", "held", "unknown", "confirmed", "refused", "dead",
        "cancelled", "void", "attested", "attestation_refused", "look_up_asked",
    ),
    "legal_hold": ("placed", "lifted"),
    "hold": ("in_force", "drained", "trial", "lifting", "lifted"),
    "attempt": ("late_evidence",),
    "run": (
        "queued", "running", "waiting_for_data", "waiting_for_approval", "waiting_for_provider", "waiting_for_retry",
        "waiting_for_children", "executing", "degraded", "unknown", "manual_repair", "completed", "failed",
        "cancelled", "cancel_requested", "data_supplied", "duplicate_prevented", "outcome_corrected",
        "content_erased", "content_held", "content_released", "replayed", "undo_proposed", "rest_proposed",
        "record_looked",
    ),
    "step": (
        "pending", "running", "waiting", "completed", "failed", "skipped", "cancelled", "late_result_dropped",
        "asked_again", "corrected", "previously_rejected", "not_repeated",
    ),
    "packet": ("opened", "raised_again", "awaiting_second", "chosen", "choice_refused", "resolved", "exported"),
    "incident": (
        "opened", "joined", "noted", "described", "frozen", "contained", "marked", "closed", "exported",
        "content_erased",
    ),
    "document": ("opened",),
    "endpoint": ("created", "secret_rotated", "deactivated", "delivery_refused", "bodies_erased"),
    "callback_endpoint": ("created", "secret_rotated", "deactivated", "gone"),
    "callback": ("delivered", "superseded", "given_up", "sent_again"),
    "delivery": ("received", "accepted", "duplicate", "quarantined"),
    "dispatch": ("delivered", "moot", "given_up", "sent_again"),
    "notice": ("link_refused",),
    "destination": ("created", "deactivated", "gone"),
    "history": ("exported",),
    "preference": ("changed",),
    "tenant": ("created", "content_keys_rewrapped", "contents_sealed", "contents_searched"),
    "user": (
        "created", "signed_in", "signed_out", "sign_in_failed", "second_factor_failed", "reauthenticated",
        "password_changed", "password_reset_requested", "password_reset", "mfa_added", "mfa_removed",
        "recovery_codes_made", "session_revoked", "provider_linked", "provider_unlinked", "deactivated", "reactivated",
    ),
    "membership": ("roles_set", "deactivated", "reactivated", "linked", "unlinked"),
    "duty": ("given", "ended"),
    "absence": ("noted", "ended"),
    "working_hours": ("set", "cleared"),
    "break_glass": ("on", "off", "expired"),
    "group": ("created", "joined", "left"),
    "agent": ("created", "changed", "denied", "deactivated", "reactivated"),
    "token": ("issued", "rotated", "ends_soon", "revoked"),
    "chain": ("verified", "broken", "exported", "refused", "accepted"),
}  # fmt: skip


def all_kinds() -> list[str]:
    return [f"{thing}.{what}" for thing, happened in KINDS.items() for what in happened]
