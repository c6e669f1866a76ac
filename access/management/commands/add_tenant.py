"""`./placet add_tenant harbour --name "Harbour Lane"`: the first thing on an installation without the demo."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.actions import create_tenant
from access.management.operator import at_the_console
from common.clock import db_clock
from common.errors import Refused


class Command(BaseCommand):
    help = "Make a new, empty tenant. Then add people to it: add_person."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--name", default="")

    def handle(self, *, slug: str, name: str, **options: Any) -> None:
        try:
            tenant = create_tenant(slug=slug, name=name or slug, by=at_the_console(), clock=db_clock)
        except Refused as refusal:
            raise CommandError(refusal.message) from None
        self.stdout.write(f"Made the tenant {tenant.slug}.")
