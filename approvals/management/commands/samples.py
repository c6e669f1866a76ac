"""`./placet samples harbour`: draw again what was drawn for a look afterwards, and compare."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.management.operator import tenant_named
from approvals.sampling import drawn_again


class Command(BaseCommand):
    help = "Draw again, with this installation's secret, which automatic actions are looked at afterwards, and compare."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant")

    def handle(self, **options: Any) -> None:
        found = drawn_again(tenant_named(options["tenant"]).pk)
        self.stdout.write(f"{found.drawn} of {found.automatic} automatic actions were drawn.")
        if found.differ:
            lines = "\n".join(str(command) for command in found.differ)
            raise CommandError(
                f"The draw says otherwise of {len(found.differ)}. Was the secret changed since?\n{lines}"
            )
