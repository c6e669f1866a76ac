"""`./placet callback add harbour crm https://crm.example/placet`: where runs may call back."""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser
from django.db.models import Count, Q

from access.management.operator import Verbs, at_the_console, tenant_named
from common.clock import db_clock
from workflows.actions.callbacks import (
    callback_named,
    deactivate_callback,
    register_callback,
    rotate_callback_secret,
)
from workflows.actions.sending_again import AT_ONCE, send_given_up_again
from workflows.enums import CallStatus
from workflows.models import CallbackCall, CallbackEndpoint


class Command(Verbs):
    help = "Destinations of signed callbacks: add, rotate, deactivate, again, list. A secret is shown once."

    def verbs(self, add: Callable[..., CommandParser]) -> None:
        _secret(add("add", self._add, "a new destination, with its secret", "tenant", "name", "url"))
        rotate = add(
            "rotate", self._rotate, "a new secret; the old one signs on for a while", "tenant", "name"
        )
        rotate.add_argument("--overlap-hours", type=float, default=24)
        _secret(rotate)
        end = add("deactivate", self._end, "call nobody there any more, for good", "tenant", "name")
        end.add_argument("--why", default="")
        again = add("again", self._again, "send again what was given up, the oldest first", "tenant", "name")
        again.add_argument("--run", type=UUID, help="Of this run alone.")
        add("list", self._list, "all of a tenant, what waits, and what was given up", "tenant")

    def _add(self, options: dict[str, Any]) -> str:
        secret, _ = register_callback(
            tenant_id=tenant_named(options["tenant"]).pk, name=options["name"], url=options["url"],
            secret=_given(options), by=at_the_console(), clock=db_clock,
        )  # fmt: skip
        return _say(secret, options)

    def _rotate(self, options: dict[str, Any]) -> str:
        secret = rotate_callback_secret(
            endpoint=_named(options), overlap=timedelta(hours=options["overlap_hours"]), secret=_given(options),
            by=at_the_console(), clock=db_clock,
        )  # fmt: skip
        return _say(secret, options)

    def _end(self, options: dict[str, Any]) -> str:
        deactivate_callback(
            endpoint=_named(options), by=at_the_console(), clock=db_clock, reason=options["why"]
        )
        return f"{options['name']} is called no more."

    def _again(self, options: dict[str, Any]) -> str:
        count = send_given_up_again(
            endpoint=_named(options), by=at_the_console(), clock=db_clock, run_id=options["run"]
        )
        return f"Calls that are sent again: {count}. At most {AT_ONCE} go at a time."

    def _list(self, options: dict[str, Any]) -> str:
        tenant = tenant_named(options["tenant"])
        waiting = Count("calls", filter=Q(calls__status=CallStatus.PENDING))
        dead = Count("calls", filter=Q(calls__status=CallStatus.DEAD))
        rows = CallbackEndpoint.objects.filter(tenant=tenant).annotate(waiting=waiting, dead=dead)
        lines = [_line(row) for row in rows.order_by("name")]
        calls = CallbackCall.objects.filter(tenant=tenant, status=CallStatus.DEAD).order_by("-ended_at")[:20]
        given_up = [f"  given up {call.run_id}  {call.run_status}  {call.problem}" for call in calls]
        return "\n".join([*lines, *given_up])


def _named(options: dict[str, Any]) -> CallbackEndpoint:
    return callback_named(tenant_named(options["tenant"]).pk, options["name"])


def _line(row: Any) -> str:
    state = "gone" if row.gone else "ended" if row.deactivated_at else "failing" if row.failures else "active"
    last = row.last_delivered_at or "never"
    return f"{row.name}  {state}  {row.url}  last {last}  {row.waiting} waiting  {row.dead} given up"


def _secret(parser: CommandParser) -> None:
    parser.add_argument(
        "--secret-file",
        default="",
        help="A file with the secret that the receiver has chosen; - reads it from stdin.",
    )


def _given(options: dict[str, Any]) -> str:
    """Never an argument of the command, which others on the machine could read in the list of processes."""
    name = options["secret_file"]
    if not name:
        return ""
    return (sys.stdin.read() if name == "-" else Path(name).read_text()).strip()


def _say(secret: str, options: dict[str, Any]) -> str:
    shown = "the one that you gave" if options["secret_file"] else f"{secret} (shown this once)"
    return f"Secret: {shown}"
