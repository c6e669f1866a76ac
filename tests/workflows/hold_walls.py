"""The walls of holds and attestations: what `test_walls` breaks of them, table by table."""

from collections.abc import Callable
from typing import Any

from django.db.models import Model

from tests import factories as f
from tests import rows
from workflows.enums import CommandStatus, HoldReason, HoldStatus
from workflows.models import Attestation, Command, Hold

C, H = CommandStatus, HoldStatus
NOW = rows.now()
FREEZE, CIRCUIT = HoldReason.FREEZE, HoldReason.CIRCUIT


def hold_row(**fields: Any) -> Hold:
    """A freeze of one tenant, not saved."""
    tenant = fields.pop("tenant", None) or f.make_tenant()
    return rows.made(Hold, {
        "tenant": tenant, "reason": FREEZE, "why": "the payments look wrong", "placed_by": "user:ada", "placed_at": NOW,
    }, fields)  # fmt: skip


def make_hold(status: str = H.IN_FORCE, **fields: Any) -> Hold:
    hold = hold_row(**fields)
    hold.save()
    for name in rows.path_to(Hold, status):
        rows.moved(hold, name, NOW)
        hold.save()
    return hold


def circuit(**fields: Any) -> dict[str, Any]:
    return {"reason": CIRCUIT, "provider": "payments", "until": NOW, "pause_s": 30, **fields}


def second_circuit() -> Hold:
    first = make_hold(**circuit())
    return hold_row(tenant=first.tenant, **circuit())


def attestation_row(command: Command | None = None, **fields: Any) -> Attestation:
    command = command or f.make_command(status=C.UNKNOWN)
    return rows.made(Attestation, {
        "tenant_id": command.tenant_id, "command": command, "user": f.make_user(command.tenant), "role": "operator",
        "says": "did_not_happen", "reason": "their journal does not show it", "tries": 1, "at": NOW,
    }, fields)  # fmt: skip


def second_word() -> Attestation:
    first = attestation_row()
    first.save()
    return attestation_row(first.command, user=first.user)


def make_attestation() -> Attestation:
    row = attestation_row()
    row.save()
    return row


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("workflows_hold_moves", lambda: hold_row(status=H.TRIAL, trial_command_id=rows.new_id())),
    ("workflows_hold_reason_known", lambda: hold_row(until=NOW)),
    ("workflows_hold_reason_known", lambda: hold_row(**circuit(provider=""))),
    ("workflows_hold_version_of_a_workflow", lambda: hold_row(workflow_version=2)),
    ("workflows_hold_scope_within_a_tenant", lambda: Hold(
        reason=FREEZE, operation="refunds.issue", why="w", placed_by="command_line:root", placed_at=NOW)),
    ("workflows_hold_scope_within_a_tenant", lambda: Hold(
        reason=FREEZE, runs=[rows.new_id()], why="w", placed_by="command_line:root", placed_at=NOW)),
    ("workflows_hold_names_so_many_runs", lambda: hold_row(runs=[])),
    ("workflows_hold_names_so_many_runs", lambda: hold_row(runs=[rows.new_id() for _ in range(2_001)])),
    ("workflows_hold_one_circuit_per_provider", second_circuit),
    ("workflows_attestation_command_tenant", lambda: attestation_row(tenant_id=f.make_tenant().pk)),
    ("workflows_attestation_says_known", lambda: attestation_row(says="perhaps", reference="re_1")),
    ("workflows_attestation_effect_has_its_reference", lambda: attestation_row(says="happened")),
    ("workflows_attestation_one_standing_word", second_word),
]  # fmt: skip

UPDATES: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("workflows_hold_moves", lambda: make_hold(H.LIFTED), {"status": H.IN_FORCE}),
    ("workflows_hold_trial_names_its_command", lambda: make_hold(**circuit()), {"status": H.TRIAL}),
    ("workflows_hold_says_when_lifted", make_hold, {"status": H.LIFTING}),
    ("workflows_command_held_names_the_hold", f.make_command, {"status": C.HELD, "hold_reason": FREEZE}),
    ("workflows_command_restored_is_in_doubt", f.make_command, {"restored": True}),
]  # fmt: skip

FROZEN: list[tuple[str, Callable[[], Model], list[str]]] = [
    ("workflows_hold_bound", make_hold, [
        "tenant", "reason", "workflow", "workflow_version", "operation", "provider", "target", "runs", "why",
        "placed_by", "placed_at"]),
    ("workflows_attestation_bound", make_attestation, [
        "tenant", "command", "says", "user", "role", "reference", "reason", "tries", "at"]),
]  # fmt: skip

MACHINES: list[tuple[str, type[Model], type, Callable[[str], Model]]] = [
    ("workflows_hold_moves", Hold, H, make_hold),
]

ON_OWNER: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("workflows_hold_status_known", make_hold, {}),
]
