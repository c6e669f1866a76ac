"""One packet as a page: the document of `repair.packet`, with the addresses and looks that only a page has.

Names of business things are shown, personal values by the reader's role.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse

from access.models import Membership
from access.policies import can_role
from approvals.policies import SEES_PERSONAL
from audit.readers import may_read_history
from audit.tables import EventRow, event_rows
from common.disclosure import Recipient
from common.display import visible
from common.states_ui import StateUi
from repair.choices import Choices, offered
from repair.incidents.ways import alike_packet
from repair.models import RepairPacket
from repair.packet.case import Case, case_of
from repair.packet.document import document_of
from repair.packet.execution import code_of, late_effect
from repair.packet.known import Point, known, not_known, sentence
from repair.packet.runbook import RunbookStep, runbook_of, step_for
from repair.selectors import packets_of_run
from repair.tables import StoppedRow, cause_words, packet_row, settled_words
from workflows.actions.reading import READERS
from workflows.enums import CommandStatus
from workflows.models import Command
from workflows.screens.steps import CommandCard, command_card
from workflows.screens.words import step_words, title_of

C = CommandStatus


@dataclass(frozen=True, slots=True)
class Related:
    """A row that belongs to the packet, with its state."""

    name: str
    href: str
    text: str
    thing: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class SimilarRow:
    """Another packet with the same cause and operation, and how it ended."""

    href: str
    at: datetime
    status: str
    how: str


@dataclass(frozen=True, slots=True)
class PacketScreen:
    """Everything on the page of one packet."""

    row: StoppedRow
    sentence: str
    because: str
    ui: StateUi
    cause: str
    cause_code: str
    run_id: UUID
    workflow: str
    step: str
    step_place: str
    ended_at: datetime | None
    choices: Choices
    by_itself: str
    known: tuple[Point, ...]
    unknown: tuple[Point, ...]
    command: CommandCard | None
    fields: tuple[tuple[str, str], ...]
    approval: tuple[tuple[str, str], ...]
    digest: str
    view_digest: str
    proposal_href: str
    last_good: EventRow | None
    related: tuple[Related, ...]
    similar: tuple[SimilarRow, ...]
    in_common: str
    history_href: str
    runbook: RunbookStep | None
    runbook_href: str
    alike_href: str
    document: Mapping[str, Any]
    """The same as is exported, for this reader."""


def packet_screen(packet: RepairPacket, membership: Membership, now: datetime) -> PacketScreen:
    """``packet`` comes from `repair.selectors.get_packet`."""
    case, choices = case_of(packet), offered(packet, membership, now)
    to = Recipient(packet.tenant_id, can_role(membership, *SEES_PERSONAL))
    document = document_of(case, to, now, choices=choices, names=True)
    row = packet_row(packet, case.proposal.target if case.proposal else "", now)
    command, proposal, run = case.command, case.proposal, packet.run
    history = reverse("audit:history") + f"?run={packet.run_id}" if may_read_history(membership) else ""
    return PacketScreen(
        row=row, sentence=sentence(packet, command, late_effect(case)), because=because(row), ui=row.ui,
        cause=cause_words(packet.cause), cause_code=visible(packet.cause), run_id=packet.run_id,
        workflow=f"{title_of(run.workflow)}, version {run.workflow_version}",
        step=step_words(packet.step), step_place=step_place(case), ended_at=packet.ended_at,
        choices=choices, by_itself=by_itself(packet, command),
        known=tuple(known(case, names=True)), unknown=tuple(not_known(case)),
        command=command_card(case.story, command, now, may_open=can_role(membership, *READERS)) if command else None,
        fields=fields_of(document), approval=approval_rows(document), digest=proposal.digest if proposal else "",
        view_digest=proposal.view_digest if proposal else "",
        proposal_href=reverse("approvals:proposal", args=[proposal.pk]) if proposal else "",
        last_good=event_rows([case.last_good], linked=bool(history))[0] if case.last_good else None,
        related=tuple(related(case)), similar=tuple(similar_rows(case)), in_common=document["in_common"] or "",
        history_href=history,
        runbook=step_for(run.workflow, packet.cause, code_of(case)), document=document,
        runbook_href=reverse("repair:runbook", args=[run.workflow]) if runbook_of(run.workflow) else "",
        alike_href=alike_packet(packet, membership, now),
    )  # fmt: skip


def step_place(case: Case) -> str:
    return f"{case.step.position + 1} of {len(case.story.steps)}" if case.step else ""


def because(row: StoppedRow) -> str:
    """Why it stopped, or how that was settled; then what was said at first is told as the past it is."""
    return f"{row.settled} It had stopped because of: {row.cause.lower()}." if row.settled else row.summary


def by_itself(packet: RepairPacket, command: Command | None) -> str:
    """What goes on without anybody's choice; empty where nothing does."""
    if packet.ended_at is not None or command is None:
        return ""
    if command.status == C.UNKNOWN:
        return "The provider is asked again and again; what it answers settles the outcome."
    return "It goes on when the hold ends." if command.status == C.HELD else ""


def fields_of(document: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The bound values, as far as they are this reader's."""
    action = document["action"]
    if action is None:
        return ()
    if action["fields"] is None:
        return (("All values", "erased, or cannot be read any more"),)
    beside = [("Done at", action["account"]), ("Must not happen twice", action["business_key_words"])]
    rows = [(field["label"], field["text"]) for field in action["fields"]]
    return (*rows, *((name, text) for name, text in beside if text))


def approval_rows(document: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """By which rule it was asked, how many were needed, and its two clocks."""
    found = document["approval"]
    if found is None:
        return ()
    policy = found["policy"]
    rows = [
        ("Version", str(found["version"])), ("Rule", f"{policy['rule']}, version {policy['version']}"),
        ("Needed", str(found["needed"])),
    ]  # fmt: skip
    clocks = (("Decide by", "decide_by"), ("Decided", "decided_at"), ("Execute by", "execute_by"))
    rows += [(label, f"{found[name][:19]}Z".replace("T", " ")) for label, name in clocks if found[name]]
    return tuple(rows)


def similar_rows(case: Case) -> list[SimilarRow]:
    return [
        SimilarRow(
            reverse("repair:packet", args=[other.pk]), other.opened_at, other.status,
            settled_words(other.resolution) if other.ended_at else "It is still open.",
        )
        for other in case.similar
    ]  # fmt: skip


def related(case: Case) -> list[Related]:
    packet, step, command = case.packet, case.step, case.command
    run_href = reverse("workflows:run", args=[packet.run_id])
    rows = [Related("Run", run_href, str(packet.run_id), "run", packet.run.status)]
    if step is not None:
        rows.append(Related("Step", run_href, step_words(step.key), "step", step.status))
    for proposal in case.story.proposals.get(packet.step, ()):
        href = reverse("approvals:proposal", args=[proposal.pk])
        rows.append(Related("Proposal", href, f"version {proposal.version}", "proposal", proposal.status))
    rows += [_order("Command", command)] if command else []
    rows += [_order("Same business key", row) for row in case.same_key]
    same = {row.pk for row in case.same_key}
    rows += [_order("Same record, later", row) for row in case.same_target if row.pk not in same]
    for other in packets_of_run(packet.tenant_id, packet.run_id):
        if other.pk != packet.pk:
            href = reverse("repair:packet", args=[other.pk])
            rows.append(Related("Packet", href, cause_words(other.cause), "packet", other.status))
    return rows


def _order(name: str, row: Command) -> Related:
    return Related(name, reverse("workflows:run", args=[row.run_id]), str(row.pk), "command", row.status)
