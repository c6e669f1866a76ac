"""Whose case it is: take it, give it back, route it to somebody else or to a queue."""

from datetime import datetime
from typing import Final
from uuid import UUID

from access.enums import Role
from access.models import Group, Membership
from audit.actors import Actor
from common.display import visible
from common.errors import InvalidInput
from repair.choices import rules
from repair.choices.case import Case
from repair.choices.declared import Choice, DryRun, Typed
from repair.choices.forms import QuietForm, RouteForm
from repair.enums import PacketStatus
from repair.models import RepairPacket

REPAIRING: Final = [Role.OPERATOR, Role.OWNER, Role.ADMIN]


class CannotRoute(InvalidInput):
    """Whoever is meant is not here, or may not repair: choose somebody of the repair desk, or a group."""

    code = "cannot_route"


def _take(packet: RepairPacket, typed: Typed, by: Actor, now: datetime) -> str:
    if packet.status == PacketStatus.OPEN:
        packet.take()
    packet.assignee_id = by.user_id
    return "It is yours now."


def _taken(case: Case, typed: Typed | None) -> DryRun:
    before = case.packet.assignee
    changes = [
        f"{before} is told by the page that you have it now."
        if before is not None
        else "Everybody sees that you work on it."
    ]
    return DryRun((*changes, "Its clock begins anew; nothing else changes."))


def _give_back(packet: RepairPacket, typed: Typed, by: Actor, now: datetime) -> str:
    if packet.status == PacketStatus.IN_PROGRESS:
        packet.give_back()
    packet.assignee = None
    return "It is open for everybody again."


def _given_back(case: Case, typed: Typed | None) -> DryRun:
    return DryRun(("It is open for everybody again, and its clock begins anew.",))


def _route(packet: RepairPacket, typed: Typed, by: Actor, now: datetime) -> str:
    kind, _, ident = typed["to"].partition(":")
    if packet.status == PacketStatus.IN_PROGRESS:
        packet.give_back()
    if kind == "user":
        row = Membership.objects.filter(
            tenant_id=packet.tenant_id, user_id=UUID(ident), is_active=True, user__is_active=True,
            roles__overlap=REPAIRING,
        ).select_related("user").first()  # fmt: skip
        if row is None:
            raise CannotRoute
        packet.assignee = row.user
        return f"It waits for {row.user} now."
    group = Group.objects.filter(tenant_id=packet.tenant_id, pk=UUID(ident)).first()
    if group is None:
        raise CannotRoute
    packet.owner, packet.assignee = group.name, None
    return f"It waits in the queue {visible(group.name)} now."


def _routed(case: Case, typed: Typed | None) -> DryRun:
    return DryRun((
        "The case gets another owner, and its clock begins anew.",
        "Nothing of the run changes; whoever it waits for finds it in the list of what stopped.",
    ))  # fmt: skip


TAKE: Final = Choice(
    "take", "Take the case", "So that two people do not work on the same thing.", "flag", rules.TAKE, _taken, QuietForm,
    inside=_take, in_bulk=True,
)  # fmt: skip
GIVE_BACK: Final = Choice(
    "give_back", "Give it back", "Somebody else may go on with it.", "undo", rules.GIVE_BACK, _given_back, QuietForm,
    inside=_give_back,
)  # fmt: skip
ROUTE: Final = Choice(
    "route", "Route it to somebody else", "To a person of the repair desk, or to a group as a queue.", "users",
    rules.ROUTE, _routed, RouteForm, inside=_route, button="Route it",
)  # fmt: skip
FAMILY: Final = (TAKE, GIVE_BACK, ROUTE)
