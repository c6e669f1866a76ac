"""Lift a freeze or close a circuit at the command line."""

import getpass
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from common.errors import Refused
from workflows.actions.freezing import lift
from workflows.models import Hold


class Command(BaseCommand):
    help = "Lifts a freeze: what it held is checked again one by one, and let go a few at a time."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("hold", type=UUID, help="as `freeze` printed it")
        parser.add_argument("--why", required=True, help="for whoever reads it later")

    def handle(self, *, hold: UUID, why: str, **_: Any) -> None:
        by = Actor(f"command_line:{getpass.getuser()}", Via.COMMAND_LINE, Owner.PERSON)
        known = Hold.objects.filter(pk=hold).first()
        try:
            tenant_id = known.tenant_id if known else None
            lifted = lift(hold_id=hold, tenant_id=tenant_id, why=why, by=by, clock=db_clock)
        except Refused as refused:
            raise CommandError(refused.message) from refused
        self.stdout.write(
            f"Being lifted: {lifted.scope}. The sweep lets go of what it held, a few each second."
        )
