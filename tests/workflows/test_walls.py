"""Every wall of the workflows and repair tables is broken on purpose, as the application role, and named."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Model

from approvals.enums import Mode, ProposalStatus
from common.fsm import allowed_moves
from common.ids import new_id
from repair.enums import PacketStatus
from repair.models import RepairPacket
from tests import factories as f
from tests import rows
from tests.repair import incident_walls, repair_walls
from tests.walls import WAYS, another_value, delete_by_sql, insert, names_in, refused_by
from tests.workflows import callback_walls, endpoint_walls, hold_walls, legal_hold_walls, replay_walls
from workflows.enums import AttemptStatus, CommandStatus, Effect, RunStatus, SettledBy, StepStatus
from workflows.models import Attempt, Command, Definition, Document, Lookup, Run, SourceEvent, Step

pytestmark = pytest.mark.django_db

A, C, R, T = AttemptStatus, CommandStatus, RunStatus, StepStatus
NOW = rows.now()
ENDED = {"ended_at": NOW, "lease_token": None, "lease_until": None}


def other_tenant() -> Any:
    return f.make_tenant().pk


def command_row(proposal: Any = None, **fields: Any) -> Command:
    """Not saved; of an approved proposal that has no command."""
    proposal = proposal or f.make_proposal(status="approved")
    run = Run.objects.get(pk=proposal.run_id)
    row = rows.command_row(proposal, run, run.steps.get(key=proposal.step))
    for name, value in fields.items():
        row.__dict__.pop(name, None)  # a protected state may be set where there is none
        setattr(row, name, value)
    return row


def command_beside(first: Command, **same: Any) -> Command:
    """Of another proposal of the tenant, equal to ``first`` in the named fields only."""
    defaults = {
        "idempotency_key": "another",
        "business_key": "another",
        "target": "another",
        "provider": "another",
    }
    return command_row(f.make_proposal(status="approved", tenant=first.tenant), **(defaults | same))


def command_of_a_shadow() -> Command:
    shadow = f.make_proposal(status="approved", mode=Mode.SHADOW)
    return command_row(shadow, mode=Mode.LIVE)


def command_that_admits_to_be_a_shadow() -> Command:
    return command_row(f.make_proposal(status="approved", mode=Mode.SHADOW))


def same_key(status: str) -> Command:
    first = f.make_command(status=status)
    return command_beside(first, idempotency_key=first.idempotency_key)


def same_business() -> Command:
    first = f.make_command(status=C.UNKNOWN)
    return command_beside(first, business_key=first.business_key)


def step_beside(**same: Any) -> Step:
    first = f.make_step()
    return rows.step_row(
        first.run, **({"key": "another", "position": 7} | {n: getattr(first, n) for n in same})
    )


def attempt_beside(**same: Any) -> Attempt:
    first = f.make_attempt(f.make_command())
    return rows.attempt_row(first.command, **({"number": 7} | {n: getattr(first, n) for n in same}))


def definition(**fields: Any) -> Definition:
    defaults = {"kind": "policy", "name": "limit", "version": 1, "content_hash": "x", "registered_at": NOW}
    return Definition(**(defaults | fields))


def definition_beside(**fields: Any) -> Definition:
    definition().save()
    return definition(**fields)


def packet_beside() -> RepairPacket:
    first = f.make_packet()
    return rows.packet_row(first.run)


def second_event() -> SourceEvent:
    return rows.source_event_row(f.make_run())


def an_event() -> SourceEvent:
    return f.make_run().source_events.get()


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("workflows_definition_version", lambda: definition_beside(is_current=False)),
    ("workflows_definition_one_current", lambda: definition_beside(version=2)),
    ("workflows_run_moves", lambda: rows.run_row(f.make_tenant(), status=R.COMPLETED)),
    ("workflows_run_original_tenant", lambda: rows.run_row(f.make_tenant(), kind="replay", original=f.make_run())),
    ("workflows_run_replay_names_its_original", lambda: rows.run_row(f.make_tenant(), kind="replay")),
    ("workflows_run_finished_once_final", lambda: rows.run_row(f.make_tenant(), finished_at=NOW)),
    ("workflows_step_moves", lambda: rows.step_row(f.make_run(), status=T.COMPLETED)),
    ("workflows_step_run_tenant", lambda: rows.step_row(f.make_run(), tenant_id=other_tenant())),
    ("workflows_step_once", lambda: step_beside(key=True)),
    ("workflows_step_position", lambda: step_beside(position=True)),
    ("workflows_sourceevent_run_tenant", lambda: rows.source_event_row(f.make_run(), tenant_id=other_tenant())),
    ("workflows_sourceevent_once", second_event),
    ("workflows_command_moves", lambda: command_row(status=C.CONFIRMED)),
    ("workflows_command_of_a_live_proposal", command_of_a_shadow),
    ("workflows_command_of_a_live_proposal", lambda: command_row(tenant_id=other_tenant())),
    ("workflows_command_only_live", command_that_admits_to_be_a_shadow),
    ("workflows_command_run_tenant", lambda: command_row(run=f.make_run())),
    ("workflows_command_step_tenant", lambda: command_row(step=f.make_step())),
    ("workflows_command_one_per_key", lambda: same_key(C.UNKNOWN)),
    ("workflows_command_one_per_key", lambda: same_key(C.CONFIRMED)),
    ("workflows_command_one_live_per_business_key", same_business),
    ("workflows_command_waits_with_a_clock", lambda: command_row(due_at=None)),
    ("workflows_attempt_moves", lambda: rows.attempt_row(f.make_command(), status=A.SENT)),
    ("workflows_attempt_command_tenant", lambda: rows.attempt_row(f.make_command(), tenant_id=other_tenant())),
    ("workflows_attempt_number", lambda: attempt_beside(number=True)),
    ("workflows_attempt_token", lambda: attempt_beside(token=True)),
    ("workflows_lookup_command_tenant", lambda: rows.lookup_row(f.make_command(), tenant_id=other_tenant())),
    ("workflows_lookup_finding_known", lambda: rows.lookup_row(f.make_command(), finding="perhaps")),
    ("repair_packet_moves", lambda: rows.packet_row(f.make_run(), status="resolved")),
    ("repair_packet_run_tenant", lambda: rows.packet_row(f.make_run(), tenant_id=other_tenant())),
    ("repair_packet_waits_with_a_clock", lambda: rows.packet_row(f.make_run(), on_expiry="")),
    ("repair_packet_one_open_per_cause", packet_beside),
    *repair_walls.INSERTS,
    *incident_walls.INSERTS,
    *hold_walls.INSERTS,
    *legal_hold_walls.INSERTS,
    *endpoint_walls.INSERTS,
    *callback_walls.INSERTS,
    *replay_walls.INSERTS,
]  # fmt: skip


@pytest.mark.parametrize(("wall", "make"), INSERTS, ids=[f"{i[0]}-{n}" for n, i in enumerate(INSERTS)])
def test_insert_is_refused(wall: str, make: Callable[[], Model]) -> None:
    row = make()
    with refused_by(wall):
        insert(row)


def command(status: str) -> Callable[[], Model]:
    return lambda: f.make_command(status=status)


def in_flight_beside() -> Command:
    first = f.make_command(status=C.SENT)
    second = command_beside(first, provider=first.provider, target=first.target)
    second.save()
    return second


CLAIM = {"status": C.CLAIMED, "lease_token": new_id(), "lease_until": NOW}
UPDATES: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("workflows_run_moves", lambda: f.make_run(status=R.COMPLETED), {"status": R.RUNNING}),
    ("workflows_run_waits_with_a_clock", f.make_run, {"status": R.WAITING_FOR_DATA}),
    ("workflows_run_finished_once_final", f.make_run, {"status": R.COMPLETED, "outcome": "done"}),
    ("workflows_run_final_has_outcome", f.make_run, {"status": R.FAILED, "finished_at": NOW}),
    ("workflows_step_moves", lambda: f.make_step(status=T.SKIPPED), {"status": T.RUNNING}),
    ("workflows_step_waits_for_something_with_a_clock", f.make_step, {"status": T.WAITING}),
    ("workflows_step_waits_for_something_with_a_clock", f.make_step, {"waiting_for": "data"}),
    ("workflows_step_running_has_a_lease", f.make_step, {"status": T.RUNNING}),
    ("workflows_step_finished_once_final", f.make_step, {"status": T.COMPLETED}),
    ("workflows_command_moves", command(C.REFUSED), {"status": C.READY}),
    ("workflows_command_confirmed_happened", command(C.SENT), {
        "status": C.CONFIRMED, "effect": Effect.NONE, "settled_by": SettledBy.ANSWER, **ENDED}),
    ("workflows_command_confirmed_happened", command(C.SENT), {
        "status": C.CONFIRMED, "effect": Effect.HAPPENED, **ENDED}),
    ("workflows_command_refused_dead_void_have_no_effect", command(C.SENT), {
        "status": C.REFUSED, "effect": Effect.HAPPENED, **ENDED}),
    ("workflows_command_moves", command(C.CONFIRMED), {"status": C.DEAD}),
    ("workflows_command_cancelled_with_effect_only_by_a_person", command(C.READY), {
        "status": C.CANCELLED, "effect": Effect.HAPPENED, "settled_by": SettledBy.CHECK, **ENDED}),
    ("workflows_command_not_known_is_called_unknown", command(C.CLAIMED), {"status": C.SENT}),
    ("workflows_command_not_known_is_called_unknown", command(C.READY), {"effect": Effect.UNKNOWN}),
    ("workflows_command_void_says_why", command(C.READY), {"status": C.VOID, **ENDED}),
    ("workflows_command_void_says_why", command(C.READY), {"void_reason": "policy"}),
    ("workflows_command_held_says_why", command(C.READY), {"status": C.HELD}),
    ("workflows_command_worked_on_has_a_lease", command(C.READY), {"status": C.CLAIMED}),
    ("workflows_command_worked_on_has_a_lease", command(C.READY), {"lease_token": new_id()}),
    ("workflows_command_waits_with_a_clock", command(C.UNKNOWN), {"due_at": None}),
    ("workflows_command_resent_is_in_doubt", command(C.READY), {"resent": True}),
    ("workflows_command_ended_once_final", command(C.READY), {"status": C.DEAD}),
    ("workflows_command_one_in_flight_per_target", in_flight_beside, CLAIM),
    ("workflows_command_bound", command(C.VOID), {"ended_at": NOW - timedelta(days=1)}),
    ("workflows_attempt_moves", lambda: f.make_attempt(f.make_command(), status=A.RELEASED), {"status": A.SENT}),
    ("workflows_attempt_sent_has_its_time", lambda: f.make_attempt(f.make_command()), {"status": A.SENT}),
    ("workflows_attempt_ended_once_final", lambda: f.make_attempt(f.make_command()), {"status": A.RELEASED}),
    ("repair_packet_moves", lambda: f.make_packet(status="resolved"), {"status": "open"}),
    ("repair_packet_ended_says_how", f.make_packet, {"status": "resolved", "ended_at": NOW}),
    *incident_walls.UPDATES,
    *hold_walls.UPDATES,
    *endpoint_walls.UPDATES,
    *callback_walls.UPDATES,
]  # fmt: skip


@pytest.mark.parametrize(
    ("wall", "make", "changes"), UPDATES, ids=[f"{u[0]}-{n}" for n, u in enumerate(UPDATES)]
)
def test_update_is_refused(wall: str, make: Callable[[], Model], changes: dict[str, Any]) -> None:
    row = make()
    for way in WAYS:
        with refused_by(wall):
            way(row, changes)


FROZEN: list[tuple[str, Callable[[], Model], list[str]]] = [
    ("workflows_definition_bound", lambda: saved(definition()), ["kind", "name", "version", "content_hash"]),
    ("workflows_document_frozen", lambda: saved(rows.document_row(f.make_run())), [
        "tenant", "run_id", "kind", "content", "digest"]),
    ("workflows_run_bound", f.make_run, [
        "tenant", "kind", "original", "workflow", "workflow_version", "stage", "requested_by", "on_behalf_of",
        "excluded_users", "source_system", "source_event_id", "source_record", "source_sequence", "input_ref",
        "input_hash", "callback", "created_at"]),
    ("workflows_step_bound", f.make_step, ["tenant", "run", "key", "position", "kind"]),
    ("workflows_sourceevent_bound", an_event, [
        "tenant", "workflow", "system", "event_id", "key", "record", "sequence", "input_hash", "run"]),
    ("workflows_command_bound", f.make_command, [
        "tenant", "proposal", "mode", "run", "step", "operation", "operation_version", "provider", "target",
        "business_key", "idempotency_key", "created_at"]),
    ("workflows_attempt_bound", lambda: f.make_attempt(f.make_command()), [
        "tenant", "command", "number", "worker", "token", "claimed_at"]),
    ("workflows_lookup_frozen", lambda: f.make_lookup(f.make_command()), [
        "tenant", "command", "asked_at", "ended_at", "finding", "provider_reference", "settled"]),
    ("repair_packet_bound", f.make_packet, ["tenant", "run", "step", "cause", "opened_at"]),
    *repair_walls.FROZEN,
    *incident_walls.FROZEN,
    *hold_walls.FROZEN,
    *legal_hold_walls.FROZEN,
    *endpoint_walls.FROZEN,
    *callback_walls.FROZEN,
    *replay_walls.FROZEN,
]  # fmt: skip


def saved(row: Any) -> Any:
    row.save()
    return row


@pytest.mark.parametrize(("wall", "make", "columns"), FROZEN, ids=[name for name, _, _ in FROZEN])
def test_bound_columns_never_change_and_rows_stay(
    wall: str, make: Callable[[], Model], columns: list[str]
) -> None:
    row = make()
    for column in columns:
        for way in WAYS:
            with refused_by(wall):
                way(row, {column: another_value(row, column)})
    with refused_by(wall):
        delete_by_sql(row)


MACHINES: list[tuple[str, type[Model], type, Callable[[str], Model]]] = [
    ("workflows_run_moves", Run, R, lambda s: f.make_run(status=s)),
    ("workflows_step_moves", Step, T, lambda s: f.make_step(status=s)),
    ("workflows_command_moves", Command, C, lambda s: f.make_command(status=s)),
    ("workflows_attempt_moves", Attempt, A, lambda s: f.make_attempt(f.make_command(), status=s)),
    ("repair_packet_moves", RepairPacket, PacketStatus, lambda s: f.make_packet(status=s)),
    *incident_walls.MACHINES,
    *hold_walls.MACHINES,
    *callback_walls.MACHINES,
]  # fmt: skip
EVERY_STATE = [(*machine, source) for machine in MACHINES for source in machine[2].values]


@pytest.mark.parametrize(
    ("wall", "model", "states", "make", "source"),
    EVERY_STATE,
    ids=[f"{e[1].__name__}-{e[4]}" for e in EVERY_STATE],
)
def test_every_undeclared_move_is_refused_whichever_way(
    wall: str, model: type[Model], states: Any, make: Callable[[str], Model], source: str
) -> None:
    row = make(source)
    allowed = {target for start, target in allowed_moves(model) if start == source}
    for target in set(states.values) - allowed - {source}:
        for way in WAYS:
            with refused_by(wall):
                way(row, {"status": target})


ON_OWNER: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("workflows_run_status_known", f.make_run, {
        "wait_id": new_id(), "waiting_until": NOW, "on_expiry": "fail"}),
    ("workflows_step_status_known", f.make_step, {}),
    ("workflows_command_status_known", f.make_command, {}),
    ("workflows_attempt_status_known", lambda: f.make_attempt(f.make_command()), {"ended_at": NOW, "sent_at": NOW}),
    ("repair_packet_status_known", f.make_packet, {"ended_at": NOW, "resolution": "x"}),
    *incident_walls.ON_OWNER,
    *hold_walls.ON_OWNER,
]  # fmt: skip


@pytest.mark.parametrize(("wall", "make", "beside"), ON_OWNER, ids=[name for name, _, _ in ON_OWNER])
def test_unknown_states_are_refused_even_without_triggers(
    wall: str, make: Callable[[], Model], beside: dict[str, Any]
) -> None:
    row = make()
    with refused_by(wall):
        type(row)._default_manager.using("owner").filter(pk=row.pk).update(status="bogus", **beside)


def test_a_key_is_free_again_once_it_is_certain_that_nothing_happened() -> None:
    first = f.make_command(status=C.REFUSED)
    second = command_beside(first, idempotency_key=first.idempotency_key, business_key=first.business_key)
    second.save()
    assert Command.objects.filter(idempotency_key=first.idempotency_key).count() == 2


def test_a_proposal_in_any_state_keeps_its_one_command() -> None:
    first = f.make_command(status=C.REFUSED)
    second = rows.command_row(first.proposal, first.run, first.step)
    with refused_by("workflows_command_proposal_id_key"):
        insert(second)
    assert first.proposal.status == ProposalStatus.APPROVED


def test_every_wall_is_broken_here() -> None:
    broken = {entry[0] for table in (INSERTS, UPDATES, FROZEN, MACHINES, ON_OWNER) for entry in table}
    # Targets of composite foreign keys: the primary key is refused first.
    targets = {
        "workflows_document_tenant_id", "workflows_run_tenant_id", "workflows_step_tenant_id",
        "workflows_command_tenant_id", "workflows_endpoint_tenant_id", "workflows_callbackendpoint_tenant_id",
        *repair_walls.TARGETS, *incident_walls.TARGETS, *replay_walls.TARGETS,
    }  # fmt: skip
    assert names_in("workflows") | names_in("repair") == broken | targets
    assert {model.__name__ for model in (Document, Lookup, SourceEvent)}
