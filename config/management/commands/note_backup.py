"""`./placet note_backup`: the last line of a script that makes backups."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from common.heartbeat import note
from config.doctor.work import BACKUP


class Command(BaseCommand):
    help = "Write down that a backup was made just now, for doctor and /metrics."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--name", default="backup", help="Which one, if there are several, such as nightly."
        )

    def handle(self, *, name: str, **_: Any) -> None:
        note(BACKUP, name)
        self.stdout.write("Noted.")
