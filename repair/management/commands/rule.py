"""`./placet rule PACKET`: the draft of a validation rule, on standard output."""

import getpass
import json
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.actors import Actor, Owner, Via
from common.errors import NotFound
from repair.models import RepairPacket
from repair.rule_drafts import rule_of
from repair.selectors import get_packet


class Command(BaseCommand):
    help = "Writes the draft of a validation rule, made of a packet: a check to be written, and a case to prove it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("packet", type=UUID, help="the id in the address of its page")

    def handle(self, *, packet: UUID, **_: Any) -> None:
        by = Actor(f"command_line:{getpass.getuser()}", Via.COMMAND_LINE, Owner.PERSON)
        known = RepairPacket.objects.filter(pk=packet).first()
        try:
            if known is None:
                raise NotFound
            draft = rule_of(get_packet(known.tenant_id, packet), by=by)
        except NotFound as missing:
            raise CommandError("There is no packet with this id.") from missing
        self.stdout.write(json.dumps(draft, indent=2, ensure_ascii=False))
