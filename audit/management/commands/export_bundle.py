"""``manage.py export_bundle``: the history as a file that `verify_history.py` checks elsewhere."""

import getpass
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.actors import Actor, Owner, Via
from audit.bundle import Scope
from audit.exporting import export
from common.errors import Refused
from common.models import Tenant


class Command(BaseCommand):
    """Writes one file, and prints its digest."""

    help = "Write the history of a tenant, of one run, or of some places, as a bundle that can be checked offline."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the file to write; it must not be there yet")
        parser.add_argument("--tenant", required=True, help="the tenant's short name")
        parser.add_argument("--run", type=UUID, help="only the events of this run, with proofs of each")
        parser.add_argument("--from", dest="first", type=int, help="only the events from this place on")
        parser.add_argument("--to", dest="last", type=int, help="only the events up to this place")
        parser.add_argument(
            "--without-contents", action="store_true", help="leave out contracts and views, which hold personal data"
        )  # fmt: skip

    def handle(self, *args: Any, file: Path, tenant: str, **options: Any) -> None:
        found = Tenant.objects.filter(slug=tenant).first()
        if found is None:
            raise CommandError(f"There is no tenant “{tenant}”.")
        scope = _scope(found, **options)
        try:
            target = file.open("xb")
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
        with target:
            try:
                made = export(found, scope, by=_actor())
            except Refused as refused:
                file.unlink()
                raise CommandError(refused.message) from refused
            with made.file:
                shutil.copyfileobj(made.file, target)
        self.stdout.write(f"{file}: {made.bytes:,} bytes, SHA-256 {made.digest}")


def _scope(
    tenant: Tenant, *, run: UUID | None, first: int | None, last: int | None, without_contents: bool, **_: Any
) -> Scope:  # fmt: skip
    part = first is not None or last is not None
    if part and run is not None:
        raise CommandError("Either --run, or --from and --to.")
    places = (first or 1, last or 2**62) if part else None
    if places and places[0] > places[1]:
        raise CommandError("--from lies behind --to.")
    return Scope(tenant.pk, run, places, contracts=not without_contents, views=not without_contents)


def _actor() -> Actor:
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        name = "unknown"
    return Actor(performed_by=f"command_line:{name}", via=Via.COMMAND_LINE, owner=Owner.PERSON)
