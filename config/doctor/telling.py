"""Whether people hear of what waits for them: how mails leave, what was given up, and what should have left by now."""

from collections.abc import Iterator
from typing import Final

from config import observed
from config.doctor.findings import Finding, ago, ok, problem, warning
from notify.screens.telling import leaves_by

LATE_S: Final = 900


def mail() -> Iterator[Finding]:
    leaves, how = leaves_by()
    if leaves:
        yield ok(how)
    else:
        yield warning(
            f"{how} People hear of what waits only in the app and in chat rooms.",
            "Set PLACET_MAIL_URL and PLACET_MAIL_FROM, and send yourself a test under People, Notices.",
        )


def notices() -> Iterator[Finding]:
    found = observed.telling()
    if found.late > LATE_S:
        yield problem(
            f"People are not told: the oldest message has been due for {ago(found.late)}.",
            "See whether a sweep is at work, and what its log says of mail servers.",
        )
    elif found.dead:
        yield warning(
            f"{found.dead} mails and chat messages were given up in the last week.",
            "See People, Notices: each has its reason, and can be sent again.",
        )
    else:
        yield ok("What people are to be told has left, or waits for its time.")


CHECKS: Final = (mail, notices)
