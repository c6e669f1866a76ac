"""The whole world: what people decide, what workers do with it, and what the provider really did."""

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from approvals.enums import Mode, ProposalStatus
from approvals.models import Proposal
from common.digests import contract_digest
from common.ids import new_id
from tests import rows
from tests.model.people import People, Refused
from tests.model.provider import KEY_RETENTION, SETTLE_TIME, Request
from workflows.classify import Meaning
from workflows.enums import CommandStatus, Effect, SettledBy, VoidReason
from workflows.models import Attempt, Command
from workflows.settling import (
    Move,
    Settlement,
    after_answer,
    after_late_answer,
    after_lease,
    after_lookup,
    after_nothing_happened,
    before_send,
    may_send_again,
)

C = CommandStatus
RETRY_IN = timedelta(seconds=20)
MAX_TRIES = 3


@dataclass
class World(People):
    """Workers, reconcilers and operators on top of `People`."""

    sent: dict[UUID, Request] = field(default_factory=dict)
    """The request of each attempt that sent one."""
    second_person_needed: bool = False
    attested: dict[UUID, tuple[str, bool]] = field(default_factory=dict)
    """Of each unknown command: who attested first, and what."""

    # -- the worker
    # -------------------------------------------------------------------------------------------

    def claim(self, command: Command) -> Attempt:
        busy = (C.CLAIMED, C.SENT, C.UNKNOWN)
        if any(other.target == command.target and other.status in busy for other in self.commands):
            raise Refused("target_busy")
        if (
            command.status not in (C.READY, C.RETRY_WAIT)
            or command.due_at is None
            or self.now < command.due_at
        ):
            raise Refused("not_due")
        command.claim(token=new_id(), lease_until=self.now + rows.LEASE)
        return self._attempt(command)

    def _attempt(self, command: Command) -> Attempt:
        number = 1 + sum(attempt.command == command for attempt in self.attempts)
        self.attempts.append(rows.attempt_row(command, number=number, at=self.now))
        return self.attempts[-1]

    def send(self, attempt: Attempt, *, pin_changed: bool = False) -> str:
        """The transaction that commits *sent*: it sends, voids or holds. A stale worker changes nothing."""
        command = attempt.command
        if not self._holds(attempt, C.CLAIMED) or self.now >= command.lease_until:
            raise Refused("stale")
        if self._earlier_effect(command):
            attempt.release(at=self.now, outcome="earlier_effect")
            command.give_up(at=self.now, by=SettledBy.EARLIER_EFFECT, code="earlier_effect")
            return self._moved(command)
        failed = self.failed_check(command) or (VoidReason.PIN if pin_changed else None)
        verdict = before_send(frozen=self.frozen, circuit_open=self.circuit_open, failed_check=failed)
        if verdict.move is not Move.SEND:
            attempt.release(at=self.now, outcome=verdict.move.value)
            return self._make(command, verdict)
        lawful = self._lawful(command) and not pin_changed
        command.send(at=self.now, lease_until=self.now + rows.LEASE)
        self._on_its_way(attempt, lawful=lawful)
        return self._moved(command)

    def _on_its_way(self, attempt: Attempt, *, lawful: bool) -> None:
        attempt.send(at=self.now)
        request = Request(attempt.command.pk, attempt.command.idempotency_key, self.now, lawful)
        self.sent[attempt.pk] = self.provider.receive(request)

    def answer(self, attempt: Attempt, meaning: Meaning) -> str:
        """The worker of ``attempt`` has its answer. If its token is stale, it only leaves late evidence."""
        command = attempt.command
        if not self._holds(attempt, C.SENT):
            attempt.late_evidence = {"meaning": meaning.value}
            return "late"
        move = after_answer(command, meaning, may_retry=command.tries < MAX_TRIES)
        if move is Move.LOSE_TRACK:
            attempt.no_answer(at=self.now, outcome=meaning.value, detail="")
        elif meaning is Meaning.NOT_SENT:
            attempt.release(at=self.now, outcome=meaning.value)
        else:
            attempt.answer(at=self.now, outcome=meaning.value, http_status=200, detail="")
        if meaning is Meaning.KEY_REUSED:
            self.circuit_open = True
        return self._make(
            command, Settlement(move), by=SettledBy.RESEND if command.resent else SettledBy.ANSWER
        )

    def lose_lease(self, command: Command) -> str:
        """The sweep finds a lease that is over."""
        assert command.lease_until is not None and self.now >= command.lease_until
        attempt = next(a for a in self.attempts if a.token == command.lease_token)
        move = after_lease(command)
        if move is Move.FREE:
            attempt.release(at=self.now, outcome="lease_over")
        else:
            attempt.no_answer(at=self.now, outcome="lease_over", detail="")
        return self._make(command, Settlement(move))

    def _holds(self, attempt: Attempt, status: str) -> bool:
        return attempt.command.status == status and attempt.command.lease_token == attempt.token

    # -- from unknown
    # -----------------------------------------------------------------------------------------

    def reconcile(self, command: Command) -> str:
        """Late evidence first, then the provider's look-up."""
        tries = [attempt for attempt in self.attempts if attempt.command == command]
        for attempt in tries:
            if attempt.late_evidence:
                meaning = Meaning(attempt.late_evidence["meaning"])
                move = after_late_answer(command, meaning, of_last_attempt=attempt == tries[-1])
                if move is not Move.STAY:
                    return self._settle_unknown(command, move, SettledBy.LATE_ANSWER)
        return self.look_up(command)

    def look_up(self, command: Command, *, finding: str = "") -> str:
        """Ask the provider. Without a ``finding`` it says what is so at this moment."""
        seen = finding or ("happened" if self.provider.effects_of(command.idempotency_key) else "not_found")
        assert command.last_sent_at is not None
        move = after_lookup(seen, settled=self.now >= command.last_sent_at + SETTLE_TIME)
        return self._settle_unknown(command, move, SettledBy.LOOKUP)

    def send_again(self, command: Command) -> Attempt:
        """The same key once more, for a provider that remembers keys."""
        retention = KEY_RETENTION if self.provider.remembers_keys else None
        if not may_send_again(
            command, key_retention=retention, now=self.now, frozen=self.frozen, circuit_open=self.circuit_open,
            failed_check=self.failed_check(command),
        ):  # fmt: skip
            raise Refused("may_not_send_again")
        lawful = self._lawful(command)
        self.attested.pop(command.pk, None)
        command.send_again(at=self.now, token=new_id(), lease_until=self.now + rows.LEASE)
        attempt = self._attempt(command)
        self._on_its_way(attempt, lawful=lawful)
        self._moved(command)
        return attempt

    def attest(self, command: Command, person: str, *, happened: bool, partial: bool = False) -> str:
        """A person looked at the provider's own desk. *Did not happen* only counts after the settle time."""
        assert command.status == C.UNKNOWN and command.last_sent_at is not None
        if not happened and self.now < command.last_sent_at + SETTLE_TIME:
            raise Refused("too_early")
        packet = self.open_packet(command.step, "unknown")
        first = self.attested.get(command.pk)
        if self.second_person_needed and (first is None or first[1] != happened):
            self.attested[command.pk] = (person, happened)
            if packet.status != "awaiting_second":
                packet.await_second()
            return "awaiting_second"
        if first is not None and first[0] == person:
            raise Refused("same_person")
        effect = Effect.PARTIAL if partial else Effect.HAPPENED
        move = Move.CONFIRM if happened else Move.FREE
        return self._settle_unknown(command, move, SettledBy.PERSON, effect=effect)

    def _settle_unknown(
        self, command: Command, move: Move, by: SettledBy, *, effect: Effect = Effect.HAPPENED
    ) -> str:
        if move is not Move.STAY:
            self.attested.pop(command.pk, None)
        if move is Move.FREE:
            return self._make(command, self._nothing_happened(command), by=by)
        return self._make(command, Settlement(move), by=by, effect=effect)

    # -- sweep
    # ------------------------------------------------------------------------------------------------

    def look_again(self, command: Command) -> str:
        """What waits without having been sent is checked: freeze holds it, lapsed time voids it, else it
        goes on.
        """
        return self._make(command, self._nothing_happened(command), by=SettledBy.CHECK)

    def handle_outside(self, command: Command) -> str:
        """A person did it by hand and says so; the command is cancelled with effect *happened*."""
        command.cancel(at=self.now, by=SettledBy.PERSON, effect=Effect.HAPPENED)
        return self._moved(command)

    # -- checks and moves
    # -------------------------------------------------------------------------------------

    def failed_check(self, command: Command) -> VoidReason | None:
        """What the transaction that commits *sent* checks, but for the pins."""
        proposal: Proposal = command.proposal
        if contract_digest(bytes(proposal.contract)) != proposal.digest:
            return VoidReason.DIGEST
        if proposal.execute_by is None or self.now >= proposal.execute_by:
            return VoidReason.LAPSED
        if proposal.policy["version"] != self.policy_version:
            return VoidReason.POLICY
        return VoidReason.REVIEWER if self.approvals(proposal) < proposal.needed else None

    def _lawful(self, command: Command) -> bool:
        """The oracle's own opinion, from the rows and not from the rules above."""
        proposal = command.proposal
        voters = [
            name for name, kind in self.votes[proposal.pk].items() if kind == "approve" and self.active[name]
        ]
        return (
            proposal.mode == Mode.LIVE
            and proposal.status == ProposalStatus.APPROVED
            and proposal.digest == contract_digest(bytes(proposal.contract))
            and proposal.decided_at < proposal.decide_by
            and self.now < proposal.execute_by
            and proposal.policy["version"] == self.policy_version
            and len(set(voters)) >= proposal.needed
            and not self.frozen
            and not self.circuit_open
        )

    def _nothing_happened(self, command: Command) -> Settlement:
        return after_nothing_happened(
            command, cancel_wished=command.run.cancel_requested_at is not None, frozen=self.frozen,
            circuit_open=self.circuit_open, failed_check=self.failed_check(command),
        )  # fmt: skip

    def _earlier_effect(self, command: Command) -> bool:
        doubtful = (Effect.HAPPENED, Effect.PARTIAL, Effect.UNKNOWN)
        others = [other for other in self.commands if other != command and other.effect in doubtful]
        return any(other.business_key == command.business_key for other in others)

    def _make(
        self, command: Command, settlement: Settlement, *, by: SettledBy = SettledBy.CHECK,
        effect: Effect = Effect.HAPPENED,
    ) -> str:  # fmt: skip
        """Make the move that the rules ask for."""
        arguments = {
            Move.CONFIRM: {"at": self.now, "by": by, "reference": "re_1", "effect": effect},
            Move.REFUSE: {"at": self.now, "by": by, "code": "refused"},
            Move.GIVE_UP: {"at": self.now, "by": by, "code": "given_up"},
            Move.FREE: {"due_at": self.now},
            Move.RETRY_LATER: {"due_at": self.now + RETRY_IN, "code": "throttled"},
            Move.LOSE_TRACK: {"due_at": self.now + RETRY_IN, "code": "no_answer"},
            Move.HOLD: {"reason": settlement.hold_reason},
            Move.VOID: {"at": self.now, "by": by, "reason": settlement.void_reason},
            Move.CANCEL: {"at": self.now, "by": by},
        }
        if settlement.move is not Move.STAY:
            getattr(command, settlement.move.value)(**arguments[settlement.move])
        return self._moved(command)

    def _moved(self, command: Command) -> str:
        if command.status == C.UNKNOWN:
            self.open_packet(command.step, "unknown")
        if command.status in C.final_states and command not in [ended[0] for ended in self.ended]:
            self.end(command)
        self.settle(command.run)
        return command.status
