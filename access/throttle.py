"""A brake on guessing passwords: counted in the history itself, per name and address of the client.

Ten failures within a quarter of an hour, then every further try is refused, right or wrong. The name is kept as an
HMAC only. Several tries in one instant can pass together; a real lockout with a notice to the person comes later.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db.models.functions import Now

from audit.actors import INSTALLATION
from audit.models import Event
from common.digests import tenant_hmac

FAILED: Final = "user.sign_in_failed"
TRIES: Final = 10
WINDOW: Final = timedelta(minutes=15)


def subject_of(username: str, address: str) -> UUID:
    """The pseudonym under which failed tries are counted: 128 bits of an HMAC over name and address."""
    value = tenant_hmac(INSTALLATION, "sign-in", f"{username.casefold()}\n{address}".encode())
    return UUID(hex=value.removeprefix("hmac:")[:32])


def is_throttled(subject: UUID) -> bool:
    """Whether the tries of the last quarter of an hour are used up, on the database's clock."""
    recent = Event.objects.filter(
        tenant_id=INSTALLATION, subject_id=subject, kind=FAILED, at__gt=Now() - WINDOW
    )
    return recent.count() >= TRIES
