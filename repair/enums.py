"""States and causes of what stopped."""

from enum import nonmember

from django.db.models import TextChoices


class PacketStatus(TextChoices):
    OPEN = "open", "Open"
    IN_PROGRESS = "in_progress", "In progress"
    AWAITING_SECOND = "awaiting_second", "Awaiting a second person"
    RESOLVED = "resolved", "Resolved"
    ABANDONED = "abandoned", "Abandoned"

    open_states = nonmember(("open", "in_progress", "awaiting_second"))
