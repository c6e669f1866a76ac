"""The walls of replays: what `tests.workflows.test_walls` breaks of them."""

from collections.abc import Callable
from typing import Any

from django.db.models import Model

from tests import factories as f
from tests import rows
from workflows.models import Replay

NOW = rows.now()


def replay_row(**fields: Any) -> Replay:
    original = f.make_run()
    run = fields.get("run") or f.make_run(original.tenant, kind="replay", original=original)
    return rows.made(Replay, {
        "tenant_id": run.tenant_id, "run": run, "versions": "now", "effects": "dry",
        "asked_by": f.make_user(run.tenant), "reason": "to see it", "at": NOW,
    }, fields)  # fmt: skip


def saved(**fields: Any) -> Replay:
    row = replay_row(**fields)
    row.save()
    return row


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("workflows_replay_run_tenant", lambda: replay_row(tenant_id=f.make_tenant().pk)),
    ("workflows_replay_versions_known", lambda: replay_row(versions="old")),
    ("workflows_replay_effects_known", lambda: replay_row(effects="all")),
]

FROZEN: list[tuple[str, Callable[[], Model], list[str]]] = [
    ("workflows_replay_frozen", saved, [
        "tenant", "run", "versions", "effects", "fresh", "bound", "asked_by", "reason", "at"]),
]  # fmt: skip

TARGETS = {"workflows_replay_tenant_id"}
"""Targets of composite foreign keys."""
