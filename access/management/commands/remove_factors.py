"""`./placet remove_factors noor`: for somebody who has lost phone, key and recovery codes."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.actions_account import remove_factors
from access.management.operator import at_the_console, person_named
from common.clock import db_clock
from common.errors import Refused


class Command(BaseCommand):
    help = "Take all second factors and passkeys from a person. Be sure who asks for it: the password then does alone."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *, username: str, **options: Any) -> None:
        try:
            count = remove_factors(user=person_named(username), by=at_the_console(), clock=db_clock)
        except Refused as refusal:
            raise CommandError(refusal.message) from None
        self.stdout.write(f"Removed {count}. Every session of {username} has ended.")
