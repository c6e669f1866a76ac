"""`./placet person add harbour noor --role reviewer --group "Refund desk"`: people, as the pages have them."""

import secrets
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandParser

from access.actions import (
    add_to_group,
    create_group,
    create_user,
    deactivate_membership,
    deactivate_user,
    set_roles,
)
from access.actions_people import (
    give_duty,
    link_accounts,
    reactivate_membership,
    reactivate_user,
    unlink_account,
)
from access.enums import DutyKind, Role
from access.management.operator import Verbs, at_the_console, group_named, person_named, tenant_named
from access.selectors import members
from common.clock import db_clock


class Command(Verbs):
    help = "People: add, roles, same, apart, duty, deactivate, reactivate, close, open, list."

    def verbs(self, add: Callable[..., CommandParser]) -> None:
        new = add("add", self.add, "somebody who signs in; the password is shown once", "tenant", "username")
        new.add_argument("--name", default="", help="What others read.")
        new.add_argument("--role", action="append", default=[], choices=Role.values)
        new.add_argument("--group", action="append", default=[], help="Made if it is not there yet.")
        roles = add(
            "roles", self.roles, "exactly these roles; an account gets its place", "tenant", "username"
        )
        roles.add_argument("--role", action="append", default=[], choices=Role.values)
        add("same", self.same, "two accounts are one person", "tenant", "username", "other")
        apart = add("apart", self.apart, "an account is a person of its own", "tenant", "username")
        apart.add_argument("--why", required=True)
        duty = add(
            "duty", self.duty, "what they answer for, and so never decide", "tenant", "username", "workflow"
        )
        duty.add_argument("--kind", choices=DutyKind.values, default=DutyKind.OWNER)
        duty.add_argument("--policy-version", type=int)
        for name, do, says in (
            ("deactivate", self.deactivate, "end their membership of one organisation"),
            ("reactivate", self.reactivate, "let them back in"),
        ):
            add(name, do, says, "tenant", "username").add_argument("--why", default="")
        add("close", self.close, "close the account everywhere", "username").add_argument("--why", default="")
        add("open", self.open, "open a closed account again", "username").add_argument("--why", default="")
        add("list", self.list_all, "everybody of an organisation", "tenant")

    def add(self, said: dict[str, Any]) -> str:
        tenant, by, password = tenant_named(said["tenant"]), at_the_console(), secrets.token_urlsafe(12)
        user = create_user(
            tenant=tenant, username=said["username"], password=password, display_name=said["name"],
            roles=[Role(role) for role in said["role"]], by=by, clock=db_clock,
        )  # fmt: skip
        for name in said["group"]:
            group = group_named(tenant, name) or create_group(tenant=tenant, name=name, by=by, clock=db_clock)
            add_to_group(group=group, user=user, by=by, clock=db_clock)
        return f"{user.username} signs in with {password} (shown this once)."

    def roles(self, said: dict[str, Any]) -> str:
        roles = [Role(role) for role in said["role"]]
        made = set_roles(roles=roles, **self._who(said))
        return f"{said['username']}: {', '.join(made.roles) or 'no role'}."

    def same(self, said: dict[str, Any]) -> str:
        link_accounts(other=person_named(said["other"]), **self._who(said))
        return f"{said['username']} and {said['other']} are one person."

    def apart(self, said: dict[str, Any]) -> str:
        unlink_account(reason=said["why"], **self._who(said))
        return f"{said['username']} is a person of their own."

    def duty(self, said: dict[str, Any]) -> str:
        give_duty(
            kind=DutyKind(said["kind"]), workflow=said["workflow"], policy_version=said["policy_version"],
            **self._who(said),
        )  # fmt: skip
        return f"{said['username']} does not decide on what {said['workflow']} proposes from now on."

    def deactivate(self, said: dict[str, Any]) -> str:
        deactivate_membership(reason=said["why"], **self._who(said))
        return f"{said['username']} is nobody in {said['tenant']} any more."

    def reactivate(self, said: dict[str, Any]) -> str:
        reactivate_membership(reason=said["why"], **self._who(said))
        return f"{said['username']} is back in {said['tenant']}."

    def close(self, said: dict[str, Any]) -> str:
        deactivate_user(
            user=person_named(said["username"]), by=at_the_console(), clock=db_clock, reason=said["why"]
        )
        return f"The account {said['username']} is closed everywhere."

    def open(self, said: dict[str, Any]) -> str:
        reactivate_user(
            user=person_named(said["username"]), by=at_the_console(), clock=db_clock, reason=said["why"]
        )
        return f"The account {said['username']} is open again."

    def list_all(self, said: dict[str, Any]) -> str:
        lines = [
            f"{row.user.username}  {'active' if row.is_active and row.user.is_active else 'deactivated'}"
            f"  {', '.join(row.roles) or 'no role'}  {', '.join(group.name for group in row.groups.all()) or '-'}"
            for row in members(tenant_named(said["tenant"]).pk)
        ]
        return "\n".join(lines) or "Nobody yet."

    def _who(self, said: dict[str, Any]) -> dict[str, Any]:
        tenant, user = tenant_named(said["tenant"]), person_named(said["username"])
        return {"tenant": tenant, "user": user, "by": at_the_console(), "clock": db_clock}
