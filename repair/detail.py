"""One packet in full: what is known, what is not, the last thing that worked, and all that belongs to it.

Nothing here offers a move; the page says what is so. Names of business things are shown, personal values are not:
those stand behind the proposal, for the roles that decide on them.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.urls import reverse

from access.models import Membership
from access.policies import can_role
from approvals.models import Proposal
from approvals.shown import view_of
from audit.readers import may_read_history
from audit.selectors import Filters, events
from audit.tables import EventRow, event_rows
from common.display import visible
from common.states_ui import StateUi
from repair.models import RepairPacket
from repair.selectors import packets_of_run, same_key_commands
from repair.tables import StoppedRow, cause_words, packet_row
from workflows.actions.reading import READERS
from workflows.enums import AttemptStatus, CommandStatus, Effect
from workflows.models import Attempt, Command, Lookup, Step
from workflows.registry import UnknownOperation, operation
from workflows.screens.steps import CommandCard, command_card, vote_line
from workflows.screens.story import Story, story_of
from workflows.screens.tries import detail_words, seconds
from workflows.screens.words import code_words, step_words, title_of

C = CommandStatus
# What a vote was on, after who gave it and which.
EXACTLY: Final = {
    "approve": " exactly this",
    "reject": " exactly this",
    "request_changes": " to exactly this",
}
SHOWN_CLASSES: Final = ("public", "business")
# States that say that something stopped; the last event before the packet that led elsewhere is what worked last.
STOPS: Final = (
    "waiting", "unknown", "manual_repair", "degraded", "void", "dead", "refused", "held", "invalidated", "lapsed",
    "expired", "open", "failed", "cancelled",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that is known, or that is not."""

    text: str
    code: str = ""
    digest: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """A row that belongs to the packet, with its state."""

    name: str
    href: str
    text: str
    thing: str = ""
    state: str = ""


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
    ways_out: tuple[str, ...]
    known: tuple[Point, ...]
    unknown: tuple[Point, ...]
    command: CommandCard | None
    approved: tuple[tuple[str, str], ...]
    digest: str
    proposal_href: str
    last_good: EventRow | None
    related: tuple[Related, ...]
    history_href: str


def packet_screen(packet: RepairPacket, membership: Membership, now: datetime) -> PacketScreen:
    """``packet`` comes from `repair.selectors.get_packet`."""
    story = story_of(packet.run)
    command = _command(story, packet)
    proposal = _proposal(story, packet, command)
    row = packet_row(packet, proposal.target if proposal else "", now)
    step = next((step for step in story.steps if step.key == packet.step), None)
    history = reverse("audit:history") + f"?run={packet.run_id}" if may_read_history(membership) else ""
    return PacketScreen(
        row=row, sentence=sentence(packet, command), because=because(row), ui=row.ui,
        cause=cause_words(packet.cause), cause_code=visible(packet.cause), run_id=packet.run_id,
        workflow=f"{title_of(packet.run.workflow)}, version {packet.run.workflow_version}",
        step=step_words(packet.step), step_place=f"{step.position + 1} of {len(story.steps)}" if step else "",
        ended_at=packet.ended_at, ways_out=ways_out(packet, command),
        known=tuple(known(story, packet, command, proposal)), unknown=tuple(not_known(story, command)),
        command=command_card(story, command, now, may_open=can_role(membership, *READERS)) if command else None,
        approved=tuple(approved(proposal)) if proposal else (), digest=proposal.digest if proposal else "",
        proposal_href=reverse("approvals:proposal", args=[proposal.pk]) if proposal else "",
        last_good=last_good(packet, linked=bool(history)), related=tuple(related(story, packet, command, step)),
        history_href=history,
    )  # fmt: skip


def _command(story: Story, packet: RepairPacket) -> Command | None:
    """The packet's command; where it names none, the newest one of its step."""
    named = [row for row in story.commands.values() if row.pk == packet.command_id]
    of_step = [row for step in story.steps if step.key == packet.step for row in story.commands_of(step)]
    found = named or of_step
    return found[-1] if found else None


def _proposal(story: Story, packet: RepairPacket, command: Command | None) -> Proposal | None:
    wanted = command.proposal_id if command else packet.proposal_id
    return next((row for rows in story.proposals.values() for row in rows if row.pk == wanted), None)


def sentence(packet: RepairPacket, command: Command | None) -> str:
    """The state of things, made by code from states and business names only."""
    if command is None:
        where = f"{title_of(packet.run.workflow)} stopped at the step “{step_words(packet.step)}”"
        return f"{where}: {cause_words(packet.cause).lower()}."
    action = f"“{operation_title(command)}” on {visible(command.target)}"
    times = {0: "was never sent", 1: "was sent once"}.get(command.tries, f"was sent {command.tries} times")
    if command.effect == Effect.UNKNOWN:
        return f"{action} {times}. Nobody knows yet whether it happened."
    if command.status == C.HELD:
        return f"{action} is approved and held back. It {times}."
    if command.effect == Effect.NONE:
        return f"{action} {times}. Nothing happened."
    return f"{action} {times}. It happened."


def because(row: StoppedRow) -> str:
    """Why it stopped, or how that was settled; then what was said at first is told as the past it is."""
    return f"{row.settled} It had stopped because of: {row.cause.lower()}." if row.settled else row.summary


def ways_out(packet: RepairPacket, command: Command | None) -> tuple[str, ...]:
    """How the stop can end in this version; empty where it has."""
    if packet.ended_at is not None:
        return ()
    ways = []
    if command is not None and command.status == C.UNKNOWN:
        ways.append("The provider is asked by itself, again and again; what it answers settles the outcome.")
    if command is not None and command.status == C.HELD:
        ways.append("It goes on by itself when the hold ends.")
    ways.append("An operator, workflow owner or admin can cancel the run, on its page or through the API.")
    return (
        *ways,
        "What is still wanted can be asked for anew where it came from: as a new event, with a new run.",
    )


