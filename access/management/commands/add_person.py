"""`./placet add_person harbour noor --role reviewer --group "Refund desk"`: somebody who signs in."""

import secrets
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.actions import add_to_group, create_group, create_user
from access.enums import Role
from access.management.operator import at_the_console, group_named, tenant_named
from common.clock import db_clock
from common.errors import Refused


class Command(BaseCommand):
    help = "Add a person to a tenant, with roles and groups. The password is made here and shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant")
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="What others read.")
        parser.add_argument("--role", action="append", default=[], choices=Role.values)
        parser.add_argument("--group", action="append", default=[], help="Made if it is not there yet.")

    def handle(self, **options: Any) -> None:
        try:
            password = _add(options)
        except Refused as refusal:
            raise CommandError(refusal.message) from None
        self.stdout.write(f"{options['username']} signs in with {password} (shown this once).")


def _add(options: dict[str, Any]) -> str:
    tenant, by, password = tenant_named(options["tenant"]), at_the_console(), secrets.token_urlsafe(12)
    user = create_user(
        tenant=tenant, username=options["username"], password=password, display_name=options["name"],
        roles=[Role(role) for role in options["role"]], by=by, clock=db_clock,
    )  # fmt: skip
    for name in options["group"]:
        group = group_named(tenant, name) or create_group(tenant=tenant, name=name, by=by, clock=db_clock)
        add_to_group(group=group, user=user, by=by, clock=db_clock)
    return password
