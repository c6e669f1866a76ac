"""`./placet doctor`: what is wrong with this installation, and what to do."""

import json
import sys
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandParser

from config.doctor.examination import examine, exit_code
from config.doctor.findings import Diagnosis, Level

_MARKS: Final = {Level.OK: "ok      ", Level.WARNING: "WARNING ", Level.PROBLEM: "PROBLEM "}


class Command(BaseCommand):
    help = (
        "Say in words what is wrong and what to do. Ends with 0 (all is well), 1 (warnings) or 2 (problems)."
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Machine-readable, one object.")

    def handle(self, *, json: bool, **_: Any) -> None:
        found = list(examine())
        self.stdout.write(_as_json(found) if json else "\n".join(_in_words(found)))
        sys.exit(exit_code(found))


def _in_words(found: list[Diagnosis]) -> list[str]:
    lines = []
    for diagnosis in found:
        finding = diagnosis.finding
        lines.append(f"{_MARKS[finding.level]}{diagnosis.check}: {finding.says}")
        if finding.do:
            lines.append(f"          {finding.do}")
    problems, warnings = (_count(found, level) for level in (Level.PROBLEM, Level.WARNING))
    return [*lines, "", f"{len(found)} findings: {problems} problems, {warnings} warnings."]


def _as_json(found: list[Diagnosis]) -> str:
    rows = [
        {"check": row.check, "level": row.finding.level, "says": row.finding.says, "do": row.finding.do}
        for row in found
    ]
    return json.dumps({"exit_code": exit_code(found), "findings": rows}, indent=2)


def _count(found: list[Diagnosis], level: Level) -> int:
    return sum(diagnosis.finding.level == level for diagnosis in found)
