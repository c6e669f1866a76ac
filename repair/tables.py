"""What stopped, as rows: formatting only."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.urls import reverse

from common import spans
from common.display import visible
from common.states_ui import StateUi, Tone
from repair.models import RepairPacket
from repair.selectors import ASK_AGAIN, HELD, PERSON, STALLED, UNKNOWN, section_of
from workflows.enums import CommandStatus, HoldReason
from workflows.models import Command
from workflows.screens.words import code_words, step_words, then, title_of

# Each section has its own tone; unknown is violet and is no failure, held is hatched and is no fault.
SECTION_UI: Final[Mapping[str, StateUi]] = {
    UNKNOWN: StateUi("unknown", "unknown", "Outcome unknown"),
    PERSON: StateUi("bad", "wrench", "Needs a person"),
    ASK_AGAIN: StateUi("wait", "undo", "Expired or void"),
    HELD: StateUi("held", "pause", "Held"),
    STALLED: StateUi("wait", "hourglass", "Stalled"),
}
SECTION_SAYS: Final[Mapping[str, str]] = {
    UNKNOWN: "Sent, and nobody knows yet whether it happened. Not counted as failed, and never sent again blindly.",
    PERSON: "It does not go on by itself: a person asks anew for what is wanted, or cancels the run.",
    ASK_AGAIN: "Nothing was sent. It can be asked for anew, as a new event, or the run be cancelled.",
    HELD: "Approved and held back. Nothing is lost, nothing is sent, and it goes on when the hold ends.",
    STALLED: "It has stood still for longer than it should.",
}
CAUSES: Final[Mapping[str, str]] = {
    "action_in_progress": "The same is being done already",
    "already_done": "The very same was done before",
    "approval_expired": "Nobody decided in time",
    "approval_lost": "Nobody is asked any more",
    "changes_requested": "Changes were asked for",
    "command_dead": "Given up after its tries",
    "command_digest": "Contract is not what was approved",
    "command_signature": "Approval lacks a signature",
    "command_earlier_effect": "Something like it happened before",
    "command_key_reused": "Provider knows the key otherwise",
    "command_lapsed": "Time to execute was over",
    "command_pin": "Record changed after approval",
    "command_policy": "Policy changed after approval",
    "command_refused": "Provider refused",
    "command_restored": "In doubt since a backup was restored",
    "command_unknown": "No complete answer",
    "credential_refused": "A source refused our credential",
    "data_not_supplied": "Data did not come in time",
    "late_effect": "It may have happened twice",
    "low_confidence": "The automation was not sure",
    "nobody_eligible": "Nobody may decide this",
    "nobody_looked": "Nobody looked in time",
    "proposal_invalidated": "Approval no longer holds",
    "quarantined": "A step took its worker down",
    "rate_limited": "A source asks us to come later",
    "record_gone": "A record is gone",
    "restored": "May be done since the backup",
    "retries_exhausted": "Tried as often as allowed",
    "source_down": "A source does not answer",
    "stage_broke": "A stage raised an error",
    "stage_gone": "A stage was taken out",
    "stalled": "Should have moved by now",
    "turn_never_came": "An earlier event is still worked on",
}
# How the last thing that happened to the step settled what had stopped there.
SETTLED_BY: Final[Mapping[str, str]] = {
    "approved": "A person approved it.",
    "cancelled": "The run was cancelled.",
    "confirmed": "The provider confirmed that it happened.",
    "dead": "It was given up after its tries; nothing happened.",
    "did_not_happen": "It turned out that nothing happened.",
    "proposed": "It was proposed anew.",
    "refused": "The provider refused it; nothing happened.",
    "rejected": "A person rejected it; nothing was sent.",
    "superseded": "A newer version took its place.",
    "went_on": "It went on by itself.",
    "manned": "Somebody who may decide is there.",
    "void": "It was never sent; nothing happened.",
    "withdrawn": "It was taken back; nothing was sent.",
}
SETTLED: Final = StateUi("ok", "check-circle", "Settled")


@dataclass(frozen=True, slots=True)
class StoppedRow:
    """One packet, or one command that is held or unknown without one."""

    id: UUID
    href: str
    title: str
    about: str
    run_id: UUID
    run_href: str
    cause: str
    summary: str
    ui: StateUi
    step: str
    owner: str
    since: datetime
    age: str
    until: datetime | None
    then: str
    overdue: Tone
    raised: int
    status: str
    ended_at: datetime | None = None
    """When it was settled; then ``settled`` says how, and there is nothing to wait for."""
    settled: str = ""


def cause_words(cause: str) -> str:
    return CAUSES.get(cause) or code_words(visible(cause)).capitalize()


def settled_words(resolution: str) -> str:
    """How a stop was settled, as a sentence."""
    return SETTLED_BY.get(resolution) or f"It went on, or ended, as: {code_words(visible(resolution))}."


def packet_row(packet: RepairPacket, target: str, now: datetime) -> StoppedRow:
    """``packet`` comes from `repair.selectors.packets`, so it knows its section."""
    run, over = packet.run, packet.ended_at is not None
    return StoppedRow(
        id=packet.pk, href=reverse("repair:packet", args=[packet.pk]), title=title_of(run.workflow),
        about=visible(target or f"{run.source_system} {run.source_event_id}"), run_id=run.pk,
        run_href=reverse("workflows:run", args=[run.pk]), cause=cause_words(packet.cause),
        summary=visible(packet.summary), ui=SETTLED if over else SECTION_UI[packet.section],  # type: ignore[attr-defined]
        step=step_words(packet.step), owner=visible(packet.owner), since=packet.opened_at,
        age=spans.span((now - packet.opened_at).total_seconds()),
        until=None if over else packet.waiting_until, then="" if over else then(packet.on_expiry),
        overdue="bad" if packet.waiting_until <= now else "mute", raised=packet.escalations, status=packet.status,
        ended_at=packet.ended_at, settled=settled_words(packet.resolution) if over else "",
    )  # fmt: skip


def command_row(command: Command, now: datetime) -> StoppedRow:
    """A command without a packet leads to its run."""
    run, since = command.run, command.last_sent_at or command.created_at
    held = command.status == CommandStatus.HELD
    cause = HoldReason(command.hold_reason).label if held else "No complete answer"
    return StoppedRow(
        id=command.pk, href=reverse("workflows:run", args=[run.pk]), title=title_of(run.workflow),
        about=visible(command.target), run_id=run.pk, run_href=reverse("workflows:run", args=[run.pk]), cause=cause,
        summary="It goes on by itself when the hold ends." if held else "The provider is asked by itself.",
        ui=SECTION_UI[section_of(command)], step=step_words(command.step.key), owner="", since=since,
        age=spans.span((now - since).total_seconds()), until=run.waiting_until,
        then=then(run.on_expiry) if run.on_expiry else "", overdue="mute", raised=0, status="",
    )  # fmt: skip
