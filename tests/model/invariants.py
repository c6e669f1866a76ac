"""What must hold after every step of every life.

Written against the design's text, not against the code's tables.
"""

from collections import Counter

from approvals.enums import Mode, ProposalStatus
from repair.enums import PacketStatus
from tests.model.world import World
from workflows.enums import CommandStatus, Effect, RunStatus, StepStatus, WaitingFor
from workflows.models import Command
from workflows.status import run_status, run_wait

P, C, T, R = ProposalStatus, CommandStatus, StepStatus, RunStatus

# end → (proposal, [(step, what it waits for)], effects): the table of the design's section 4, copied by
# hand.
END_TABLE = {
    "confirmed": ("consumed", ("completed", ""), {"happened", "partial"}),
    "refused": ("consumed", ("waiting", "person"), {"none"}),
    "dead": ("consumed", ("waiting", "person"), {"none"}),
    "void(lapsed)": ("lapsed", ("waiting", "person"), {"none"}),
    "void(policy)": ("invalidated", ("waiting", "person"), {"none"}),
    "void(pin)": ("invalidated", ("waiting", "person"), {"none"}),
    "void(digest)": ("invalidated", ("waiting", "person"), {"none"}),
    "void(signature)": ("invalidated", ("waiting", "person"), {"none"}),
    "void(reviewer)": ("invalidated", ("waiting", "approval"), {"none"}),
    "void(withdrawn)": ("withdrawn", ("skipped", ""), {"none"}),
    "void(superseded)": ("superseded", ("waiting", "approval"), {"none"}),
    "cancelled": ("withdrawn", ("cancelled", ""), {"none", "happened"}),
}


def check(world: World) -> None:
    """Every invariant, in the order of how bad its breach would be."""
    one_effect_at_most(world)
    no_unapproved_effect(world)
    commands_tell_the_truth(world)
    keys_are_held_once(world)
    only_live_proposals_have_commands(world)
    proposals_and_commands_agree(world)
    the_end_table_holds(world)
    statuses_follow(world)
    everything_that_waits_has_a_clock(world)
    what_stopped_has_a_packet(world)


def one_effect_at_most(world: World) -> None:
    """I1, and beyond it: neither one key nor one business key has two effects."""
    keys = Counter(effect.key for effect in world.provider.effects)
    assert all(count == 1 for count in keys.values()), f"two effects under one key: {keys}"
    by_id = {command.pk: command for command in world.commands}
    business = Counter(by_id[effect.command].business_key for effect in world.provider.effects)
    assert all(count == 1 for count in business.values()), f"two effects of one thing: {business}"


def no_unapproved_effect(world: World) -> None:
    """I2: at the moment of *sent*, everything held."""
    assert all(request.lawful for request in world.provider.requests)


def commands_tell_the_truth(world: World) -> None:
    """I5: *none* means none, now and for ever; *confirmed* means exactly one; else it is called unknown."""
    for command in world.commands:
        effects = world.provider.effects_of(command.idempotency_key)
        mine = [effect for effect in effects if effect.command == command.pk]
        if command.effect == Effect.NONE:
            assert not mine, f"{command.status} says nothing happened, and it did"
            assert not world.provider.on_its_way(command.pk), f"{command.status} with a request on its way"
        if command.status == C.CONFIRMED:
            assert len(effects) == 1, "confirmed without exactly one effect"
        assert (command.effect == Effect.UNKNOWN) == (command.status in (C.SENT, C.UNKNOWN))


def keys_are_held_once(world: World) -> None:
    """At most one live command per business key, one per idempotency key, one in flight per target."""
    _once(c.business_key for c in world.commands if c.status in C.live_states)
    _once(c.idempotency_key for c in world.commands if c.status in C.key_holding_states)
    _once(c.target for c in world.commands if c.status in (C.CLAIMED, C.SENT, C.UNKNOWN))
    _once((p.run_id, p.step) for p in world.proposals if p.mode == Mode.LIVE and p.status in P.live_states)


def _once(values) -> None:
    counts = Counter(values)
    assert all(count == 1 for count in counts.values()), counts


