"""Packets open and close by themselves: these are the hooks that `workflows` calls, inside its transactions."""

from datetime import datetime, timedelta
from typing import Any

from audit.actions import record
from audit.actors import Actor
from common.ids import new_id
from common.tx import require_transaction
from repair.enums import PacketStatus
from repair.models import RepairPacket
from workflows.hooks import Stop
from workflows.models import Run

LOOKED_AT_WITHIN = timedelta(hours=24)


def open_packet(stop: Stop, by: Actor, at: datetime) -> None:
    """One open packet per run, step and cause: a second call raises the first once more."""
    require_transaction()
    packet = _open_packets(stop.run, stop.step).filter(cause=stop.cause).first()
    if packet is not None:
        packet.escalations += 1
        packet.waiting_until = at + LOOKED_AT_WITHIN
        packet.save(update_fields=["escalations", "waiting_until"])
        _record(packet, "packet.raised_again", by=by)
        return
    packet = RepairPacket.objects.create(
        tenant_id=stop.run.tenant_id, run=stop.run, step=stop.step, cause=stop.cause, summary=stop.summary[:300],
        owner=stop.owner, command_id=stop.command_id, proposal_id=stop.proposal_id, wait_id=new_id(),
        waiting_until=at + LOOKED_AT_WITHIN, opened_at=at,
    )  # fmt: skip
    _record(packet, "packet.opened", by=by)


def close_packets(run: Run, step: str, how: str, by: Actor, at: datetime) -> None:
    """What had stopped at this step goes on or has ended; without a step, everything of a run that has ended."""
    require_transaction()
    for packet in _open_packets(run, step):
        before = packet.status
        packet.resolve(at=at, how=how[:60])
        packet.save()
        _record(packet, "packet.resolved", by=by, before=before)


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
