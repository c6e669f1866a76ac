"""The one table from a state to how people see it: tone, icon and word.

Badges are made through this table only, so that a state looks the same on every desk. A tone is never
alone: each state has an icon and a word of its own. Unknown is violet and is never counted as failed;
held is hatched and is not a fault. Keys are the stored values of the enums of each app, by thing;
a test compares them with those enums, so a new state cannot be forgotten here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Tone = Literal["ok", "wait", "bad", "unknown", "held", "act", "mute"]


@dataclass(frozen=True, slots=True)
class StateUi:
    """How one state is shown: a tone of the palette, the name of an icon, and a word for people."""

    tone: Tone
    icon: str
    word: str


RUN: Mapping[str, StateUi] = {
    "queued": StateUi("mute", "pending", "Queued"),
    "running": StateUi("act", "running", "Running"),
    "waiting_for_data": StateUi("wait", "hourglass", "Waiting for data"),
    "waiting_for_approval": StateUi("wait", "hourglass", "Waiting for approval"),
    "waiting_for_provider": StateUi("wait", "hourglass", "Waiting for provider"),
    "waiting_for_retry": StateUi("wait", "retry", "Waiting for retry"),
    "waiting_for_children": StateUi("wait", "layers", "Waiting for children"),
    "executing": StateUi("act", "send", "Executing"),
    "degraded": StateUi("held", "snow", "Degraded"),
    "unknown": StateUi("unknown", "unknown", "Unknown"),
    "manual_repair": StateUi("bad", "wrench", "Manual repair"),
    "completed": StateUi("ok", "check-circle", "Completed"),
    "failed": StateUi("bad", "x-circle", "Failed"),
    "cancelled": StateUi("mute", "ban", "Cancelled"),
}

STEP: Mapping[str, StateUi] = {
    "pending": StateUi("mute", "pending", "Pending"),
    "running": StateUi("act", "running", "Running"),
    "waiting": StateUi("wait", "hourglass", "Waiting"),
    "completed": StateUi("ok", "check-circle", "Completed"),
    "failed": StateUi("bad", "x-circle", "Failed"),
    "skipped": StateUi("mute", "skip", "Skipped"),
    "cancelled": StateUi("mute", "ban", "Cancelled"),
}

PROPOSAL: Mapping[str, StateUi] = {
    "pending": StateUi("wait", "hourglass", "Waiting for approval"),
    "approved": StateUi("ok", "check", "Approved"),
    "rejected": StateUi("bad", "x-circle", "Rejected"),
    "changes_requested": StateUi("wait", "pencil", "Changes requested"),
    "expired": StateUi("mute", "clock", "Expired"),
    "withdrawn": StateUi("mute", "undo", "Withdrawn"),
    "superseded": StateUi("mute", "layers", "Superseded"),
    "invalidated": StateUi("bad", "shield-x", "Invalidated"),
    # Its command has ended, well or not: what happened is told by the command, never by this word.
    "consumed": StateUi("mute", "check", "Approval used"),
    "lapsed": StateUi("mute", "hourglass", "Lapsed"),
}

COMMAND: Mapping[str, StateUi] = {
    "ready": StateUi("act", "play", "Ready"),
    "claimed": StateUi("act", "pin", "Claimed"),
    "sent": StateUi("act", "send", "Sent"),
    "retry_wait": StateUi("wait", "retry", "Waits to retry"),
    "held": StateUi("held", "pause", "Held"),
    "unknown": StateUi("unknown", "unknown", "Unknown"),
    "confirmed": StateUi("ok", "check-circle", "Confirmed"),
    "refused": StateUi("bad", "octagon", "Refused"),
    "dead": StateUi("bad", "x-circle", "Dead"),
    "cancelled": StateUi("mute", "ban", "Cancelled"),
    "void": StateUi("mute", "shield-x", "Void"),
}

ATTEMPT: Mapping[str, StateUi] = {
    "claimed": StateUi("act", "pin", "Claimed"),
    "sent": StateUi("act", "send", "Sent"),
    "answered": StateUi("ok", "check-circle", "Answered"),
    "no_answer": StateUi("unknown", "unknown", "No answer"),
    "released": StateUi("mute", "undo", "Released"),
}

HOLD: Mapping[str, StateUi] = {
    "in_force": StateUi("held", "snow", "In force"),
    "trial": StateUi("held", "send", "One call is tried"),
    "lifting": StateUi("wait", "running", "Being lifted"),
    "lifted": StateUi("mute", "undo", "Lifted"),
}

PACKET: Mapping[str, StateUi] = {
    "open": StateUi("wait", "inbox", "Open"),
    "in_progress": StateUi("act", "running", "In progress"),
    "awaiting_second": StateUi("wait", "users", "Awaiting a second person"),
    "resolved": StateUi("ok", "check-circle", "Resolved"),
    "abandoned": StateUi("mute", "ban", "Abandoned"),
}

INCIDENT: Mapping[str, StateUi] = {
    "open": StateUi("bad", "flag", "Open"),
    "contained": StateUi("held", "lock", "Contained"),
    "closed": StateUi("mute", "check-circle", "Closed"),
}

EVIDENCE: Mapping[str, StateUi] = {
    "fresh": StateUi("ok", "check-circle", "Fresh"),
    "late": StateUi("wait", "clock", "Late"),
    "past": StateUi("bad", "hourglass", "Past its limit"),
    "undated": StateUi("mute", "clock", "No limit set"),
    "contradicted": StateUi("bad", "flag", "Contradicted"),
}

MODE: Mapping[str, StateUi] = {
    "live": StateUi("act", "send", "Live"),
    "shadow": StateUi("mute", "eye", "Shadow"),
    "draft": StateUi("mute", "pencil", "Draft"),
    "canary": StateUi("wait", "eye", "Canary"),
}

EFFECT: Mapping[str, StateUi] = {
    "none": StateUi("mute", "ban", "Nothing happened"),
    "happened": StateUi("ok", "check-circle", "Happened"),
    "partial": StateUi("wait", "warn", "Happened in part"),
    "unknown": StateUi("unknown", "unknown", "Effect unknown"),
}

CALLBACK: Mapping[str, StateUi] = {
    "pending": StateUi("wait", "hourglass", "Waiting"),
    "delivered": StateUi("ok", "check-circle", "Delivered"),
    "superseded": StateUi("mute", "layers", "A newer state is told"),
    "dead": StateUi("bad", "x-circle", "Given up"),
}

DISPATCH: Mapping[str, StateUi] = {
    "pending": StateUi("wait", "hourglass", "Waiting"),
    "delivered": StateUi("ok", "check-circle", "Delivered"),
    "moot": StateUi("mute", "ban", "No longer needed"),
    "dead": StateUi("bad", "x-circle", "Given up"),
}

STATES: Mapping[str, Mapping[str, StateUi]] = {
    "run": RUN,
    "step": STEP,
    "proposal": PROPOSAL,
    "command": COMMAND,
    "attempt": ATTEMPT,
    "hold": HOLD,
    "packet": PACKET,
    "incident": INCIDENT,
    "dispatch": DISPATCH,
    "callback": CALLBACK,
    "evidence": EVIDENCE,
    "mode": MODE,
    "effect": EFFECT,
}


def state_ui(thing: str, state: str) -> StateUi:
    """Return how ``state`` of ``thing`` is shown; KeyError for a state that this table does not know."""
    return STATES[thing][str(state)]
