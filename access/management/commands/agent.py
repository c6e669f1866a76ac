"""`./placet agent add harbour intake --for noor --workflow refund-triage`: automations and their bounds."""

from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from access.actions import create_agent, deactivate_agent
from access.actions_agents import change_agent, reactivate_agent
from access.management.operator import Verbs, at_the_console, known_agent, person_named, tenant_named
from access.models import Agent
from access.tables import bounds
from common.clock import db_clock


class Command(Verbs):
    help = "Automations: add, change, deactivate, reactivate, list."

    def verbs(self, add: Callable[..., CommandParser]) -> None:
        for name, do, says in (
            ("add", self.add, "a new automation"), ("change", self.change, "exactly these people and bounds"),
        ):  # fmt: skip
            parser = add(name, do, says, "tenant", "name")
            parser.add_argument("--for", dest="person", default="", help="Whom it acts for.")
            parser.add_argument("--for-system", default="", help="Or the system it acts for.")
            parser.add_argument("--owner", default="", help="Who answers for it.")
            parser.add_argument("--workflow", action="append", help="What it may start; none named: any.")
            parser.add_argument("--operation", action="append", help="What it may propose; none named: any.")
        for name, do, says in (
            ("deactivate", self.deactivate, "none of its tokens works any more"),
            ("reactivate", self.reactivate, "let it work again"),
        ):
            add(name, do, says, "tenant", "name").add_argument("--why", default="")
        add("list", self.list_all, "all automations of an organisation", "tenant")

    def add(self, said: dict[str, Any]) -> str:
        agent = create_agent(
            tenant=tenant_named(said["tenant"]),
            name=said["name"],
            by=at_the_console(),
            clock=db_clock,
            **_said(said),
        )
        return f"Made the automation {agent.name}. Issue a token for it: token issue."

    def change(self, said: dict[str, Any]) -> str:
        change_agent(**self._one(said), **_said(said))
        return f"{said['name']} is bounded so."

    def deactivate(self, said: dict[str, Any]) -> str:
        deactivate_agent(reason=said["why"], **self._one(said))
        return f"{said['name']} works no more."

    def reactivate(self, said: dict[str, Any]) -> str:
        reactivate_agent(reason=said["why"], **self._one(said))
        return f"{said['name']} works again."

    def list_all(self, said: dict[str, Any]) -> str:
        rows = Agent.objects.filter(tenant=tenant_named(said["tenant"])).select_related("acts_for", "owner")
        return "\n".join(_line(row) for row in rows.order_by("name")) or "There is none yet."

    def _one(self, said: dict[str, Any]) -> dict[str, Any]:
        agent = known_agent(tenant_named(said["tenant"]), said["name"])
        return {"agent": agent, "by": at_the_console(), "clock": db_clock}


def _said(said: dict[str, Any]) -> dict[str, Any]:
    if said["person"] and said["for_system"]:
        raise CommandError("It acts for a person or for a system, not for both.")
    return {
        "acts_for": person_named(said["person"]) if said["person"] else None, "acts_for_system": said["for_system"],
        "owner": person_named(said["owner"]) if said["owner"] else None, "workflows": said["workflow"],
        "operations": said["operation"],
    }  # fmt: skip


def _line(agent: Agent) -> str:
    whom = agent.acts_for.username if agent.acts_for else agent.acts_for_system or "nobody named"
    state = "active" if agent.is_active else "deactivated"
    return (
        f"{agent.name}  {state}  for {whom}  {bounds(agent.workflows, 'workflow')}, "
        f"{bounds(agent.operations, 'operation')}"
    )