def only_live_proposals_have_commands(world: World) -> None:
    assert all(command.proposal.mode == Mode.LIVE == command.mode for command in world.commands)


def proposals_and_commands_agree(world: World) -> None:
    """I3: an approved live proposal has exactly one command, which lives as long as it is *approved*."""
    for proposal in world.proposals:
        if proposal.mode != Mode.LIVE:
            continue
        command = world.command_of(proposal)
        if proposal.status == P.APPROVED:
            assert command is not None
            assert command.status in C.live_states
            assert proposal.decided_at < proposal.decide_by, "approved late"
        elif command is not None:
            assert command.status in C.final_states, (
                f"{proposal.status} with a command that is {command.status}"
            )
        elif proposal.status in (P.CONSUMED, P.LAPSED):
            raise AssertionError(f"{proposal.status} without a command")


def end_of(command: Command) -> str:
    return f"void({command.void_reason})" if command.status == C.VOID else command.status


def the_end_table_holds(world: World) -> None:
    ended = {entry[0].pk: entry for entry in world.ended}
    for command in world.commands:
        if command.status in C.final_states:
            _, proposal, step, waits_for = ended[command.pk]
            wanted_proposal, wanted_step, effects = END_TABLE[end_of(command)]
            assert (proposal, (step, waits_for)) == (wanted_proposal, wanted_step), end_of(command)
            assert command.proposal.status == wanted_proposal, "an end has changed afterwards"
            assert command.effect in effects
            assert command.settled_by
            assert (
                command.effect == Effect.NONE
                or command.status == C.CONFIRMED
                or command.settled_by == "person"
            )


def statuses_follow(world: World) -> None:
    for run in world.runs:
        commands = [command for command in world.commands if command.run == run]
        assert run.status == run_status(world.steps[run.pk], commands)
        live = [command.status for command in commands if command.status in C.live_states]
        if run.status in R.final_states:
            assert not live, f"{run.status} with {live}"
            assert run.outcome
            assert all(step.status in T.final_states for step in world.steps[run.pk])


def everything_that_waits_has_a_clock(world: World) -> None:
    """A silent queue cannot exist."""
    for run in world.runs:
        waits = run.status not in R.unclocked_states
        assert (run_wait(R(run.status), world.steps[run.pk], world.now) is not None) == waits
        assert (run.waiting_until is not None) == waits
        assert bool(run.on_expiry) == waits
        for step in world.steps[run.pk]:
            assert (step.status == T.WAITING) == (step.waiting_until is not None) == bool(step.waiting_for)
            assert (step.status == T.RUNNING) == (step.lease_token is not None)
    for command in world.commands:
        if command.status in (C.READY, C.RETRY_WAIT, C.UNKNOWN):
            assert command.due_at is not None, f"{command.status} that nobody will look at"
        assert (command.lease_token is not None) == (command.status in (C.CLAIMED, C.SENT))


def what_stopped_has_a_packet(world: World) -> None:
    """I3: where nothing moves by itself, a person is being asked."""
    for run in world.runs:
        for step in world.steps[run.pk]:
            stopped = step.status == T.WAITING and step.waiting_for == WaitingFor.PERSON
            assert not stopped or world.packets_of(step), f"{step.key} stopped and nobody is asked"
    for packet in world.packets:
        if packet.status in PacketStatus.open_states:
            assert packet.run.status not in R.final_states


class Finals:
    """Final is final: remembers every final state that it has seen."""

    def __init__(self) -> None:
        self.seen: dict[object, str] = {}

    def check(self, world: World) -> None:
        rows = [
            *world.runs,
            *world.proposals,
            *world.commands,
            *(s for steps in world.steps.values() for s in steps),
        ]
        for row in rows:
            before = self.seen.get(row.pk)
            assert before in (None, row.status), f"{type(row).__name__} went from {before} to {row.status}"
            final = {"Run": R, "Proposal": P, "Command": C, "Step": T}[type(row).__name__].final_states
            if row.status in final:
                self.seen[row.pk] = row.status
