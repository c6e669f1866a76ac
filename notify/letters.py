"""What stands in a mail: a letter about one thing, or a list of several. Pure but for the templates.

The plain part is complete, and the other one says the same. Every header is made of words of ours, or of one line
without control characters; nothing from outside reaches an address or the name of a header.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.utils import format_datetime
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email
from django.template.loader import render_to_string
from django.urls import reverse

from common.spans import iso
from notify import times
from notify.kinds import kind_of
from notify.links import link_to
from notify.models import Message
from notify.texts import for_mail, grouped

LONGEST_SUBJECT: Final = 160
_ONE: Final = ("notify/mail/one.txt", "notify/mail/one.html")
_LIST: Final = ("notify/mail/list.txt", "notify/mail/list.html")
_SLUG: Final = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Reader:
    """Whom a letter goes to."""

    user_id: UUID
    email: str
    zone: str
    tenant: str
    """The tenant's short name: letters, digits and hyphens."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message as a person is told of it, under the notice that they have."""

    notice_id: UUID
    message: Message


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as the templates show it."""

    title: str
    lead: str
    digest: str
    facts: Sequence[tuple[str, str]]
    until: str
    link: str


def letter(batch: UUID, reader: Reader, entries: Sequence[Entry]) -> EmailMultiAlternatives:
    """The mail. The same batch has the same Message-ID at each try, so that a second one is known as such.

    Raises ValidationError for an address that is none.
    """
    validate_email(reader.email)
    lines = [_line(entry, reader) for entry in entries]
    plain, other = _ONE if len(lines) == 1 else _LIST
    context = {"line": lines[0], "lines": lines, "wishes": _here(reverse("account_notices"))}
    mail = EmailMultiAlternatives(
        subject=_subject(lines), body=render_to_string(plain, context),
        from_email=settings.DEFAULT_FROM_EMAIL, to=[reader.email], headers=_headers(batch, reader, entries),
    )  # fmt: skip
    mail.attach_alternative(render_to_string(other, context), "text/html")
    return mail


def _line(entry: Entry, reader: Reader) -> Line:
    told = entry.message
    return Line(
        title=kind_of(told.kind).title, lead=for_mail(told.lead), digest=grouped(told.digest),
        facts=[(for_mail(label), for_mail(text)) for label, text in told.facts],
        until=times.shown(told.until, reader.zone) if told.until else "",
        link=_here(link_to(entry.notice_id, reader.user_id)),
    )  # fmt: skip


def _subject(lines: Sequence[Line]) -> str:
    first = lines[0]
    if len(lines) == 1:
        mark = f" [{first.digest}]" if first.digest else ""
        return f"{first.lead[: LONGEST_SUBJECT - len(mark)]}{mark}"
    return f"{len(lines)} notices: {first.lead}"[:LONGEST_SUBJECT]


def _headers(batch: UUID, reader: Reader, entries: Sequence[Entry]) -> dict[str, str]:
    host = host_name()
    written: datetime = max(entry.message.created_at for entry in entries)
    return {
        "Message-ID": f"<{batch}@{host}>",
        "Date": format_datetime(written),
        "List-Id": f"Placet notices <notices.{_SLUG.sub('-', reader.tenant.lower()) or 'tenant'}.{host}>",
        "List-Unsubscribe": f"<{_here(reverse('account_notices'))}>",
        "Auto-Submitted": "auto-generated",
        "X-Auto-Response-Suppress": "All",
        "X-Placet-Told": iso(written),
    }


def host_name() -> str:
    """The host of the configured address, for names inside headers."""
    host = urlsplit(settings.PLACET_BASE_URL).hostname or "localhost"
    return Address(username="x", domain=host).domain


def _here(path: str) -> str:
    """Under the configured address, whatever a request or a proxy said."""
    return f"{settings.PLACET_BASE_URL}{path}"
