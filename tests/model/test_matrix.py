"""The whole matrix: every state of every row against every transition, allowed or refused, as one table.

The table is written by hand from the design. It is what a reader checks the declarations against.
"""

from itertools import product
from typing import Any

import pytest
from django.db.models import Model
from django_fsm import FSMField, TransitionNotAllowed

from approvals.models import Proposal
from common.fsm import allowed_moves
from common.states_ui import STATES
from repair.models import RepairPacket
from repair.models_incidents import Incident
from tests import rows
from tests.workflows import callback_walls, hold_walls
from workflows.enums import RunStatus
from workflows.models import Attempt, CallbackCall, Command, Hold, Run, Step

# model → state → {transition: where it leads}. What is not here is refused; final states are visibly empty.
MATRIX: dict[type[Model], dict[str, dict[str, str]]] = {
    Proposal: {
        "pending": {
            "approve": "approved", "reject": "rejected", "request_changes": "changes_requested", "expire": "expired",
            "withdraw": "withdrawn", "supersede": "superseded", "invalidate": "invalidated",
        },
        "approved": {
            "consume": "consumed", "lapse": "lapsed", "invalidate": "invalidated", "withdraw": "withdrawn",
            "supersede": "superseded",
        },
        "changes_requested": {"expire": "expired", "withdraw": "withdrawn", "supersede": "superseded"},
        "rejected": {}, "expired": {}, "withdrawn": {}, "superseded": {}, "invalidated": {}, "consumed": {},
        "lapsed": {},
    },
    Command: {
        "ready": {
            "claim": "claimed", "hold_back": "held", "give_up": "dead", "cancel": "cancelled", "make_void": "void",
            "doubt": "unknown",
        },
        "claimed": {
            "send": "sent", "free": "ready", "retry_later": "retry_wait", "hold_back": "held", "give_up": "dead",
            "cancel": "cancelled", "make_void": "void", "doubt": "unknown",
        },
        "sent": {
            "free": "ready", "retry_later": "retry_wait", "lose_track": "unknown", "confirm": "confirmed",
            "refuse": "refused", "give_up": "dead", "doubt": "unknown",
        },
        "retry_wait": {
            "claim": "claimed", "hold_back": "held", "give_up": "dead", "cancel": "cancelled", "make_void": "void",
            "doubt": "unknown",
        },
        "held": {
            "free": "ready", "give_up": "dead", "cancel": "cancelled", "make_void": "void", "doubt": "unknown",
        },
        "unknown": {
            "send_again": "sent", "free": "ready", "hold_back": "held", "confirm": "confirmed", "refuse": "refused",
            "cancel": "cancelled", "make_void": "void",
        },
        "confirmed": {}, "refused": {}, "dead": {}, "cancelled": {}, "void": {},
    },
    Attempt: {
        "claimed": {"send": "sent", "release": "released"},
        "sent": {"answer": "answered", "no_answer": "no_answer", "release": "released"},
        "answered": {}, "no_answer": {}, "released": {},
    },
    Hold: {
        "in_force": {"try_one": "trial", "lift": "lifting"},
        "trial": {"hold_on": "in_force", "lift": "lifting"},
        "lifting": {"end": "lifted"},
        "lifted": {},
    },
    CallbackCall: {
        "pending": {"deliver": "delivered", "supersede": "superseded", "give_up": "dead"},
        "dead": {"send_again": "pending"},
        "delivered": {}, "superseded": {},
    },
    Step: {
        "pending": {
            "start": "running", "wait": "waiting", "complete": "completed", "fail": "failed", "skip": "skipped",
            "cancel": "cancelled",
        },
        "running": {
            "release": "pending", "wait": "waiting", "complete": "completed", "fail": "failed", "cancel": "cancelled",
        },
        "waiting": {
            "start": "running", "resume": "pending", "wait": "waiting", "complete": "completed", "fail": "failed",
            "skip": "skipped", "cancel": "cancelled",
        },
        "completed": {}, "failed": {}, "skipped": {}, "cancelled": {},
    },
    RepairPacket: {
        "open": {
            "take": "in_progress", "await_second": "awaiting_second", "resolve": "resolved", "abandon": "abandoned",
        },
        "in_progress": {
            "give_back": "open", "await_second": "awaiting_second", "resolve": "resolved", "abandon": "abandoned",
        },
        "awaiting_second": {"take": "in_progress", "resolve": "resolved", "abandon": "abandoned"},
        "resolved": {}, "abandoned": {},
    },
    Incident: {
        "open": {"contain": "contained", "close": "closed"},
        "contained": {"close": "closed"},
        "closed": {},
    },
}  # fmt: skip


