"""A packet with all that belongs to it, and the facts that the rules ask for: reads only, under no lock."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from access.models import Membership
from access.policies import can_role
from approvals.models import Decision, Proposal
from approvals.policies import standing_votes, valid_approvals
from audit.actors import clock_actor
from common.errors import NotFound, Refused
from repair.actions import LATE_EFFECT
from repair.choices.facts import NO_EFFECT, Facts, OrderFacts
from repair.models import RepairMove, RepairPacket
from workflows import registry
from workflows.actions.asking_again import arguments_of, happened_late
from workflows.actions.attesting import ATTESTERS, is_of_the_proposers_side
from workflows.actions.compensating import facts_of
from workflows.actions.settle import steps_of
from workflows.effects import EffectOf, effects_of, effects_of_command, state_of
from workflows.endings import ending_of
from workflows.enums import CommandStatus
from workflows.following import EffectFacts
from workflows.models import Command, Hold, Run, Step
from workflows.operations import Operation
from workflows.record_looks import can_be_looked_at
from workflows.scope import holds_in_force
from workflows.worker.checks import current_policy, intact_contract, settled_from, tries_left, why_not
from workflows.worker.held import Held

REPAIRERS: Final = ATTESTERS
LESSONS: Final = ("to_fixture", "to_rule", "to_runbook")
"""The codes of the choices that say what is learned from a case."""
C = CommandStatus


@dataclass(frozen=True, slots=True)
class Seen:
    """Which state of a packet and of its order somebody had in front of them when they chose."""

    wait_id: UUID
    state_version: int
    order_version: int

    @property
    def text(self) -> str:
        return f"{self.wait_id}.{self.state_version}.{self.order_version}"

    @classmethod
    def parse(cls, text: str) -> "Seen | None":
        """None for what was not made by `text`."""
        parts = text.split(".")
        try:
            wait_id, version, order = UUID(parts[0]), int(parts[1]), int(parts[2])
        except (ValueError, IndexError):
            return None
        return cls(wait_id, version, order) if len(parts) == 3 else None


@dataclass
class Case:
    """Rows of one packet, read together; ``now`` is the database's clock."""

    packet: RepairPacket
    run: Run
    step: Step | None
    proposal: Proposal | None
    """The step's last one."""
    command: Command | None
    """The packet's own, else the one of the step's last proposal."""
    membership: Membership
    now: datetime

    @property
    def tenant_id(self) -> UUID:
        return self.packet.tenant_id

    @property
    def seen(self) -> Seen:
        order = self.command.state_version if self.command is not None else 0
        return Seen(self.packet.wait_id, self.packet.state_version, order)

    @cached_property
    def of_order(self) -> Proposal | None:
        """The proposal that the order carries out."""
        if self.command is None or (
            self.proposal is not None and self.command.proposal_id == self.proposal.pk
        ):
            return self.proposal
        return Proposal.objects.get(tenant_id=self.tenant_id, pk=self.command.proposal_id)

    @cached_property
    def operation(self) -> Operation[Any] | None:
        """Of the order, or of the last proposal; None where the code here does not know that version."""
        row: Any = self.command or self.proposal
        if row is None or not registry.knows(row.operation, row.operation_version):
            return None
        return registry.operation(row.operation, row.operation_version)

    @cached_property
    def contract(self) -> Mapping[str, Any] | None:
        """Of the order, if it is what was approved."""
        if self.command is None or self.of_order is None:
            return None
        return intact_contract(self.of_order, self.command)

    @cached_property
    def votes(self) -> list[Decision]:
        return standing_votes(self.of_order) if self.of_order is not None else []

    @cached_property
    def hold(self) -> Hold | None:
        """The freeze or open circuit that the order lies under."""
        if self.command is None or self.of_order is None:
            return None
        return holds_in_force([self.tenant_id]).on(self.command, self.of_order)

    @cached_property
    def approvals(self) -> int:
        """How many approvals count now."""
        return valid_approvals(self.of_order, self.votes) if self.of_order is not None else 0

    @cached_property
    def policy(self) -> int | None:
        return current_policy(self.operation) if self.operation is not None else None

    @cached_property
    def failed(self) -> str:
        """The first reason for which the order's approval no longer holds; empty: it does."""
        if self.of_order is None:
            return ""
        reason = why_not(
            self.of_order, self.contract, self.votes, now=self.now, policy=lambda: self.policy,
            count=lambda: self.approvals,
        )  # fmt: skip
        return reason.value if reason is not None else ""

    @cached_property
    def facts(self) -> Facts:
        packet, run, step, proposal = self.packet, self.run, self.step, self.proposal
        accounts = self.membership.accounts
        return Facts(
            now=self.now, may_repair=can_role(self.membership, *REPAIRERS), packet=packet.status, cause=packet.cause,
            cause_said=RepairMove.objects.filter(packet=packet, root_cause__isnull=False, refused="").exists(),
            mine=packet.assignee_id in accounts, assigned=packet.assignee_id is not None,
            own_side=self._is_own(accounts), run=run.status, cancel_wished=run.cancel_requested_at is not None,
            step=step.status if step else "", waiting_for=step.waiting_for if step else "",
            asks=bool(step is not None and step.asks),
            wait_over=bool(step and step.waiting_until and step.waiting_until <= self.now),
            proposal=proposal.status if proposal else "",
            decided=bool(proposal is not None and proposal.decided_at is not None),
            editable=self.editable, record=can_be_looked_at(self.of_order),
            lessons=self._lessons(), order=self._order_facts(), effect=self._effect_facts(),
        )  # fmt: skip

    @cached_property
    def effect(self) -> EffectOf | None:
        """What a compensation would take back: the order's own effect, the second one where a late answer is what the
        case is about; else the run's last effect that nothing has taken back.
        """
        own = effects_of_command(self.run, self.command) if self.command is not None else []
        if own:
            return own[-1] if self.packet.cause == LATE_EFFECT else own[0]
        found = effects_of(self.run)[::-1]
        return next((it for it in found if not state_of(self.run, it.undo_key)), found[0] if found else None)

    def _lessons(self) -> frozenset[str]:
        made = RepairMove.objects.filter(packet=self.packet, choice__in=LESSONS, refused="")
        return frozenset(made.values_list("choice", flat=True))

    def _effect_facts(self) -> EffectFacts:
        if self.command is not None and self.command.status in C.in_flight_states:
            return EffectFacts(happened=False, in_doubt=True)
        return facts_of(self.effect) if self.effect is not None else NO_EFFECT

    @property
    def editable(self) -> tuple[str, ...]:
        """By the newest installed version of the operation: what is proposed anew is of that one."""
        return registry.editable(self.proposal) if self.proposal is not None else ()

    @property
    def newest_operation(self) -> Operation[Any] | None:
        """What is proposed anew is of this version; None where nothing of that name is installed any more."""
        return (
            registry.operation(self.proposal.operation)
            if self.editable and self.proposal is not None
            else None
        )

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """All arguments of the step's last proposal as JSON, secrets by their names; none where they do not open."""
        try:
            return arguments_of(self.proposal) if self.proposal is not None else {}
        except Refused:
            return {}

    @property
    def question(self) -> str:
        """What the step asked its requester, in its author's words."""
        asks = (self.step.asks if self.step is not None else None) or {}
        return str(asks.get("question", ""))

    def _is_own(self, accounts: frozenset[UUID]) -> bool:
        """As `attest` has it: under break-glass a person says it of their own proposal too."""
        if self.of_order is None or self.membership.break_glass_until is not None:
            return False
        return is_of_the_proposers_side(self.of_order, accounts)

    def _order_facts(self) -> OrderFacts | None:
        command, operation = self.command, self.operation
        if command is None:
            return None
        ended = command.status in C.final_states
        shared = OrderFacts(
            status=command.status, failure_code=command.failure_code, void_reason=command.void_reason,
            known=operation is not None, may_ask_again=ended and ending_of(command).ask_again,
            said_late=happened_late(command),
            asked_soon=command.status == C.UNKNOWN and command.due_at is not None and command.due_at <= self.now,
        )  # fmt: skip
        if operation is None or command.status != C.UNKNOWN:
            return shared
        return self._in_doubt(shared, command, operation)

    def _in_doubt(self, shared: OrderFacts, command: Command, operation: Operation[Any]) -> OrderFacts:
        assert self.of_order is not None
        held = Held(self.of_order, command, clock_actor("repair"), self.now, lambda: self.now)
        retention, sent = operation.key_retention, command.first_sent_at
        return replace(
            shared, can_look_up=type(operation).reconcile is not Operation.reconcile,
            lands_until=settled_from(command, operation) if command.last_sent_at else None,
            key_until=sent + retention - operation.call_deadline if retention and sent else None,
            tries_left=tries_left(held), held_by=self.hold.reason if self.hold else "", failed_check=self.failed,
        )  # fmt: skip


def load(tenant_id: UUID, packet_id: UUID, membership: Membership, now: datetime) -> Case:
    """Raises NotFound, for another tenant's packet too."""
    packet = (
        RepairPacket.objects.filter(tenant_id=tenant_id, pk=packet_id)
        .select_related("run", "assignee")
        .first()
    )
    if packet is None:
        raise NotFound
    return of_packet(packet, membership, now)


def of_packet(packet: RepairPacket, membership: Membership, now: datetime) -> Case:
    """``packet`` with its run."""
    step = next((step for step in steps_of(packet.run) if step.key == packet.step), None)
    proposals = Proposal.objects.filter(tenant_id=packet.tenant_id)
    proposal = proposals.filter(pk=step.proposal_id).first() if step and step.proposal_id else None
    commands = Command.objects.filter(tenant_id=packet.tenant_id)
    command = commands.filter(pk=packet.command_id).first() if packet.command_id else None
    if command is None and proposal is not None:
        command = commands.filter(proposal=proposal).first()
    return Case(packet, packet.run, step, proposal, command, membership, now)
