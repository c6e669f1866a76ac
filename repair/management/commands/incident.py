"""`./placet incident erase harbour INCIDENT --why file-17`: what people wrote about a closed incident, for good."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from access.management.operator import Verbs, at_the_console, tenant_named
from common.clock import db_clock
from repair.incidents.erasing import erase_incident


class Command(Verbs):
    help = "Incidents: erase what was written about one that is closed."

    def verbs(self, add: Callable[..., CommandParser]) -> None:
        add(
            "erase", self._erase, "destroy the key of its words; what was done stays", "tenant", "incident"
        ).add_argument(
            "--why",
            required=True,
            help="A code or file number, without personal data; it stays in the history.",
        )

    def _erase(self, options: dict[str, Any]) -> str:
        try:
            incident_id = UUID(options["incident"])
        except ValueError:
            raise CommandError("The incident is named by its id.") from None
        done = erase_incident(
            tenant_id=tenant_named(options["tenant"]).pk, incident_id=incident_id, why=options["why"],
            by=at_the_console(), clock=db_clock,
        )  # fmt: skip
        return "Erased." if done else "There was nothing, or it was erased before."
