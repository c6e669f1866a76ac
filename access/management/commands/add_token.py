"""`./placet add_token harbour intake --scope runs:write --for noor --days 90`: a token for an automation."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.actions import create_agent, issue_token
from access.enums import Scope
from access.management.operator import agent_named, at_the_console, person_named, tenant_named
from common.clock import db_clock
from common.errors import Refused


class Command(BaseCommand):
    help = "Issue a bearer token to an automation, which is made if it is not there yet. The token is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant")
        parser.add_argument("automation")
        parser.add_argument("--scope", action="append", default=[], choices=Scope.values)
        parser.add_argument(
            "--for", dest="person", default="", help="Whom it acts for; they never decide on it."
        )
        parser.add_argument("--days", type=int, default=90)

    def handle(self, **options: Any) -> None:
        try:
            text = _issue(options)
        except Refused as refusal:
            raise CommandError(refusal.message) from None
        self.stdout.write(f"{text} (shown this once; it ends in {options['days']} days)")


def _issue(options: dict[str, Any]) -> str:
    tenant, by, name = tenant_named(options["tenant"]), at_the_console(), options["automation"]
    person = person_named(options["person"]) if options["person"] else None
    agent = agent_named(tenant, name) or create_agent(
        tenant=tenant, name=name, acts_for=person, by=by, clock=db_clock
    )
    scopes = [Scope(scope) for scope in options["scope"]]
    text, _ = issue_token(
        agent=agent, scopes=scopes, life=timedelta(days=options["days"]), by=by, clock=db_clock
    )
    return text
