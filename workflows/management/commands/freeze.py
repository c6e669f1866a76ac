"""The kill switch at the command line; without a scope it lists what holds now."""

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from common.errors import Refused
from common.models import Tenant
from workflows.actions.freezing import Scope, freeze
from workflows.enums import HoldStatus
from workflows.models import Hold


class Command(BaseCommand):
    help = "Freezes a scope: nothing within it is newly sent any more. Without a scope: lists what is frozen."

    def add_arguments(self, parser: CommandParser) -> None:
        scope = parser.add_mutually_exclusive_group()
        scope.add_argument("--everything", action="store_true", help="the whole installation")
        scope.add_argument("--tenant", help="the short name of one tenant")
        parser.add_argument("--workflow", default="")
        parser.add_argument("--workflow-version", type=int)
        parser.add_argument("--operation", default="")
        parser.add_argument("--target", default="", help="one record, as kind:id")
        parser.add_argument("--why", default="", help="for whoever finds it later")

    def handle(self, *, everything: bool, tenant: str | None, why: str, **options: Any) -> None:
        if not everything and not tenant:
            self._list()
            return
        by = Actor(f"command_line:{getpass.getuser()}", Via.COMMAND_LINE, Owner.PERSON)
        names = ("workflow", "workflow_version", "operation", "target")
        scope = Scope(self._tenant_id(tenant), **{name: options[name] for name in names})
        try:
            hold = freeze(scope=scope, why=why, by=by, clock=db_clock)
        except Refused as refused:
            raise CommandError(refused.message) from refused
        self._say(hold)

    def _tenant_id(self, slug: str | None) -> Any:
        if slug is None:
            return None
        try:
            return Tenant.objects.get(slug=slug).pk
        except Tenant.DoesNotExist:
            raise CommandError(f"There is no tenant {slug}.") from None

    def _say(self, hold: Hold) -> None:
        self.stdout.write(f"Frozen: {hold.scope} ({hold.pk}), since {hold.placed_at:%Y-%m-%d %H:%M:%S} UTC.")
        if hold.drained_at is None:
            self.stdout.write("Somebody is slow to end: look again in a moment whether it is drained.")
            return
        sent, unknown = hold.in_flight["sent"], hold.in_flight["unknown"]
        self.stdout.write(f"In flight at that instant: {sent} sent, {unknown} of unknown outcome.")

    def _list(self) -> None:
        for hold in (
            Hold.objects.exclude(status=HoldStatus.LIFTED).select_related("tenant").order_by("placed_at")
        ):
            whose = hold.tenant.slug if hold.tenant else "all"
            self.stdout.write(
                f"{hold.pk}  {hold.reason:8} {hold.status:9} {whose:12} {hold.scope}  {hold.placed_at:%Y-%m-%d %H:%M}"
                f"  {hold.placed_by}  {hold.why}"
            )
