"""All rows that one packet is made of, read once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet

from approvals.models import Evidence, Proposal
from approvals.refusals import Uninspectable
from approvals.shown import view_of
from approvals.viewdoc import ViewDocument
from audit.models import Event
from audit.selectors import Filters, events
from common.content_errors import ContentErased
from repair.enums import PacketStatus
from repair.models import RepairPacket
from repair.selectors import same_key_commands
from workflows import registry
from workflows.effects import followers
from workflows.models import Attestation, Command, Hold, Run, Step
from workflows.operations import Operation
from workflows.record_looks import RecordLook, last_look, pins_of
from workflows.registry import UnknownOperation
from workflows.screens.story import Story, story_of

SIMILAR: Final = 5
OTHERS: Final = 5
EVENTS: Final = 40
# States that say that something stopped; the last event before the packet that led elsewhere is what worked last.
STOPS: Final = (
    "waiting", "unknown", "manual_repair", "degraded", "void", "dead", "refused", "held", "invalidated", "lapsed",
    "expired", "open", "failed", "cancelled",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One packet with everything that belongs to it."""

    packet: RepairPacket
    story: Story
    step: Step | None
    command: Command | None
    proposal: Proposal | None
    operation: Operation[Any] | None
    """None where this code no longer has it."""
    view: ViewDocument | None
    """None where there is no proposal, and where its content is erased or cannot be read."""
    pins: Mapping[str, str]
    evidence: Sequence[Evidence]
    attestations: Sequence[Attestation]
    hold: Hold | None
    same_key: Sequence[Command]
    same_target: Sequence[Command]
    """Newer orders on the same record, newest first."""
    last_look: RecordLook | None
    """The last that is known of the record: by the newest proposal on it, or by a person who looked."""
    similar: Sequence[RepairPacket]
    events: Sequence[Event]
    """The newest of the run, oldest first."""
    last_good: Event | None
    after: Sequence[Run]
    """What people proposed after effects of the run's family."""

    @property
    def run(self) -> Run:
        return self.packet.run

    @property
    def pins_now(self) -> Mapping[str, str]:
        """As they were last seen; nothing where nobody has looked since."""
        return self.last_look.pins if self.last_look is not None else {}


def case_of(packet: RepairPacket) -> Case:
    """``packet`` comes from `repair.selectors.get_packet`. A number of statements that does not grow with the rows."""
    story = story_of(packet.run)
    command = command_of(story, packet)
    proposal = _proposal(story, packet, command)
    found = events(packet.tenant_id, Filters(run_id=packet.run_id))
    return Case(
        packet=packet, story=story, step=next((step for step in story.steps if step.key == packet.step), None),
        command=command, proposal=proposal, operation=operation_of(proposal), view=_view(proposal),
        pins=pins_of(proposal), evidence=_evidence(proposal), attestations=_attestations(command),
        hold=command.hold if command and command.hold_id else None,
        same_key=same_key_commands(command) if command else (), same_target=_later_on_target(command),
        last_look=_last_look(proposal), similar=similar_to(packet, proposal.operation if proposal else ""),
        events=list(found[:EVENTS])[::-1], last_good=last_good(packet), after=followers(packet.run),
    )  # fmt: skip


def command_of(story: Story, packet: RepairPacket) -> Command | None:
    """The packet's command; where it names none, the newest one of its step."""
    named = [row for row in story.commands.values() if row.pk == packet.command_id]
    of_step = [row for step in story.steps if step.key == packet.step for row in story.commands_of(step)]
    found = named or of_step
    return found[-1] if found else None


def _proposal(story: Story, packet: RepairPacket, command: Command | None) -> Proposal | None:
    wanted = command.proposal_id if command else packet.proposal_id
    return next((row for rows in story.proposals.values() for row in rows if row.pk == wanted), None)


def operation_of(proposal: Proposal | None) -> Operation[Any] | None:
    try:
        return registry.operation(proposal.operation, proposal.operation_version) if proposal else None
    except UnknownOperation:
        return None


def _view(proposal: Proposal | None) -> ViewDocument | None:
    try:
        return view_of(proposal) if proposal else None
    except (ContentErased, Uninspectable):
        return None


def _evidence(proposal: Proposal | None) -> Sequence[Evidence]:
    return list(proposal.evidence.defer("content").order_by("position")) if proposal else ()


def _attestations(command: Command | None) -> Sequence[Attestation]:
    """Who has said what became of it; their reasons are their own words and stay out."""
    return list(command.attestations.defer("reason").order_by("at", "pk")) if command else ()


def _later_on_target(command: Command | None) -> Sequence[Command]:
    if command is None:
        return ()
    others = Command.objects.filter(
        tenant_id=command.tenant_id, provider=command.provider, target=command.target,
        created_at__gte=command.created_at,
    ).exclude(pk=command.pk)  # fmt: skip
    return list(others.order_by("-created_at", "-pk")[:OTHERS])


def _newest_on(proposal: Proposal) -> Proposal | None:
    """Each proposal looks at its record when it is made: the newest one knows the latest."""
    later = Proposal.objects.filter(
        tenant_id=proposal.tenant_id, operation=proposal.operation, target=proposal.target,
        created_at__gt=proposal.created_at,
    )  # fmt: skip
    return later.order_by("-created_at", "-pk").first()


def _last_look(proposal: Proposal | None) -> RecordLook | None:
    newer = _newest_on(proposal) if proposal is not None else None
    looks = [RecordLook(newer.created_at, pins_of(newer), newer.pk)] if newer is not None else []
    taken = last_look(proposal)
    return max([*looks, *([taken] if taken is not None else [])], key=lambda look: look.at, default=None)


def similar_to(packet: RepairPacket, operation: str) -> Sequence[RepairPacket]:
    """The newest with the same cause and operation; without an operation, of the same workflow and step."""
    others = RepairPacket.objects.filter(tenant_id=packet.tenant_id, cause=packet.cause).exclude(pk=packet.pk)
    newest = others.select_related("run").order_by("-opened_at", "-pk")
    if not operation:
        return list(newest.filter(run__workflow=packet.run.workflow, step=packet.step)[:SIMILAR])
    return list(newest.filter(_of_operation(packet.tenant_id, operation))[:SIMILAR])


def _of_operation(tenant_id: UUID, operation: str) -> Q:
    proposals: QuerySet[Proposal] = Proposal.objects.filter(tenant_id=tenant_id, operation=operation)
    commands = Command.objects.filter(tenant_id=tenant_id, operation=operation)
    return Q(proposal_id__in=proposals.values("pk")) | Q(command_id__in=commands.values("pk"))


def last_good(packet: RepairPacket) -> Event | None:
    """The last move of the run before the stop that led on."""
    moves = events(packet.tenant_id, Filters(run_id=packet.run_id, until=packet.opened_at)).exclude(
        to_state=""
    )
    return moves.exclude(to_state__in=STOPS).first()


def is_open(packet: RepairPacket) -> bool:
    return packet.status in PacketStatus.open_states
