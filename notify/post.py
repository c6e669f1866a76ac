"""Handing mails over: one connection for a round, one answer for each mail, whatever the server does.

``accepted`` means that the server took it. Nobody can know here whether it was read.
"""

import smtplib
from types import TracebackType
from typing import Any, Final

import structlog
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection

from common.delivering import Seen

log = structlog.get_logger(__name__)
TAKEN: Final = Seen("")
LEAVES: Final = "smtp"


class Post:
    """A connection to the mail server, opened when the first mail is handed over. Not for several threads."""

    def __init__(self) -> None:
        self._connection: Any = get_connection()
        self._down: Seen | None = None

    def __enter__(self) -> "Post":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._close()

    def hand_over(self, mail: EmailMessage) -> Seen:
        """One try. Once the server cannot be reached, the rest of the round does not wait for it again."""
        if self._down is not None:
            return self._down
        try:
            self._open()
        except (smtplib.SMTPException, OSError) as error:
            self._down = Seen(f"no_server_{_code(error)}")
            self._close()
            return self._down
        return self._send(mail)

    def _open(self) -> None:
        self._connection.open()

    def _send(self, mail: EmailMessage) -> Seen:
        try:
            self._connection.send_messages([mail])
        except smtplib.SMTPRecipientsRefused as error:
            self._close()
            return _refused(next(iter(error.recipients.values()), (0, b""))[0])
        except smtplib.SMTPDataError as error:
            self._close()
            return _refused(error.smtp_code)
        except (smtplib.SMTPException, OSError) as error:
            # The sender refused, no sign-in, a connection that broke: about the server, not about this mail.
            self._close()
            return Seen(f"smtp_{_code(error)}")
        except (ValueError, ValidationError) as error:
            log.exception("mail_not_made", error=type(error).__name__)
            return Seen("not_made", final=True)
        return TAKEN

    def _close(self) -> None:
        try:
            self._connection.close()
        except (smtplib.SMTPException, OSError):
            self._connection.connection = None


def _refused(code: int) -> Seen:
    """5xx is for good (RFC 5321, 4.2.1)."""
    return Seen(f"smtp_{code}", final=500 <= code < 600)


def _code(error: Exception) -> str:
    """The server's code, or what kind of error it was; never its words, which may hold an address."""
    code = getattr(error, "smtp_code", None)
    return str(code) if code else type(error).__name__.lower()[:40]
