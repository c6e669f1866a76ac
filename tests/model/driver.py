"""What would happen next if nothing went wrong: keeps random lives moving, and drains them at the end."""

from collections.abc import Callable
from datetime import timedelta

from approvals.enums import ProposalStatus
from tests import rows
from tests.model.provider import SETTLE_TIME
from tests.model.world import World
from workflows.classify import Meaning
from workflows.enums import CommandStatus
from workflows.models import Attempt, Command, Run

C = CommandStatus
Next = Callable[[], object]


def natural_moves(world: World) -> list[Next]:
    """One for everything that could go on at this moment."""
    moves = [move for run in world.runs for move in _of_run(world, run)]
    moves += [move for command in world.commands for move in _of_command(world, command)]
    for proposal in world.proposals:
        fresh = [
            name for name, active in world.active.items() if active and name not in world.votes[proposal.pk]
        ]
        if proposal.status == ProposalStatus.PENDING and world.now < proposal.decide_by and fresh:
            moves.append(lambda p=proposal, name=fresh[0]: world.vote(p, name))
    return moves


def _of_run(world: World, run: Run) -> list[Next]:
    step = world.next_step(run)
    if step is None:
        return []
    own = {**rows.REFUND, "order": str(world.runs.index(run))}
    return [
        (lambda: world.propose(run, arguments=own)) if step.key == "refund" else (lambda: world.work(step))
    ]


def _of_command(world: World, command: Command) -> list[Next]:
    match command.status:
        case C.READY | C.RETRY_WAIT:
            return [lambda: _claim_and_send(world, command)]
        case C.CLAIMED | C.SENT:
            holder = next(a for a in world.attempts if a.token == command.lease_token)
            if command.status == C.CLAIMED:
                return [lambda: world.send(holder)]
            return [lambda: _answer(world, holder)]
        case _:
            return []


def _claim_and_send(world: World, command: Command) -> None:
    if command.due_at is not None and world.now < command.due_at:
        world.advance(command.due_at - world.now)
    world.send(world.claim(command))


def _answer(world: World, attempt: Attempt) -> None:
    request = world.sent[attempt.pk]
    if request.state == "on_its_way":
        world.provider.apply(request)
    world.answer(attempt, Meaning.CONFIRMED if request.state == "applied" else Meaning.NOT_EXECUTED)


def drain(world: World) -> None:
    """Let workers, reconciler and sweep go on until nothing moves by itself; then nothing may be left
    live.
    """
    world.frozen = world.circuit_open = False
    for _ in range(12):
        world.advance(SETTLE_TIME + timedelta(seconds=1))
        for command in list(world.commands):
            if command.status in (C.CLAIMED, C.SENT):
                world.lose_lease(command)
            elif command.status == C.UNKNOWN:
                world.reconcile(command)
            elif command.status in (C.READY, C.RETRY_WAIT, C.HELD):
                world.look_again(command)
    live = [command.status for command in world.commands if command.status in C.live_states]
    assert not live, f"after all faults have stopped, still {live}"
