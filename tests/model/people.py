"""The half of the world that prepares and decides: runs, steps, proposals, votes, waits and cancel wishes."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from approvals.enums import DecisionKind, Mode, ProposalStatus
from approvals.models import Proposal
from common.models import Tenant
from repair.enums import PacketStatus
from repair.models import RepairPacket
from tests import rows
from tests.model.provider import Provider
from workflows.endings import apply_ending
from workflows.enums import (
    CommandStatus,
    Effect,
    OnExpiry,
    RunKind,
    RunStatus,
    SettledBy,
    StepKind,
    StepStatus,
    VoidReason,
    WaitingFor,
)
from workflows.models import Attempt, Command, Run, Step
from workflows.status import run_status, run_wait
from workflows.waits import StepWait, wait_for_approval, wait_for_person

P, C, T = ProposalStatus, CommandStatus, StepStatus
BEGIN = datetime(2026, 9, 19, 12, 0, tzinfo=UTC)
OTHER_AMOUNT = {**rows.REFUND, "amount": "20.00"}


class Refused(Exception):
    """The world says no; nothing changed. The text is the public code."""


@dataclass
class People:
    """All rows of one tenant, the clock, and who may decide."""

    now: datetime = BEGIN
    tenant: Tenant = field(default_factory=rows.tenant_row)
    provider: Provider = field(default_factory=Provider)
    active: dict[str, bool] = field(
        default_factory=lambda: dict.fromkeys(("ann", "ben", "cleo", "dan"), True)
    )
    policy_version: int = 1
    frozen: bool = False
    circuit_open: bool = False
    runs: list[Run] = field(default_factory=list)
    steps: dict[UUID, list[Step]] = field(default_factory=dict)
    proposals: list[Proposal] = field(default_factory=list)
    votes: dict[UUID, dict[str, str]] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    packets: list[RepairPacket] = field(default_factory=list)
    ended: list[tuple[Command, str, str, str]] = field(default_factory=list)
    """Of each ended command: proposal status, step status and what the step waited for, at that moment."""

    # -- time and scope
    # ---------------------------------------------------------------------------------------

    def advance(self, by: timedelta) -> None:
        self.now += by
        self.provider.time_passes(self.now)

    # -- preparation
    # ------------------------------------------------------------------------------------------

    def start_run(self, *, replay_of: Run | None = None) -> Run:
        """A run with three steps: read, act, tell."""
        run = rows.run_row(self.tenant, at=self.now)
        if replay_of is not None:
            run.kind, run.original = RunKind.REPLAY, replay_of.original or replay_of
        self.runs.append(run)
        kinds = {"read": StepKind.READ_ONLY, "refund": StepKind.SIDE_EFFECT, "tell": StepKind.READ_ONLY}
        self.steps[run.pk] = [
            rows.step_row(run, key=key, position=position, kind=kind)
            for position, (key, kind) in enumerate(kinds.items())
        ]
        return self.settle(run)

    def step(self, run: Run, key: str = "refund") -> Step:
        return next(step for step in self.steps[run.pk] if step.key == key)

    def next_step(self, run: Run) -> Step | None:
        """The first step that has not ended, if it has not been started."""
        step = next((step for step in self.steps[run.pk] if step.status not in T.final_states), None)
        return step if step is not None and step.status == T.PENDING else None

    def work(self, step: Step, result: str = "done") -> None:
        """Run one stage that only reads. ``result``: done, data, children, provider, person, fail."""
        rows.moved(step, "start", self.now)
        match result:
            case "done":
                step.complete(at=self.now, result_ref=None)
            case "fail":
                step.fail(at=self.now, code="bad_input")
            case "person":
                self.stop(step, "low_confidence")
            case _:
                wait = StepWait(WaitingFor(result), self.now + timedelta(hours=1))
                self.wait(step, wait)
        self.settle(step.run)

    def supply(self, step: Step, wait_id: UUID | None) -> None:
        """Answer a wait for data, children or a provider; the answer must name the wait."""
        waits = step.status == T.WAITING and step.waiting_for in (WaitingFor.DATA, WaitingFor.CHILDREN)
        if (
            not waits
            or step.wait_id != wait_id
            or step.waiting_until is None
            or self.now >= step.waiting_until
        ):
            raise Refused("wait_over")
        step.resume(at=self.now)
        self.settle(step.run)

    def expire_wait(self, step: Step) -> None:
        """The sweep finds a step's wait over; what then happens was said when it began."""
        assert step.waiting_until is not None and self.now >= step.waiting_until
        self._end_expired(step)
        self.settle(step.run)

    def _end_expired(self, step: Step) -> None:
        match step.on_expiry:
            case OnExpiry.FAIL:
                step.fail(at=self.now, code="expired")
            case OnExpiry.CANCEL:
                step.cancel(at=self.now)
            case _:
                self.stop(step, "expired")

    def child_ended(self, parent: Step, child: Run) -> None:
        """A child run has ended: well, the parent goes on; not well, a person looks at the parent."""
        if child.status == RunStatus.COMPLETED:
            parent.complete(at=self.now, result_ref=None)
        else:
            self.stop(parent, "child_failed")
        self.settle(parent.run)

    # -- proposals
    # --------------------------------------------------------------------------------------------

    def propose(
        self, run: Run, *, mode: str = Mode.LIVE, needed: int = 1, on_expiry: OnExpiry = OnExpiry.MANUAL_QUEUE,
        arguments: dict[str, str] = rows.REFUND, instead_of: Proposal | None = None,
    ) -> Proposal:  # fmt: skip
        """Ask people about the refund step. ``needed=0``: the policy rule approves at once."""
        step, last = self.step(run), self.last_command(run)
        fields = {
            "mode": mode,
            "supersedes": instead_of,
            "version": (instead_of.version if instead_of else 0) + 1,
        }
        fields["policy"] = {"version": self.policy_version, "verdict": "auto" if needed == 0 else "ask"}
        draft = rows.proposal_row(run, step, at=self.now, arguments=arguments, needed=needed, **fields)
        generation = self._generation(last, draft.material_digest)
        proposal = rows.proposal_row(
            run, step, at=self.now, arguments=arguments, needed=needed, generation=generation, **fields
        )
        self.proposals.append(proposal)
        self.votes[proposal.pk] = {}
        step.proposal_id, step.generation = proposal.pk, generation
        self.wait(step, wait_for_approval(proposal.decide_by, on_expiry))
        if needed == 0 and not self._key_taken(proposal):
            self._approve(proposal)
        self.settle(run)
        return proposal

    def _generation(self, last: Command | None, material: str) -> int:
        """It grows only when the last command's effect is *none* for certain and the material digest
        changed.
        """
        if last is None:
            return 1
        grows = (
            last.status in C.final_states
            and last.effect == Effect.NONE
            and last.proposal.material_digest != material
        )
        return last.proposal.generation + grows

    def vote(self, proposal: Proposal, person: str, kind: str = DecisionKind.APPROVE) -> str:
        """One person's decision; a later one replaces their earlier one."""
        if proposal.status != P.PENDING:
            raise Refused(proposal.status)
        if self.now >= proposal.decide_by:
            raise Refused("expired")
        if not self.active[person]:
            raise Refused("not_eligible")
        meets = kind == DecisionKind.APPROVE and self.approvals(proposal, also=person) >= proposal.needed
        if meets and self._key_taken(proposal):
            raise Refused("action_in_progress")
        self.votes[proposal.pk][person] = kind
        self._count(proposal, kind)
        self.settle(self.run_of(proposal))
        return proposal.status

    def _count(self, proposal: Proposal, kind: str) -> None:
        step = self.step_of(proposal)
        if kind == DecisionKind.REJECT:
            proposal.reject(at=self.now, reason="no")
            step.skip(at=self.now)
        elif kind == DecisionKind.REQUEST_CHANGES:
            proposal.request_changes(at=self.now, reason="less")
        elif self.approvals(proposal) >= proposal.needed:
            self._approve(proposal)

    def approvals(self, proposal: Proposal, *, also: str = "") -> int:
        """How many distinct people who may still decide say yes."""
        yes = {person for person, kind in self.votes[proposal.pk].items() if kind == DecisionKind.APPROVE}
        return sum(self.active[person] for person in yes | ({also} if also else set()))

    def _approve(self, proposal: Proposal) -> None:
        proposal.approve(at=self.now, execute_by=self.now + rows.EXECUTE_WITHIN)
        step = self.step_of(proposal)
        if proposal.mode != Mode.LIVE:
            step.complete(at=self.now, result_ref=None)
            return
        assert proposal.execute_by is not None
        self.commands.append(rows.command_row(proposal, self.run_of(proposal), step, at=self.now))
        self.wait(step, StepWait(WaitingFor.PROVIDER, proposal.execute_by))

    def _key_taken(self, proposal: Proposal) -> bool:
        """Another command does the same thing, or this very action has been done."""
        for command in self.commands if proposal.mode == Mode.LIVE else ():
            same_business = command.business_key == proposal.business_key and command.status in C.live_states
            same_key = command.idempotency_key == proposal.idempotency_key
            if same_business or (same_key and command.status in C.key_holding_states):
                return True
        return False

    def expire(self, proposal: Proposal) -> None:
        """The sweep finds a proposal that nobody decided in time."""
        assert self.now >= proposal.decide_by
        proposal.expire(at=self.now, reason="expired")
        self._end_expired(self.step_of(proposal))
        self.settle(self.run_of(proposal))

    def withdraw(self, proposal: Proposal) -> None:
        self._take_back(proposal, VoidReason.WITHDRAWN)
        if proposal.status != P.WITHDRAWN:
            proposal.withdraw(at=self.now, reason="withdrawn")
            self.step_of(proposal).skip(at=self.now)
        self.settle(self.run_of(proposal))

    def supersede(self, proposal: Proposal, arguments: dict[str, str] = OTHER_AMOUNT) -> Proposal:
        """A new version takes the place of one that was not sent."""
        self._take_back(proposal, VoidReason.SUPERSEDED)
        if proposal.status != P.SUPERSEDED:
            proposal.supersede(at=self.now, reason="superseded")
        return self.propose(
            self.run_of(proposal), mode=proposal.mode, needed=max(proposal.needed, 1), arguments=arguments,
            instead_of=proposal,
        )  # fmt: skip

    def _take_back(self, proposal: Proposal, reason: VoidReason) -> None:
        """End the command of the proposal, where it has one and nothing was sent."""
        if proposal.status not in P.live_states or (
            proposal.status == P.APPROVED and proposal.mode != Mode.LIVE
        ):
            raise Refused(proposal.status)
        command = self.command_of(proposal)
        if command is None:
            return
        if command.status not in C.stoppable_states:
            raise Refused("too_late")
        command.make_void(at=self.now, reason=reason)
        self.end(command)

    # -- people's other moves
    # ---------------------------------------------------------------------------------

    def ask_again(self, step: Step) -> Proposal:
        """A person asks again about what lapsed, expired or was invalidated."""
        assert step.status == T.WAITING and step.waiting_for == WaitingFor.PERSON
        last = next(p for p in reversed(self.proposals) if p.pk == step.proposal_id)
        return self.propose(step.run, mode=last.mode, needed=max(last.needed, 1), instead_of=last)

    def finish_by_hand(self, step: Step, how: str) -> None:
        """A person ends what stopped: complete, fail, skip or cancel."""
        assert step.status == T.WAITING and step.waiting_for == WaitingFor.PERSON
        rows.moved(step, how, self.now)
        self.settle(step.run)

    def cancel_run(self, run: Run) -> str:
        """At once where nothing was sent; a wish from then on."""
        if run.status in RunStatus.final_states:
            raise Refused("run_ended")
        run.cancel_requested_at = run.cancel_requested_at or self.now
        self.settle(run)
        return "cancelled" if run.status == RunStatus.CANCELLED else "cancel_requested"

    def _fulfil_wish(self, run: Run) -> None:
        """A cancel wish takes effect once nothing is in flight, unless the effect has happened."""
        own = [command for command in self.commands if command.run == run]
        if any(c.status in C.in_flight_states or c.effect in (Effect.HAPPENED, Effect.PARTIAL) for c in own):
            return
        for command in own:
            if command.status in C.stoppable_states:
                command.cancel(at=self.now, by=SettledBy.CHECK)
                self.end(command)
        for proposal in self.proposals:
            live = proposal.status in (P.PENDING, P.CHANGES_REQUESTED)
            if proposal.run_id == run.pk and live:
                proposal.withdraw(at=self.now, reason="the run was cancelled")
        for step in self.steps[run.pk]:
            if step.status not in T.final_states:
                step.cancel(at=self.now)

    # -- what follows from a change
    # ---------------------------------------------------------------------------

    def end(self, command: Command) -> None:
        """Carry the end of a command over to its proposal and step, by the table."""
        proposal, step = command.proposal, self.step_of(command.proposal)
        ending = apply_ending(command, proposal, step, at=self.now, wait=self._wait_after(command))
        self.ended.append((command, proposal.status, step.status, step.waiting_for))
        if step.status == T.WAITING and step.waiting_for == WaitingFor.PERSON:
            self.open_packet(step, command.void_reason or command.status)
        if command.void_reason == VoidReason.REVIEWER:
            self.propose(command.run, needed=max(proposal.needed, 1), instead_of=proposal)
        assert not ending.ask_again or step.waiting_for == WaitingFor.PERSON

    def _wait_after(self, command: Command) -> StepWait:
        if command.void_reason in (VoidReason.REVIEWER, VoidReason.SUPERSEDED):
            return wait_for_approval(self.now + rows.DECIDE_WITHIN, OnExpiry.MANUAL_QUEUE)
        return wait_for_person(self.now)

    def settle(self, run: Run) -> Run:
        """The run's status follows its steps and commands, in the same transaction."""
        if run.cancel_requested_at and run.status not in RunStatus.final_states:
            self._fulfil_wish(run)
        commands = [command for command in self.commands if command.run == run]
        status = run_status(self.steps[run.pk], commands)
        if status != run.status:
            run.settle(status)
        wait = run_wait(status, self.steps[run.pk], self.now)
        run.waiting_until = wait.until if wait else None
        run.on_expiry = wait.on_expiry if wait else ""
        if status in RunStatus.final_states and run.finished_at is None:
            run.finished_at, run.outcome = self.now, self._outcome(run, status)
        self._close_packets(run)
        return run

    def _outcome(self, run: Run, status: str) -> str:
        mine = [p.status for p in self.proposals if p.run_id == run.pk]
        if status == RunStatus.COMPLETED and P.REJECTED in mine:
            return "declined"
        return "done" if status == RunStatus.COMPLETED else status

    def wait(self, step: Step, wait: StepWait) -> None:
        step.wait(for_=wait.for_, wait_id=wait.wait_id, until=wait.until, on_expiry=wait.on_expiry)

    def stop(self, step: Step, cause: str) -> None:
        self.wait(step, wait_for_person(self.now))
        self.open_packet(step, cause)

    def open_packet(self, step: Step, cause: str) -> RepairPacket:
        for packet in self.packets_of(step):
            if packet.cause == cause:
                return packet
        self.packets.append(rows.packet_row(step.run, at=self.now, step=step.key, cause=cause))
        return self.packets[-1]

    def packets_of(self, step: Step) -> list[RepairPacket]:
        """The open ones."""
        mine = [packet for packet in self.packets if packet.run == step.run and packet.step == step.key]
        return [packet for packet in mine if packet.status in PacketStatus.open_states]

    def _close_packets(self, run: Run) -> None:
        """What no longer stands still, and has no unknown outcome, needs nobody."""
        unknown = any(command.status == C.UNKNOWN for command in self.commands if command.run == run)
        for step in self.steps[run.pk]:
            stopped = step.status == T.WAITING and step.waiting_for == WaitingFor.PERSON
            for packet in self.packets_of(step):
                if not stopped and not (packet.cause == "unknown" and unknown):
                    packet.resolve(at=self.now, how=step.status)

    # -- reads
    # ------------------------------------------------------------------------------------------------

    def run_of(self, proposal: Proposal) -> Run:
        return next(run for run in self.runs if run.pk == proposal.run_id)

    def step_of(self, proposal: Proposal) -> Step:
        return self.step(self.run_of(proposal), proposal.step)

    def command_of(self, proposal: Proposal) -> Command | None:
        return next((command for command in self.commands if command.proposal == proposal), None)

    def last_command(self, run: Run) -> Command | None:
        """The last command of the refund step, in the original run and all its replays."""
        same = [command for command in self.commands if command.run.identity == run.identity]
        return same[-1] if same else None
