"""States and words of telling people."""

from enum import nonmember

from django.db.models import TextChoices


class Channel(TextChoices):
    """By which way something leaves. What is told in the app needs no delivery: it is there."""

    MAIL = "mail", "E-mail"
    CHAT = "chat", "Chat"


class DispatchStatus(TextChoices):
    """One message by one channel to one person or destination."""

    PENDING = "pending", "Waiting"
    DELIVERED = "delivered", "Delivered"
    MOOT = "moot", "No longer needed"
    DEAD = "dead", "Given up"

    final_states = nonmember(("delivered", "moot"))


class Rhythm(TextChoices):
    """When mails to a person are sent."""

    EACH = "each", "One by one, at once"
    HOURLY = "hourly", "Collected, once an hour"
    DAILY = "daily", "Collected, once a day"


class Style(TextChoices):
    """What a destination is sent."""

    TEXT = "text", "A text"
    BLOCKS = "blocks", "A text, and blocks beside it"
    MAIL = "mail", "A mail to an address"
    """To somebody who needs no account here, such as an auditor outside."""

    rooms = nonmember(("text", "blocks"))
