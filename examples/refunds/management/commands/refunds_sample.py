"""`manage.py refunds_sample SRC.csv OUT.jsonl`: makes a file for `manage.py intake refund-triage`."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from examples.refunds.sample import write_sample


class Command(BaseCommand):
    help = "Gives each message of a CSV file (column text) a customer and an order of the example's provider."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("source", type=Path, help="a CSV file with a column named text")
        parser.add_argument("target", type=Path, help="the JSON lines to write")
        parser.add_argument("--limit", type=int, default=2000, help="at most so many messages (default 2000)")

    def handle(self, *, source: Path, target: Path, limit: int, **options: Any) -> None:
        try:
            count = write_sample(source, target, limit=limit)
        except (OSError, KeyError, UnicodeDecodeError) as error:
            raise CommandError(f"{source} cannot be read as CSV with a column named text: {error}") from error
        self.stdout.write(f"{count} cases written to {target}.")
