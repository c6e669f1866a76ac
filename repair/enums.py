"""States of what stopped, and of incidents with what people find about their runs."""

from enum import nonmember

from django.db.models import TextChoices


class PacketStatus(TextChoices):
    OPEN = "open", "Open"
    IN_PROGRESS = "in_progress", "In progress"
    AWAITING_SECOND = "awaiting_second", "Awaiting a second person"
    RESOLVED = "resolved", "Resolved"
    ABANDONED = "abandoned", "Abandoned"

    open_states = nonmember(("open", "in_progress", "awaiting_second"))


class IncidentStatus(TextChoices):
    OPEN = "open", "Open"
    CONTAINED = "contained", "Contained"
    CLOSED = "closed", "Closed"

    live_states = nonmember(("open", "contained"))


class Mark(TextChoices):
    """What a person found about one run of an incident."""

    UNLOOKED = "unlooked", "Not looked at"
    FINE = "fine", "Looked at, fine"
    REPAIRED = "repaired", "Repaired"
    HANDLED_OUTSIDE = "handled_outside", "Handled outside"


class NoteKind(TextChoices):
    """What was said or done about an incident."""

    OPENED = "opened", "Opened"
    NOTE = "note", "A note"
    DESCRIBED = "described", "What is thought of it was written down"
    FROZEN = "frozen", "Frozen"
    CONTAINED = "contained", "Contained"
    CLOSED = "closed", "Closed"
