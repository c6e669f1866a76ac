"""Write `docs/access.md` from the table of who may ask for what, or say whether it is up to date."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.access_matrix import document


class Command(BaseCommand):
    help = "Writes docs/access.md; with --check only compares, and fails when it is out of date."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="compare and write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        path, written = Path(settings.BASE_DIR) / "docs" / "access.md", document()
        if not options["check"]:
            path.write_text(written)
        elif not path.exists() or path.read_text() != written:
            raise CommandError("docs/access.md is out of date: run `./placet access_matrix`.")
