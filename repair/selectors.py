"""Reads of what stopped: open packets by section, and actions that are held or unknown without a packet yet.

Lists and counters come from the same conditions, so that a number is always the length of its list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Case, CharField, Count, Exists, OuterRef, Q, QuerySet, Subquery, Value, When

from common.errors import NotFound
from repair.enums import PacketStatus
from repair.models import RepairPacket
from workflows.enums import CommandStatus
from workflows.models import Command

UNKNOWN: Final = "unknown"
PERSON: Final = "person"
ASK_AGAIN: Final = "again"
HELD: Final = "held"
STALLED: Final = "stalled"
SECTIONS: Final = (UNKNOWN, PERSON, ASK_AGAIN, HELD, STALLED)

UNKNOWN_CAUSES: Final = ("command_unknown", "command_key_reused")
ASK_AGAIN_CAUSES: Final = (
    "command_lapsed", "command_policy", "command_pin", "command_digest", "command_signature",
    "approval_expired", "proposal_invalidated",
)  # fmt: skip
STALLED_CAUSES: Final = ("stalled", "nobody_looked", "turn_never_came")


def class_of(cause: str) -> str:
    """The section that a packet's cause alone leads to."""
    for section, causes in (
        (UNKNOWN, UNKNOWN_CAUSES),
        (ASK_AGAIN, ASK_AGAIN_CAUSES),
        (STALLED, STALLED_CAUSES),
    ):
        if cause in causes:
            return section
    return PERSON


# The first that applies: what nobody knows comes before why somebody was called.
_SECTION: Final = Case(
    When(Q(command_status=CommandStatus.UNKNOWN) | Q(cause__in=UNKNOWN_CAUSES), then=Value(UNKNOWN)),
    When(command_status=CommandStatus.HELD, then=Value(HELD)),
    When(cause__in=ASK_AGAIN_CAUSES, then=Value(ASK_AGAIN)),
    When(cause__in=STALLED_CAUSES, then=Value(STALLED)),
    default=Value(PERSON),
    output_field=CharField(),
)
_ENDLESS: Final = {CommandStatus.UNKNOWN: UNKNOWN, CommandStatus.HELD: HELD}


@dataclass(frozen=True, slots=True)
class Counts:
    """How many stand in each section."""

    packets: Mapping[str, int]
    bare: Mapping[str, int]

    def of(self, section: str) -> int:
        return self.packets.get(section, 0) + self.bare.get(section, 0)

    @property
    def total(self) -> int:
        return sum(self.of(section) for section in SECTIONS)


Packets = QuerySet[Any]
"""Packets with ``section`` and ``command_status``, as :func:`packets` makes them."""


def packets(tenant_id: UUID) -> Packets:
    """A tenant's packets, each with its command's status and its section."""
    command = Command.objects.filter(tenant_id=OuterRef("tenant_id"), pk=OuterRef("command_id"))
    found = RepairPacket.objects.filter(tenant_id=tenant_id).select_related("run")
    return found.annotate(command_status=Subquery(command.values("status")[:1])).annotate(section=_SECTION)


def open_packets(tenant_id: UUID) -> Packets:
    return packets(tenant_id).filter(status__in=PacketStatus.open_states)


def bare_commands(tenant_id: UUID) -> QuerySet[Command]:
    """Commands that are held or unknown and that no open packet speaks of."""
    spoken_of = RepairPacket.objects.filter(
        tenant_id=tenant_id, command_id=OuterRef("pk"), status__in=PacketStatus.open_states
    )
    found = Command.objects.filter(tenant_id=tenant_id, status__in=list(_ENDLESS))
    return found.filter(~Exists(spoken_of)).select_related("run", "step")


def section_of(command: Command) -> str:
    return _ENDLESS[CommandStatus(command.status)]


def statuses_of(section: str) -> list[str]:
    """The states of a command without a packet that belong to a section; none for most."""
    return [status for status, name in _ENDLESS.items() if name == section]


def counts(tenant_id: UUID) -> Counts:
    """Two queries, however much has stopped."""
    stopped = open_packets(tenant_id).order_by().values_list("section").annotate(n=Count("pk"))
    bare = bare_commands(tenant_id).order_by().values_list("status").annotate(n=Count("pk"))
    return Counts(dict(stopped), {_ENDLESS[CommandStatus(status)]: n for status, n in bare})


def open_count(tenant_id: UUID) -> int:
    """The number beside *Repair* in the navigation, the length of the desk's list: one query, it is on every page."""
    stopped = RepairPacket.objects.filter(tenant_id=tenant_id, status__in=PacketStatus.open_states)
    bare = bare_commands(tenant_id).order_by()
    return stopped.values_list("pk").union(bare.values_list("pk"), all=True).count()


def get_packet(tenant_id: UUID, packet_id: UUID) -> RepairPacket:
    """Raises NotFound, for another tenant's packet too."""
    packet: RepairPacket | None = packets(tenant_id).filter(pk=packet_id).first()
    if packet is None:
        raise NotFound
    return packet


def packets_of_run(tenant_id: UUID, run_id: UUID) -> list[RepairPacket]:
    """Every packet of a run, the open ones first."""
    found = packets(tenant_id).filter(run_id=run_id).order_by("-opened_at", "-pk")
    return sorted(found, key=lambda packet: packet.status not in PacketStatus.open_states)


def same_key_commands(command: Command) -> list[Command]:
    """Other commands of the tenant for the same business key, newest first."""
    others = Command.objects.filter(tenant_id=command.tenant_id, business_key=command.business_key)
    return list(others.exclude(pk=command.pk).order_by("-created_at")[:20])
