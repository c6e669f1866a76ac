"""Makes the demo organisation and writes what scripts need to drive it."""

import json
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from common.clock import db_clock
from config.demo import make_demo, start_cases


class Command(BaseCommand):
    help = "Make the demo organisation with people, tokens and first cases; what is there stays."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--base-url", required=True, help="where people find the product")
        parser.add_argument("--provider-url", required=True, help="where the example's provider listens")
        parser.add_argument(
            "--out", type=Path, required=True, help="JSON file for scripts, written with mode 0600"
        )

    def handle(self, *, base_url: str, provider_url: str, out: Path, **options: Any) -> None:
        before = json.loads(out.read_text()) if out.exists() else {}
        made = make_demo(known_tokens=before.get("tokens", {}), clock=db_clock)
        write_private(out, {"base_url": base_url, "provider_url": provider_url, **made})
        started = start_cases(clock=db_clock)
        self.stdout.write(f"Wrote {out}; started {started} cases.")


def write_private(path: Path, content: dict[str, Any]) -> None:
    """Whole or not at all, and readable by this user only: it holds passwords and tokens."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file, indent=2, ensure_ascii=False)
        file.write("\n")
    partial.replace(path)
