"""Steps of a replay that would act: kept as they were prepared, or ended with what the original had come to.

Called by `workflows.engine.store` for a locked run. Nothing is proposed from here.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from approvals.viewdoc import build_view
from common.content_errors import ContentErased
from common.content_keys import SealBroken
from common.digests import tenant_hmac
from common.errors import NotFound
from common.strictjson import JsonRefused, parse
from workflows import registry
from workflows.actions.replaying import business_key_of
from workflows.contracts import material_digest_of, utc_text
from workflows.documents import load_json, store_json
from workflows.enums_replays import Versions
from workflows.models import Command, Document, Run, Step
from workflows.operations import Operation
from workflows.preparing import Prepared, policy_snapshot
from workflows.replays import InTheWay, in_the_way, replay_of
from workflows.results import NotAllowed

DRY: Final = "dry."
"""How the kind of a document begins that holds what a step would have proposed."""
VERSION_GONE: Final = "version_gone"


# -- under which versions ---------------------------------------------------------------------------------------


def why_no_version(run: Run) -> str:
    """Why this code may not run a stage of a replay: it has another version than was asked for. Empty where it may."""
    replay = replay_of(run)
    if replay is None or replay.versions != Versions.THEN:
        return ""
    return "" if registry.workflow(run.workflow).version == run.workflow_version else VERSION_GONE


def version_for(run: Run, operation: str) -> int | None:
    """Of an operation: that of then where the replay asks for it and the original used it; None: the newest.

    Raises NotAllowed where this code no longer has it, or judges it by another version of its policy.
    """
    replay = replay_of(run)
    bound = replay.bound.get(operation) if replay is not None and replay.versions == Versions.THEN else None
    if bound is None:
        return None
    if not has_version(operation, bound):
        raise NotAllowed(VERSION_GONE)
    return int(bound["version"])


def has_version(operation: str, bound: Mapping[str, Any]) -> bool:
    """Whether this code has that version of the operation, with that version of its policy."""
    try:
        known: Operation[Any] = registry.operation(operation, int(bound["version"]))
    except NotFound:
        return False
    return bool(known.policy.version == bound["policy"])


# -- what would have been proposed ------------------------------------------------------------------------------


def keep_dry(run: Run, step: Step, prepared: Prepared, at: datetime) -> Document:
    """What the step would have proposed, what would have spoken against it, and what the original had come to."""
    found = in_the_way(
        run, step.key, business_key=business_key_of(run, prepared.draft),
        material=material_digest_of(run.tenant_id, prepared.draft),
    )  # fmt: skip
    value = dry_document(run.tenant_id, prepared) | {
        "not_repeated": found.why if found is not None else None, "earlier": earlier_result(run, step, found),
    }  # fmt: skip
    return store_json(run.tenant_id, run.pk, f"{DRY}{step.key}", value, at)


def dry_document(tenant_id: UUID, prepared: Prepared) -> dict[str, Any]:
    """Arguments, verdict, consequence and pins as a proposal would have bound them, and the view of a reviewer."""
    draft, verdict, operation = prepared.draft, prepared.verdict, prepared.draft.operation
    view = build_view(
        operation=operation.name, operation_version=operation.version, contract_digest="", headline=prepared.summary,
        consequence=prepared.consequence, schema=operation.arguments, arguments=draft.material, volatile=draft.volatile,
    )  # fmt: skip
    return {
        "v": 1, "operation": operation.name, "operation_version": operation.version, "target": draft.target,
        "arguments": dict(draft.material), "pins": dict(draft.pins), "needed": verdict.needed,
        "group": verdict.group, "risk": verdict.risk, "policy": dict(policy_snapshot(verdict, operation.policy)),
        "consequence": view.consequence, "summary": view.headline,
        "affected": [asdict(change) for change in prepared.affected],
        "warnings": [list(warning) for warning in prepared.warnings],
        "evidence": [
            {"title": piece.title, "kind": piece.kind, "data_class": str(piece.data_class),
             "captured_at": utc_text(piece.captured_at),
             "content": tenant_hmac(tenant_id, "compared-evidence", piece.content)}
            for piece in prepared.evidence
        ],
        "view": parse(view.to_bytes()),
    }  # fmt: skip


def earlier_result(run: Run, step: Step, found: InTheWay | None) -> dict[str, Any] | None:
    """What later stages were given of an effect that happened in the original or another replay of it."""
    order = found.command if found is not None else None
    if order is None or order.result_ref is None or not _is_of_family(run, step, order):
        return None
    document = Document.objects.filter(tenant_id=run.tenant_id, pk=order.result_ref).first()
    try:
        value = load_json(document) if document is not None else None
    except (ContentErased, SealBroken, JsonRefused):
        return None
    return value if isinstance(value, dict) else None


def _is_of_family(run: Run, step: Step, order: Command) -> bool:
    return order.step.key == step.key and order.run.identity == run.identity
