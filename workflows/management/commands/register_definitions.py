"""Write down the versions of the installed workflows, operations and policies; run after `migrate`, before workers."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common.clock import db_clock
from workflows.registry import ChangedUnderOldNumber, register_definitions


class Command(BaseCommand):
    help = "Register the installed versions. Refuses a schema, display or rule that changed under its old number."

    def handle(self, **options: Any) -> None:
        try:
            new = register_definitions(clock=db_clock)
        except ChangedUnderOldNumber as error:
            raise CommandError(str(error)) from None
        for name in new:
            self.stdout.write(f"registered {name}")
