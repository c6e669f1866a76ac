"""`./placet group add harbour "Refund desk"`: groups of reviewers."""

from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandParser

from access.actions import add_to_group, create_group, remove_from_group
from access.management.operator import Verbs, at_the_console, known_group, person_named, tenant_named
from access.models import Group
from common.clock import db_clock


class Command(Verbs):
    help = "Groups: add, join, leave, list."

    def verbs(self, add: Callable[..., CommandParser]) -> None:
        add("add", self.add, "a new, empty group", "tenant", "group")
        add("join", self.join, "put somebody into it", "tenant", "group", "username")
        add("leave", self.leave, "take somebody out of it", "tenant", "group", "username")
        add("list", self.list_all, "all groups and who reviews for them", "tenant")

    def add(self, said: dict[str, Any]) -> str:
        tenant = tenant_named(said["tenant"])
        create_group(tenant=tenant, name=said["group"], by=at_the_console(), clock=db_clock)
        return f"Made the group {said['group']}."

    def join(self, said: dict[str, Any]) -> str:
        add_to_group(**self._place(said))
        return f"{said['username']} reviews for {said['group']}."

    def leave(self, said: dict[str, Any]) -> str:
        remove_from_group(**self._place(said))
        return f"{said['username']} no longer reviews for {said['group']}."

    def list_all(self, said: dict[str, Any]) -> str:
        groups = Group.objects.filter(tenant=tenant_named(said["tenant"])).order_by("name")
        lines = [
            f"{group.name}: {', '.join(group.members.values_list('user__username', flat=True)) or 'nobody'}"
            for group in groups
        ]
        return "\n".join(lines) or "There is none yet."

    def _place(self, said: dict[str, Any]) -> dict[str, Any]:
        group, user = known_group(tenant_named(said["tenant"]), said["group"]), person_named(said["username"])
        return {"group": group, "user": user, "by": at_the_console(), "clock": db_clock}
