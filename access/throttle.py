"""A brake on guessing, counted in the history itself: whatever becomes of Redis or of a process, it holds.

Failures of the last quarter of an hour count per name and address, per name, and per address, under pseudonyms: names
and addresses are kept as HMACs only. When one of the numbers is used up, every further try is refused before anything
is compared, right or wrong. Names that nobody has are counted in the same way, so a refusal tells nothing about them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Count
from django.db.models.functions import Now

from access.clients import counted_address
from audit.actors import INSTALLATION
from audit.models import Event
from common.digests import tenant_hmac
from common.errors import Refused
from common.tx import require_transaction

FAILED: Final = "user.sign_in_failed"
FACTOR_FAILED: Final = "user.second_factor_failed"
RESET_REQUESTED: Final = "user.password_reset_requested"
WINDOW: Final = timedelta(minutes=15)
TRIES: Final = 10
"""For one name from one address."""
TRIES_OF_NAME: Final = 50
TRIES_OF_ADDRESS: Final = 100
FACTOR_TRIES: Final = 5
"""Wrong codes of one person: six digits must not be found by trying."""
RESETS: Final = 3
"""Mails to one address."""
RESETS_OF_ADDRESS: Final = 20


class Throttled(Refused):
    """There were too many tries. Wait a quarter of an hour."""

    code = "throttled"
    http_status = 429

    def __init__(self) -> None:
        super().__init__(retry_after=int(WINDOW.total_seconds()))


@dataclass(frozen=True, slots=True)
class Limit:
    """So many events of a kind about a subject within the window."""

    subject_type: str
    subject: UUID
    most: int


def pseudonym(purpose: str, text: str) -> UUID:
    """128 bits of an HMAC."""
    value = tenant_hmac(INSTALLATION, purpose, text.encode(errors="surrogatepass"))
    return UUID(hex=value.removeprefix("hmac:")[:32])


def subject_of(username: str, address: str) -> UUID:
    """The pseudonym under which failed tries with a name from an address are counted."""
    return pseudonym("sign-in", f"{username.casefold()}\n{address}")


def sign_in_limits(username: str, address: str, browser: str = "") -> tuple[Limit, ...]:
    """What one try at a password counts for; the first is the name's, which is locked while one is looked at.

    ``browser`` is one in which this person has signed in before: it is counted for itself alone.
    """
    if browser:
        return (
            Limit(
                "sign_in_browser", pseudonym("sign-in-browser", f"{username.casefold()}\n{browser}"), TRIES
            ),
        )
    return (
        Limit("sign_in_name", pseudonym("sign-in-name", username.casefold()), TRIES_OF_NAME),
        Limit("sign_in", subject_of(username, address), TRIES),
        Limit("sign_in_address", pseudonym("sign-in-address", counted_address(address)), TRIES_OF_ADDRESS),
    )


def factor_limits(user_id: UUID) -> tuple[Limit, ...]:
    """What one try at a second factor counts for."""
    return (Limit("second_factor", pseudonym("second-factor", str(user_id)), FACTOR_TRIES),)


def reset_limits(email: str, address: str) -> tuple[Limit, ...]:
    """What asking for a new password by mail counts for."""
    return (
        Limit("reset_mail", pseudonym("reset-mail", email.casefold()), RESETS),
        Limit("reset_address", pseudonym("reset-address", counted_address(address)), RESETS_OF_ADDRESS),
    )


def check_limits(kind: str, limits: Collection[Limit]) -> None:
    """Raises Throttled when one of the limits is used up, on the database's clock.

    Tries at one name (the first limit's subject) are looked at one after the other, so that many at once do not get
    past: the lock is held to the end of the transaction.
    """
    require_transaction()
    subjects = [limit.subject for limit in limits]
    with connection.cursor() as cursor:
        key = int.from_bytes(subjects[0].bytes[:8], "big", signed=True)
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
    counts = dict(
        Event.objects.filter(
            tenant_id=INSTALLATION, subject_id__in=subjects, kind=kind, at__gt=Now() - WINDOW
        )
        .values_list("subject_id")
        .annotate(count=Count("id"))
    )
    if any(counts.get(limit.subject, 0) >= limit.most for limit in limits):
        raise Throttled
