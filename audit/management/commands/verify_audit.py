"""``manage.py verify_audit``: does the history hold? Exit code 0 when every chain does, 1 when one does not."""

import sys
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.verify import Cause, Verdict, verify_all, verify_whole
from common.models import Tenant


class Command(BaseCommand):
    """Prints one line per tenant."""

    help = "Recompute the chain of every tenant's events, and say whether it holds and the tables fit it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", help="the tenant's short name or id; without it all of them")

    def handle(self, *args: Any, tenant: str | None, **options: Any) -> None:
        names = dict(Tenant.objects.values_list("id", "slug"))
        verdicts = [verify_whole(_tenant_id(tenant, names))] if tenant else list(verify_all())
        for verdict in verdicts:
            self.stdout.write(_line(verdict, names.get(verdict.tenant_id, "installation")))
        if not verdicts:
            self.stdout.write("There are no events yet.")
        if not all(verdict.holds for verdict in verdicts):
            sys.exit(1)


def _tenant_id(wanted: str, names: dict[UUID, str]) -> UUID:
    """By short name, or by id: the chain of a tenant that is gone can be checked too."""
    for tenant_id, slug in names.items():
        if slug == wanted:
            return tenant_id
    try:
        return UUID(wanted)
    except ValueError:
        raise CommandError(f"There is no tenant “{wanted}”.") from None


def _line(verdict: Verdict, name: str) -> str:
    if verdict.holds:
        return f"{name}: the chain holds. {verdict.sealed} events sealed, head {verdict.head}"
    if verdict.cause == Cause.UNREADABLE:
        return f"{name}: THE HISTORY CANNOT BE CHECKED. {verdict.meaning}"
    if verdict.detail:
        return f"{name}: THE TABLES DO NOT FIT THE HISTORY. {verdict.detail} The chain itself holds."
    place = f"number {verdict.seq}" if verdict.seq is not None else "without a number"
    event = f", id {verdict.event_id}" if verdict.event_id else ""
    return f"{name}: THE CHAIN DOES NOT HOLD at event {place}{event} ({verdict.cause}). {verdict.meaning}"
