"""Packets open and close by themselves: these are the hooks that `workflows` calls, inside its transactions."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from audit.actions import record
from audit.actors import Actor
from common.ids import new_id
from common.pipelined import Question
from common.prepared import Reading
from common.tx import require_transaction
from repair.enums import PacketStatus
from repair.models import RepairPacket
from workflows.hooks import Stop
from workflows.models import Run

LOOKED_AT_WITHIN = timedelta(hours=24)
LATE_EFFECT = "late_effect"
UNKNOWN_CAUSES = ("command_unknown", "command_key_reused", "command_restored")
"""Under which causes `workflows` reports an outcome that nobody knows."""


def open_packet(stop: Stop, by: Actor, at: datetime) -> None:
    """One open packet per run, step and cause: a second call raises the first once more."""
    require_transaction()
    packet = _open_packets(stop.run, stop.step).filter(cause=stop.cause).first()
    if packet is not None:
        _raise_again(packet, by=by, at=at)
        return
    packet = RepairPacket.objects.create(
        tenant_id=stop.run.tenant_id, run=stop.run, step=stop.step, cause=stop.cause, summary=stop.summary[:300],
        owner=stop.owner, command_id=stop.command_id, proposal_id=stop.proposal_id, wait_id=new_id(),
        waiting_until=at + LOOKED_AT_WITHIN, opened_at=at,
    )  # fmt: skip
    _record(packet, "packet.opened", by=by)


def _raise_again(packet: RepairPacket, *, by: Actor, at: datetime) -> None:
    """It stopped for the same cause once more. What one person said was about the requests before: it waits for no
    second any more.
    """
    before = packet.status
    if packet.status == PacketStatus.AWAITING_SECOND:
        packet.take()
    packet.escalations += 1
    packet.state_version += 1
    packet.waiting_until = at + LOOKED_AT_WITHIN
    packet.save(update_fields=["status", "escalations", "waiting_until", "state_version"])
    _record(packet, "packet.raised_again", by=by, before=before if before != packet.status else "")


def await_second(run: Run, command_id: UUID, by: Actor, at: datetime) -> None:
    """What nobody knows waits for a second person's word: a new wait, with a clock of its own."""
    require_transaction()
    unknown = RepairPacket.objects.filter(
        tenant_id=run.tenant_id, run=run, command_id=command_id, cause__in=UNKNOWN_CAUSES,
        status__in=(PacketStatus.OPEN, PacketStatus.IN_PROGRESS),
    )  # fmt: skip
    for packet in unknown.order_by("opened_at", "id"):
        before = packet.status
        packet.await_second()
        packet.wait_id, packet.waiting_until = new_id(), at + LOOKED_AT_WITHIN
        packet.state_version += 1
        packet.save(update_fields=["status", "wait_id", "waiting_until", "state_version"])
        _record(packet, "packet.awaiting_second", by=by, before=before)


def close_packets(run: Run, step: str, how: str, by: Actor, at: datetime) -> None:
    """What had stopped at this step goes on or has ended; without a step, everything of a run that has ended."""
    require_transaction()
    for packet in _CLOSED_BY_ITSELF.rows(
        run.tenant_id, run.pk, list(PacketStatus.open_states), LATE_EFFECT, step
    ):
        _resolve(packet, how, by=by, at=at)


def close_one(tenant_id: UUID, packet_id: UUID, how: str, *, by: Actor, at: datetime) -> bool:
    """One packet whose run is locked; False where it has ended already."""
    require_transaction()
    packet = RepairPacket.objects.filter(
        tenant_id=tenant_id, pk=packet_id, status__in=PacketStatus.open_states
    ).first()
    if packet is None:
        return False
    _resolve(packet, how, by=by, at=at)
    return True


def _resolve(packet: RepairPacket, how: str, *, by: Actor, at: datetime) -> None:
    before = packet.status
    packet.resolve(at=at, how=how[:60])
    packet.state_version += 1
    packet.save()
    _record(packet, "packet.resolved", by=by, before=before)


# That something may have happened twice is no question of how the run goes on: only a person closes it.
_CLOSED_BY_ITSELF = Reading(
    RepairPacket,
    "WHERE r.tenant_id = %s AND r.run_id = %s AND r.status = ANY(%s::text[]) AND r.cause <> %s"
    " AND %s::text IN ('', r.step) ORDER BY r.opened_at, r.id",
)
_WITH_PACKETS = """
    SELECT run_id FROM repair_repairpacket WHERE run_id = ANY(%s::uuid[]) AND status = ANY(%s::text[])
"""


def runs_with_packets(runs: Collection[UUID]) -> Question[set[UUID]]:
    """Those of these runs that have an open packet."""
    parameters = [list(runs), list(PacketStatus.open_states)]
    return Question(_WITH_PACKETS, parameters, lambda rows: {run for (run,) in rows})


def _open_packets(run: Run, step: str) -> Any:
    packets = RepairPacket.objects.filter(
        tenant_id=run.tenant_id, run=run, status__in=PacketStatus.open_states
    )
    return (packets.filter(step=step) if step else packets).order_by("opened_at", "id")


def _record(packet: RepairPacket, kind: str, *, by: Actor, before: str = "") -> None:
    record(
        by=by, kind=kind, tenant_id=packet.tenant_id, subject_type="packet", subject_id=packet.pk,
        run_id=packet.run_id, from_state=before, to_state=packet.status, reason=packet.cause,
        body={"step": packet.step, "resolution": packet.resolution},
    )  # fmt: skip
