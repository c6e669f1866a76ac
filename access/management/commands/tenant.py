"""`./placet tenant create harbour --name "Harbour Lane"`: organisations, and the posture of a team of one."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from access.actions import create_tenant
from access.actions_posture import turn_off, turn_on
from access.management.operator import Verbs, at_the_console, tenant_named
from access.models import Membership
from access.selectors import break_glass_of
from common.clock import db_clock
from common.models import Tenant


class Command(Verbs):
    help = "Organisations: create, list, break-glass."

    def verbs(self, add: Callable[..., CommandParser]) -> None:
        add("create", self.create, "a new, empty organisation", "slug").add_argument("--name", default="")
        add("list", self.list_all, "all of them, with how many people")
        on = add("break-glass", self.break_glass, "let one person decide on their own, until a day", "slug")
        on.add_argument("--why", required=True)
        on.add_argument("--until", default="", help="A day as 2026-12-31, in UTC; else seven days from now.")
        off = add("break-glass-off", self.break_glass_off, "end that now", "slug")
        off.add_argument("--why", default="")

    def create(self, said: dict[str, Any]) -> str:
        tenant = create_tenant(
            slug=said["slug"], name=said["name"] or said["slug"], by=at_the_console(), clock=db_clock
        )
        return f"Made the tenant {tenant.slug}. Add people to it: person add."

    def list_all(self, said: dict[str, Any]) -> str:
        return "\n".join(_line(tenant) for tenant in Tenant.objects.order_by("slug")) or "There is none yet."

    def break_glass(self, said: dict[str, Any]) -> str:
        tenant, ends_at = tenant_named(said["slug"]), _end_of(said["until"])
        turn_on(tenant=tenant, reason=said["why"], ends_at=ends_at, by=at_the_console(), clock=db_clock)
        return f"Break-glass is on for {tenant.slug} until {ends_at:%Y-%m-%d %H:%M} UTC."

    def break_glass_off(self, said: dict[str, Any]) -> str:
        ended = turn_off(
            tenant=tenant_named(said["slug"]), by=at_the_console(), clock=db_clock, reason=said["why"]
        )
        return "Break-glass is off." if ended else "It was off already."


def _line(tenant: Tenant) -> str:
    people = Membership.objects.filter(tenant=tenant, is_active=True).count()
    on = break_glass_of(tenant.pk)
    return f"{tenant.slug}  {tenant.name}  {people} people" + (
        f"  break-glass until {on.ends_at:%Y-%m-%d}" if on else ""
    )


def _end_of(day: str) -> datetime:
    if not day:
        return db_clock() + timedelta(days=7)
    try:
        return datetime.combine(datetime.fromisoformat(day).date(), time(23, 59, 59), tzinfo=UTC)
    except ValueError:
        raise CommandError("A day is written as 2026-12-31.") from None
