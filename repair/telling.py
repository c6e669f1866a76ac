"""Telling people that something has stopped: gathered by workflow and cause, one message for each window.

Packets that open are heard of from the history. The first of a kind waits some seconds for the rest of its storm; what
comes later is told once a window, with its number. The link leads to the list, narrowed to them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from access.audience import Audience, reached
from access.enums import Role
from access.models import Group
from audit.models import Event
from common.clock import Clock, db_clock
from common.display import visible
from common.rounds import each
from common.tx import action
from notify.actions.telling import Fact, Told, close, tell
from notify.hooks import Standing, Teller
from notify.kinds import Kind, register
from repair.enums import PacketStatus
from repair.models import RepairPacket
from repair.models_alerts import StopAlert
from repair.selectors import UNKNOWN_CAUSES
from repair.tables import cause_words
from workflows.screens.words import title_of

SUBJECT: Final = "stop_alert"
OPENED: Final = "packet.opened"
ENDED: Final = frozenset({"packet.resolved"})
COLLECT: Final = timedelta(seconds=20)
"""So long the first of a kind waits for others: what breaks at once is told at once."""
WINDOW: Final = timedelta(minutes=15)
URGENT: Final = frozenset({*UNKNOWN_CAUSES, "late_effect", "command_digest", "command_signature"})
STOPPED: Final = register(
    Kind(
        "stopped",
        "Something has stopped",
        "runs have stopped and need a person (to the group that owns them, else to operators)",
        asks=True,
        mail=True,
        chat=True,
    )
)
Kindred = tuple[str, str]
"""A workflow and a cause."""


def tell_of(tenant_id: UUID, events: Sequence[Event]) -> None:
    """Count what opened; where the last open packet of a kind has ended, nobody needs to look any more."""
    packets = _packets(tenant_id, events)
    opened = [
        packets[event.subject_id] for event in events if event.kind == OPENED and event.subject_id in packets
    ]
    now = db_clock()
    for kindred, number in Counter(map(_kindred, opened)).items():
        first = next(packet for packet in opened if _kindred(packet) == kindred)
        _count(tenant_id, kindred, number, first.owner, now)
    ended = {_kindred(packets[event.subject_id]) for event in events
             if event.kind in ENDED and event.subject_id in packets}  # fmt: skip
    for kindred in sorted(ended):
        _close_if_over(tenant_id, kindred, now)


def _packets(tenant_id: UUID, events: Sequence[Event]) -> dict[UUID, RepairPacket]:
    ids = {event.subject_id for event in events}
    found = RepairPacket.objects.filter(tenant_id=tenant_id, pk__in=ids).select_related("run")
    return {packet.pk: packet for packet in found}


def _kindred(packet: RepairPacket) -> Kindred:
    return packet.run.workflow, packet.cause


def _count(tenant_id: UUID, kindred: Kindred, number: int, owner: str, now: datetime) -> None:
    workflow, cause = kindred
    alerts = StopAlert.objects.select_for_update(of=("self",), no_key=True)
    alert = alerts.filter(tenant_id=tenant_id, workflow=workflow, cause=cause, closed_at=None).first()
    if alert is None:
        alert = StopAlert(
            tenant_id=tenant_id, workflow=workflow, cause=cause, owner=owner, opened_at=now, due_at=now + COLLECT
        )  # fmt: skip
    alert.stopped += number
    alert.save()


def _close_if_over(tenant_id: UUID, kindred: Kindred, now: datetime) -> None:
    if kindred in _kinds_with_open(tenant_id, [kindred]):
        return
    alerts = StopAlert.objects.filter(tenant_id=tenant_id, workflow=kindred[0], cause=kindred[1])
    ids = list(alerts.values_list("pk", flat=True))
    close(tenant_id=tenant_id, subject_type=SUBJECT, subject_ids=ids, kinds=[STOPPED], now=now)


def _kinds_with_open(tenant_id: UUID, kinds: Iterable[Kindred]) -> set[Kindred]:
    wanted = set(kinds)
    found = RepairPacket.objects.filter(
        tenant_id=tenant_id, status__in=PacketStatus.open_states, cause__in={cause for _, cause in wanted},
        run__workflow__in={workflow for workflow, _ in wanted},
    )  # fmt: skip
    return set(found.values_list("run__workflow", "cause").distinct()) & wanted


# -- what is due ----------------------------------------------------------------------------------------------------


def tell_gathered(clock: Clock) -> int:
    """Tell of the kinds whose window is over; returns how many."""
    due = StopAlert.objects.filter(due_at__lte=clock()).order_by("due_at", "pk")
    return each(
        list(due.values_list("pk", flat=True)[:200]), lambda pk: _tell_one(pk, clock=clock), what="stops"
    )


@action
def _tell_one(alert_id: UUID, *, clock: Clock) -> bool:
    """What came since, as one message; a window without any ends it."""
    rows = StopAlert.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    alert = rows.filter(pk=alert_id, due_at__isnull=False).first()
    now = clock()
    if alert is None or alert.due_at is None or alert.due_at > now:
        return False
    new = alert.stopped - alert.told
    if new:
        alert.messages += 1
        tell(_message(alert, new), now=now)
        alert.told, alert.due_at = alert.stopped, now + WINDOW
    else:
        alert.due_at, alert.closed_at = None, now
    alert.save()
    return True


def _message(alert: StopAlert, new: int) -> Told:
    runs = "1 run" if new == 1 else f"{new} runs"
    more = "" if alert.messages == 1 else " more"
    title, cause = title_of(alert.workflow), cause_words(alert.cause)
    facts = [
        Fact("Workflow", alert.workflow),
        Fact("Cause", alert.cause),
        Fact("Owner", visible(alert.owner)),
    ]
    if alert.messages > 1:
        facts.append(Fact("Altogether", str(alert.stopped)))
    where = urlencode({"workflow": alert.workflow, "q": alert.cause})
    return Told(
        kind=STOPPED, tenant_id=alert.tenant_id, subject_type=SUBJECT, subject_id=alert.pk, version=alert.messages,
        lead=f"{title}: {runs}{more} stopped. {cause}.", href=f"{reverse('repair:packets')}?{where}",
        audience=audience_of(alert.tenant_id, alert.owner), facts=facts, urgent=alert.cause in URGENT,
    )  # fmt: skip


def audience_of(tenant_id: UUID, owner: str) -> Audience:
    """The group of the owner's name; where there is none, or nobody is in it, the operators."""
    group = Group.objects.filter(tenant_id=tenant_id, name=owner).first()
    if group is not None and reached(tenant_id, Audience(group_id=group.pk)):
        return Audience(group_id=group.pk)
    return Audience(role=Role.OPERATOR)


def standings(tenant_id: UUID, ids: Collection[UUID]) -> Mapping[UUID, Standing]:
    """A kind waits while a packet of it is open. Two statements."""
    alerts = list(StopAlert.objects.filter(tenant_id=tenant_id, pk__in=ids))
    open_ = _kinds_with_open(tenant_id, [(alert.workflow, alert.cause) for alert in alerts])
    return {
        alert.pk: Standing(waits=True) if (alert.workflow, alert.cause) in open_
        else Standing(waits=False, says="All of them are settled")
        for alert in alerts
    }  # fmt: skip


TELLER: Final = Teller(SUBJECT, SUBJECT, frozenset({OPENED, *ENDED}), tell_of, standings, due=tell_gathered)