def operation_title(command: Command) -> str:
    try:
        return operation(command.operation, command.operation_version).title
    except UnknownOperation:
        return command.operation


def known(
    story: Story, packet: RepairPacket, command: Command | None, proposal: Proposal | None
) -> list[Point]:
    points = []
    for vote in story.votes.get(proposal.pk, ()) if proposal else ():
        line = vote_line(vote)
        said = f", saying “{line.said}”" if line.said else ""
        text = f"{line.text}{EXACTLY[vote.kind]}{said}, on view"
        points.append(Point(text, digest=line.view_digest, at=line.at))
    if command is None:
        return [
            *points,
            Point(visible(packet.summary)),
            Point("No order to a provider belongs to this stop."),
        ]
    attempts = story.attempts.get(command.pk, ())
    points += [point for attempt in attempts for point in attempt_points(attempt, command)]
    if command.first_sent_at is None:
        points.append(Point("Nothing has left this system for it."))
    points += [lookup_point(lookup) for lookup in story.lookups.get(command.pk, ())]
    if command.status in C.final_states:
        points.append(Point(f"It ended as {C(command.status).label.lower()}.", at=command.ended_at))
    others = same_key_commands(command)
    if not others:
        points.append(Point("No other order was ever made for the same business key."))
    return points


def attempt_points(attempt: Attempt, command: Command) -> list[Point]:
    """The boundaries that are certain."""
    if attempt.sent_at is None:
        return [Point(f"Attempt {attempt.number} was claimed and not sent.", at=attempt.claimed_at)]
    points = [Point("It left this system with key", code=command.idempotency_key, at=attempt.sent_at)]
    if attempt.status == AttemptStatus.NO_ANSWER and attempt.ended_at:
        waited = seconds(attempt.sent_at, attempt.ended_at)
        points.append(
            Point(
                f"No complete answer came within {waited}; the worker stored that itself.",
                at=attempt.ended_at,
            )
        )
    elif attempt.status == AttemptStatus.ANSWERED:
        status = f" with HTTP {attempt.http_status}" if attempt.http_status else ""
        meaning = code_words(attempt.outcome)
        points.append(Point(f"The provider answered{status}, which means {meaning}.", at=attempt.ended_at))
    elif attempt.status == AttemptStatus.RELEASED:
        points.append(Point("Nothing of it reached the provider.", at=attempt.ended_at))
    return points


def lookup_point(lookup: Lookup) -> Point:
    told = detail_words(lookup.detail)
    found = {
        "happened": "A look-up found that it happened.",
        "not_found": "A look-up found nothing, after the settle time."
        if lookup.settled else "A look-up found nothing, before the settle time was over: it proves nothing.",
        "no_answer": f"A look-up told nothing: {told}." if told else "A look-up got no answer.",
    }  # fmt: skip
    return Point(found[lookup.finding], at=lookup.asked_at)


def not_known(story: Story, command: Command | None) -> list[Point]:
    """What nobody can say. Empty where nothing is in doubt."""
    if command is None or command.effect != Effect.UNKNOWN:
        return []
    points = [
        Point("Whether the provider carried it out."),
        Point("Whether it did so in full, or with other values."),
    ]
    if command.tries > 1:
        points.append(Point("Which of the requests took effect, if one did."))
    lookups = story.lookups.get(command.pk, ())
    if not lookups:
        points.append(Point("What the provider says about its key: it has not been asked yet."))
    elif lookups[-1].finding == "no_answer":
        told = detail_words(lookups[-1].detail) or "it did not answer"
        points.append(Point(f"What the provider says about its key: {told}."))
    return points


def approved(proposal: Proposal) -> list[tuple[str, str]]:
    """The material values that are public or business; of personal and secret ones only that they are there."""
    rows = []
    for field in view_of(proposal).fields:
        open_class = field.data_class in SHOWN_CLASSES and field.text is not None and not field.folded
        rows.append(
            (field.label, (field.text or "") if open_class else f"{field.data_class}, not shown here")
        )
    return rows


def last_good(packet: RepairPacket, *, linked: bool) -> EventRow | None:
    """The last move of the run before the stop that led on."""
    moves = events(packet.tenant_id, Filters(run_id=packet.run_id, until=packet.opened_at)).exclude(
        to_state=""
    )
    found = moves.exclude(to_state__in=STOPS).first()
    return event_rows([found], linked=linked)[0] if found else None


def related(story: Story, packet: RepairPacket, command: Command | None, step: Step | None) -> list[Related]:
    run_href = reverse("workflows:run", args=[packet.run_id])
    rows = [Related("Run", run_href, str(packet.run_id), "run", packet.run.status)]
    if step is not None:
        rows.append(Related("Step", run_href, step_words(step.key), "step", step.status))
    for proposal in story.proposals.get(packet.step, ()):
        href = reverse("approvals:proposal", args=[proposal.pk])
        rows.append(Related("Proposal", href, f"version {proposal.version}", "proposal", proposal.status))
    for row in [command, *same_key_commands(command)] if command else []:
        name = "Command" if row.pk == command.pk else "Same business key"  # type: ignore[union-attr]
        href = reverse("workflows:run", args=[row.run_id])
        rows.append(Related(name, href, str(row.pk), "command", row.status))
    for other in packets_of_run(packet.tenant_id, packet.run_id):
        if other.pk != packet.pk:
            href = reverse("repair:packet", args=[other.pk])
            rows.append(Related("Packet", href, cause_words(other.cause), "packet", other.status))
    return rows
