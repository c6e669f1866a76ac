"""`./placet endpoint add harbour tickets --workflow refund-triage --system helpdesk --automation intake`."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Count, Q

from access.management.operator import agent_named, at_the_console, tenant_named
from common.clock import db_clock
from common.errors import Refused
from common.models import Tenant
from workflows.actions.endpoints import create_endpoint, deactivate_endpoint, endpoint_named, rotate_secret
from workflows.models import Delivery, Endpoint
from workflows.webhooks import Names, Scheme


class Command(BaseCommand):
    help = "Endpoints for signed webhooks: add, rotate, deactivate, list. A secret is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        add = verbs.add_parser("add", help="a new endpoint, with its address and its secret")
        add.add_argument("tenant")
        add.add_argument("name")
        add.add_argument("--workflow", required=True)
        add.add_argument("--system", required=True, help="What the source of its events is called.")
        add.add_argument(
            "--automation", required=True, help="Which automation asks for what is delivered there."
        )
        add.add_argument(
            "--member", default="", help="The member of the body that is the input, as in `data`."
        )
        add.add_argument("--signature-header", default="", help="With it: HMAC-SHA-256 in this header.")
        add.add_argument(
            "--timestamp-header", default="x-timestamp", help="Where that one is sent, signed too."
        )
        _secret_argument(add)
        rotate = verbs.add_parser("rotate", help="a new secret; the old one counts a while longer")
        rotate.add_argument("tenant")
        rotate.add_argument("name")
        rotate.add_argument("--overlap-hours", type=float, default=24)
        _secret_argument(rotate)
        deactivate = verbs.add_parser("deactivate", help="take nothing more there, for good")
        deactivate.add_argument("tenant")
        deactivate.add_argument("name")
        deactivate.add_argument("--why", default="")
        listed = verbs.add_parser("list", help="all of a tenant, and what waits or is quarantined there")
        listed.add_argument("tenant")

    def handle(self, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        verbs = {"add": self._add, "rotate": self._rotate, "deactivate": self._end, "list": self._list}
        try:
            verbs[options["verb"]](tenant, options)
        except Refused as refusal:
            raise CommandError(refusal.message) from None

    def _add(self, tenant: Tenant, options: dict[str, Any]) -> None:
        agent = agent_named(tenant, options["automation"])
        if agent is None:
            raise CommandError(f"There is no automation {options['automation']!r}; `add_token` makes one.")
        secret, endpoint = create_endpoint(
            agent=agent, name=options["name"], workflow=options["workflow"], system=options["system"],
            names=_names(options), input_member=options["member"], secret=_given(options), by=at_the_console(),
            clock=db_clock,
        )  # fmt: skip
        self.stdout.write(f"{settings.PLACET_BASE_URL}/api/v1/hooks/{endpoint.address}")
        self._say_secret(secret, options)

    def _rotate(self, tenant: Tenant, options: dict[str, Any]) -> None:
        secret = rotate_secret(
            endpoint=endpoint_named(tenant.pk, options["name"]), secret=_given(options), by=at_the_console(),
            overlap=timedelta(hours=options["overlap_hours"]), clock=db_clock,
        )  # fmt: skip
        self._say_secret(secret, options)

    def _say_secret(self, secret: str, options: dict[str, Any]) -> None:
        shown = "the one that you gave" if options["secret_file"] else f"{secret} (shown this once)"
        self.stdout.write(f"Secret: {shown}")

    def _end(self, tenant: Tenant, options: dict[str, Any]) -> None:
        endpoint = endpoint_named(tenant.pk, options["name"])
        deactivate_endpoint(endpoint=endpoint, by=at_the_console(), reason=options["why"], clock=db_clock)
        self.stdout.write(f"{endpoint.name} takes nothing any more.")

    def _list(self, tenant: Tenant, options: dict[str, Any]) -> None:
        waiting = Count("deliveries", filter=Q(deliveries__outcome=None))
        quarantined = Count("deliveries", filter=Q(deliveries__outcome="quarantined"))
        rows = Endpoint.objects.filter(tenant=tenant).annotate(waiting=waiting, quarantined=quarantined)
        for row in rows.order_by("name"):
            state = "ended" if row.deactivated_at else "active"
            self.stdout.write(
                f"{row.name}  {state}  {row.workflow}  {row.scheme}  last {row.last_received_at or 'never'}"
                f"  {row.waiting} waiting  {row.quarantined} quarantined"
            )
        found = Delivery.objects.filter(tenant=tenant, outcome="quarantined").order_by("-received_at")[:20]
        for delivery in found:
            self.stdout.write(
                f"  quarantined {delivery.pk}  {delivery.received_at:%Y-%m-%d %H:%M}  {delivery.code}"
            )


def _secret_argument(parser: Any) -> None:
    parser.add_argument(
        "--secret-file",
        default="",
        help="A file with the secret that the sender has chosen; - reads it from stdin.",
    )


def _given(options: dict[str, Any]) -> str:
    """Never an argument of the command, which others on the machine could read in the list of processes."""
    name = options["secret_file"]
    if not name:
        return ""
    return (sys.stdin.read() if name == "-" else Path(name).read_text()).strip()


def _names(options: dict[str, Any]) -> Names:
    header = options["signature_header"].lower()
    return Names(Scheme.HMAC, header, options["timestamp_header"].lower()) if header else Names()