def field_of(model: type[Model]) -> FSMField:
    field = model._meta.get_field("status")
    assert isinstance(field, FSMField)
    return field


def states_of(model: type[Model]) -> list[str]:
    return [value for value, _ in field_of(model).flatchoices]


def transitions_of(model: type[Model]) -> list[str]:
    return sorted({move.name for move in field_of(model).get_all_transitions(model)})


def row_in(model: type[Model], status: str) -> Any:
    """In memory, brought there by the shortest declared way."""
    run = rows.run_row(rows.tenant_row())
    step = rows.step_row(run)
    proposal = rows.proposal_row(run, step)
    command = rows.command_row(proposal, run, step)
    made = {Proposal: proposal, Command: command, Step: step, Attempt: rows.attempt_row(command)}
    made[Hold] = hold_walls.hold_row(tenant=run.tenant)
    made[Incident] = rows.made(Incident, {"tenant": run.tenant}, {})
    made[CallbackCall] = callback_walls.call_row(callback_walls.destination_row(tenant=run.tenant), run=run)
    row = made.get(model) or rows.packet_row(run)
    for name in rows.path_to(model, status):
        rows.moved(row, name, rows.now())
    return row


PAIRS = [
    (model, state, transition)
    for model in MATRIX
    for state, transition in product(states_of(model), transitions_of(model))
]


@pytest.mark.parametrize(
    ("model", "state", "transition"), PAIRS, ids=[f"{m.__name__}-{s}-{t}" for m, s, t in PAIRS]
)
def test_every_pair(model: type[Model], state: str, transition: str) -> None:
    row = row_in(model, state)
    target = MATRIX[model][state].get(transition)
    before = dict(row.__dict__)
    if target is None:
        with pytest.raises(TransitionNotAllowed):
            rows.moved(row, transition, rows.now())
        assert row.__dict__ == before, "a refused transition changed something"
    else:
        rows.moved(row, transition, rows.now())
        assert row.status == target


def test_the_table_covers_every_state_and_every_transition() -> None:
    for model, table in MATRIX.items():
        assert set(table) == set(states_of(model))
        assert {name for moves in table.values() for name in moves} == set(transitions_of(model))


def test_the_table_is_what_the_database_allows() -> None:
    for model, table in MATRIX.items():
        by_hand = sorted({(state, target) for state, moves in table.items() for target in moves.values()})
        assert allowed_moves(model) == by_hand


@pytest.mark.parametrize("source", RunStatus.values)
@pytest.mark.parametrize("target", RunStatus.values)
def test_every_pair_of_a_run(source: str, target: str) -> None:
    """A run's status is computed: from any live status every other is one move away, but none back to *queued*."""
    allowed = source not in RunStatus.final_states and target != RunStatus.QUEUED
    assert ((source, target) in allowed_moves(Run)) == allowed


def test_every_model_with_a_state_is_in_a_table() -> None:
    from django.apps import apps

    with_state = {
        model for label in ("approvals", "workflows", "repair") for model in apps.get_app_config(label).get_models()
        if any(isinstance(field, FSMField) for field in model._meta.fields)
    }  # fmt: skip
    assert with_state == {*MATRIX, Run}


@pytest.mark.parametrize(
    ("thing", "model"),
    [("run", Run), ("step", Step), ("proposal", Proposal), ("command", Command), ("attempt", Attempt),
     ("packet", RepairPacket), ("incident", Incident), ("hold", Hold), ("callback", CallbackCall)],
)  # fmt: skip
def test_every_state_has_a_word_for_people(thing: str, model: type[Model]) -> None:
    assert set(STATES[thing]) == set(states_of(model))


@pytest.mark.parametrize("transition", ["free", "retry_later", "refuse", "give_up"])
def test_no_to_a_second_send_does_not_settle_the_first(transition: str) -> None:
    command = row_in(Command, "unknown")
    rows.moved(command, "send_again", rows.now())
    assert (command.status, command.effect, command.tries) == ("sent", "unknown", 2)
    with pytest.raises(TransitionNotAllowed):
        rows.moved(command, transition, rows.now())


def test_from_unknown_a_settled_no_counts_after_a_second_send_too() -> None:
    command = row_in(Command, "unknown")
    rows.moved(command, "send_again", rows.now())
    rows.moved(command, "lose_track", rows.now())
    with pytest.raises(TransitionNotAllowed):
        rows.moved(command, "refuse", rows.now())
    rows.moved(command, "free", rows.now())
    assert (command.status, command.effect, command.resent) == ("ready", "none", False)
