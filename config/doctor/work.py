"""What stands still, what holds, and whether history and backups were looked after."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.conf import settings

from config import observed
from config.context import STANDSTILL
from config.doctor.findings import Finding, ago, ok, problem, warning
from workflows.enums import CommandStatus

UNKNOWN_S: Final = 900
CHECK_EVERY_S: Final = 2 * 86_400
BACKUP_EVERY_S: Final = 26 * 3600
BACKUP: Final = "backup"


def due() -> Iterator[Finding]:
    late = [(what, age) for what, _, _, age in observed.due() if age > STANDSTILL.total_seconds()]
    if late:
        what, age = max(late, key=lambda found: found[1])
        yield problem(
            f"Work does not move: the oldest {what} has been due for {ago(age)}.",
            "See whether workers or a sweep are at work, and what their logs say.",
        )
    else:
        yield ok("What is due is taken within a minute.")


def unknown() -> Iterator[Finding]:
    """Actions of which nobody knows whether they happened."""
    [row] = [
        row for row in observed.waiting() if (row.what, row.status) == ("command", CommandStatus.UNKNOWN)
    ]
    says = (
        f"Of {row.count} actions nobody knows whether they happened; the oldest was sent {ago(row.age)} ago."
    )
    if row.count and row.age > UNKNOWN_S:
        yield warning(says, "The providers cannot tell. Look there, and say under Repair what you found.")
    else:
        yield ok(says if row.count else "Of every action that was sent it is known whether it happened.")


def packets() -> Iterator[Finding]:
    causes = observed.packet_causes()
    late = sum(overdue for _, _, overdue in causes)
    if late:
        yield warning(f"{late} things that stopped wait for longer than they should.", "See Repair.")
    else:
        yield ok(
            f"{sum(count for _, count, _ in causes)} things that stopped wait for a person, all in time."
        )


def holds() -> Iterator[Finding]:
    freezes = sum(count for reason, _, count in observed.holds() if reason == "freeze")
    circuits = sum(count for reason, _, count in observed.holds() if reason == "circuit")
    if freezes or circuits:
        yield warning(
            f"{freezes} freezes and {circuits} open circuits hold actions back.",
            "See Runs, Freezes. A freeze stays until somebody lifts it.",
        )
    else:
        yield ok("Nothing is frozen.")


def history() -> Iterator[Finding]:
    found = observed.checked()
    if found.broken:
        yield problem(
            f"The history of {found.broken} organisations does not hold: events were changed or removed.",
            "Run manage.py verify_audit, which names the first; stop, and compare with a backup and with receipts.",
        )
    elif found.never or found.age > CHECK_EVERY_S:
        last = f"the oldest check is {ago(found.age)} old" if found.holds else "none was checked"
        yield warning(
            f"{found.never} histories were never checked; {last}.",
            "Beat has it done once a day; manage.py verify_audit does it now.",
        )
    else:
        yield ok(f"Each of {found.holds} histories held when it was last checked.")


UNSIGNED_S: Final = 600


def signer() -> Iterator[Finding]:
    """Whether the signer signs, and whether the processes beside it could."""
    found = observed.signed()
    if found.refused:
        yield problem(
            f"The signer refuses {found.refused} histories: they are not those that it has signed.",
            "See ./placet signer status and docs/operating.md, The signer. Find out why before you accept anything.",
        )
    elif found.waiting > UNSIGNED_S:
        yield problem(
            f"No signer is at work: the oldest event has waited for {ago(found.waiting)} to be signed.",
            "Start it (python -m signer run), or see what its log says. Without it nobody can prove the history.",
        )
    else:
        yield ok(f"{found.signed} histories are signed as they go.")
    yield from _key_apart()


def _key_apart() -> Iterator[Finding]:
    key = Path(settings.PLACET_DATA_DIR) / "signer" / "key.pem"
    if os.access(key, os.R_OK):
        yield warning(
            f"Whoever works under this account can read the signer's key ({key}).",
            "For proof against this machine's administrators let it run elsewhere (docs/operating.md, The signer).",
        )


def backup() -> Iterator[Finding]:
    """Whoever makes backups says so with `manage.py note_backup`; nobody else can know."""
    newest = next((sign for sign in observed.signs() if sign.kind == BACKUP), None)
    if newest is None:
        yield warning(
            "No backup was ever noted.",
            "Make backups, and let the script end with manage.py note_backup (docs/operating.md).",
        )
    elif newest.age > BACKUP_EVERY_S:
        yield warning(
            f"The last backup was noted {ago(newest.age)} ago.", "See why the script did not reach its end."
        )
    else:
        yield ok(f"The last backup ({newest.name}) was noted {ago(newest.age)} ago.")


CHECKS: Final = (due, unknown, packets, holds, history, signer, backup)
