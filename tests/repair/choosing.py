"""Short verbs for the tests of choices: open the page of one, send its form, and stopped runs of several kinds."""

from dataclasses import dataclass
from typing import Any

from django.test import Client
from django.urls import reverse

from access.enums import Role
from access.models import Membership, User
from common.clock import db_clock
from repair.choices.case import Case, load
from repair.choices.offering import offer_of
from repair.choices.registry import CHOICES
from repair.models import RepairMove, RepairPacket
from tests.factories import make_user
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, age, as_superuser, fresh
from tests.workflows.test_engine_waits import ASK
from tests.workflows.toy import NOTHING_CAME
from workflows.actions.overdue import handle_overdue
from workflows.authoring import Observation
from workflows.models import Command, Run
from workflows.worker.recover import void_lapsed

CAUSE = "The provider was down or slow"
REFUSED = Observation(sent=True, status=422, detail="over the limit", code="over_limit")


@dataclass
class Operator:
    """A person of the repair desk in front of the pages."""

    desk: Desk
    user: User
    client: Client

    def case(self, packet: RepairPacket) -> Case:
        membership = Membership.objects.get(tenant=self.desk.tenant, user=self.user)
        return load(self.desk.tenant.pk, packet.pk, membership, db_clock())

    def seen(self, packet: RepairPacket) -> str:
        return self.case(packet).seen.text

    def page(self, packet: RepairPacket, code: str) -> Any:
        answer: Any = self.client.get(address(packet, code))
        return answer

    def choose(self, packet: RepairPacket, code: str, *, seen: str | None = None, **typed: str) -> Any:
        """Send the form, with words and a cause that are good enough for every choice."""
        data = {
            "seen": self.seen(packet) if seen is None else seen,
            "words": "I looked at it.",
            "cause": CAUSE,
        }
        answer: Any = self.client.post(address(packet, code), data | {"decision": "do"} | typed)
        return answer

    def offered(self, packet: RepairPacket) -> dict[str, str]:
        """Every choice with its code of refusal; empty where it is offered."""

        facts = self.case(packet).facts
        return {choice.code: offer_of(choice, facts, packet).code for choice in CHOICES}


def address(packet: RepairPacket, code: str) -> str:
    return reverse("repair:choice", args=[packet.pk, code])


def operator(desk: Desk, name: str = "opal", roles: Any = (Role.OPERATOR,)) -> Operator:
    user = make_user(desk.tenant, name, roles=[*roles])
    client = Client()
    client.force_login(user)
    return Operator(desk, user, client)


def now(packet: RepairPacket) -> RepairPacket:
    return RepairPacket.objects.get(pk=packet.pk)


def packet_of(run_id: Any, cause: str = "") -> RepairPacket:
    found = RepairPacket.objects.filter(run_id=run_id)
    return (found.filter(cause=cause) if cause else found).order_by("-opened_at", "-pk")[0]


def moves(packet: RepairPacket) -> list[tuple[str, str, str]]:
    rows = RepairMove.objects.filter(packet=packet).select_related("user")
    return [(row.user.username, row.choice, row.refused) for row in rows]


# -- stopped runs ---------------------------------------------------------------------------------------------------


def unknown(desk: Desk, order: str = "1042", *, settled: bool = True) -> tuple[Command, RepairPacket]:
    """A request went out, and nothing came back; the provider's time to settle is over."""
    command = desk.approved(order=order)
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    if settled:
        age(command.run_id, 45, "workflows_command")
        later(command)
    return fresh(command), packet_of(command.run_id)


def later(command: Command) -> None:
    """The next look-up is not due yet."""

    as_superuser(
        "UPDATE workflows_command SET due_at = now() + interval '5 minutes' WHERE id = %s", command.pk
    )


def refused(desk: Desk, order: str = "1043") -> tuple[Command, RepairPacket]:
    command = desk.approved(order=order)
    desk.till.answers = [REFUSED]
    desk.work()
    return fresh(command), packet_of(command.run_id)


def lapsed(desk: Desk, order: str = "1044") -> tuple[Command, RepairPacket]:
    """Approved, and not executed in time."""
    command = desk.approved(order=order)
    age(command.run_id, 700, "approvals_proposal")
    assert void_lapsed(by=SWEEP, clock=db_clock) == 1
    return fresh(command), packet_of(command.run_id)


def not_supplied(desk: Desk, order: str = "1045") -> tuple[Run, RepairPacket]:
    """A step asked for data, and nobody supplied it in time."""
    desk.till.stages["judge"] = ASK
    run = desk.start(order=order)
    desk.advance()
    age(run.pk, 2 * 3600, "workflows_step", "workflows_run")
    assert handle_overdue(by=SWEEP, clock=db_clock) == 1
    return Run.objects.get(pk=run.pk), packet_of(run.pk)
