"""Whether a run can be replayed as somebody asks for it, and what would then become of each of its steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from approvals.models import Proposal
from common.errors import Refused
from common.sealed import is_erased, readable
from common.strictjson import JsonRefused, parse
from workflows import registry
from workflows.definitions import Workflow
from workflows.engine.replayed import has_version
from workflows.enums import RunKind, RunStatus, StepKind
from workflows.enums_replays import Effects, Versions
from workflows.models import Document, Run, SourceEvent
from workflows.replays import InTheWay, family_of, in_the_way
from workflows.worker.checks import current_policy

WHY: Final = {
    "follow_up": "A compensation or a remainder has no stages to run again. Propose it anew from the first run.",
    "workflow_gone": "Its workflow is no longer installed here.",
    "proposed_outside": "It was proposed from outside, and has no stages to run again. It can be proposed again.",
    "input_erased": "What it was given has been erased, or cannot be read any more.",
    "input_unfit": "What it was given does not fit the workflow of today.",
    "version_gone": "The code that is installed here no longer has these versions.",
    "policy_old": "What is proposed anew is judged by the policy of today, and that is another one than then.",
    "not_ended": "It has not ended. Its own choices go on with it: correct it, ask again, or cancel it first.",
    "being_replayed": "Another replay of it may act, and has not ended.",
    "in_doubt": "Nobody knows yet whether one of its effects happened. Settle that first.",
    "nothing_to_propose": "None of its effects may be proposed anew.",
}
SETTLE_FIRST: Final = ("in_doubt", "under_way", "asked")
"""What makes a replay wait that may act: later stages rest on how it comes out."""


class CannotReplay(Refused):
    """This run cannot be replayed in that way. The details tell why."""

    code = "cannot_replay"

    def __init__(self, why: str, **details: Any) -> None:
        super().__init__(WHY[why], why=why, **details)


@dataclass(frozen=True, slots=True)
class Asked:
    """How a replay is wanted. ``fresh``: what people had supplied is asked for again."""

    versions: Versions
    effects: Effects
    reason: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What becomes of one step. ``found``: what keeps an effect from being proposed anew."""

    key: str
    kind: str
    says: str
    runs: bool
    found: InTheWay | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A replay that can be made: the code it runs under, what it is given, and what its steps would do."""

    base: Run
    flow: type[Workflow]
    content: bytes
    data: tuple[Document, ...]
    bound: Mapping[str, Mapping[str, int]]
    steps: tuple[StepPlan, ...]


def plan_of(base: Run, asked: Asked) -> Plan:
    """Raises CannotReplay. It reads, and locks nothing: what is done on its word is checked under the locks again."""
    flow = _flow_of(base)
    bound = bound_of(base) if asked.versions == Versions.THEN else {}
    if asked.versions == Versions.THEN:
        _check_versions(base, flow, bound, acts=asked.effects == Effects.PROPOSE)
    content = _content_of(base)
    try:
        flow.contract.input.model_validate(parse(content))
    except (ValidationError, JsonRefused) as error:
        raise CannotReplay("input_unfit") from error
    steps = tuple(_step_plan(base, stage.key, stage.kind, asked) for stage in flow.stages)
    if asked.effects == Effects.PROPOSE:
        _check_may_act(base, steps)
    return Plan(base, flow, content, () if asked.fresh else _data_of(base), bound, steps)


def _flow_of(base: Run) -> type[Workflow]:
    if base.kind not in (RunKind.ORIGINAL, RunKind.REPLAY):
        raise CannotReplay("follow_up")
    flow = registry.installed(base.workflow)
    if flow is None:
        raise CannotReplay("workflow_gone")
    events = SourceEvent.objects.filter(tenant_id=base.tenant_id, run_id=base.identity)
    if not flow.stages or events.filter(proposal_id__isnull=False).exists():
        raise CannotReplay("proposed_outside")
    return flow


def bound_of(base: Run) -> dict[str, dict[str, int]]:
    """Which operations this run proposed, each with its version and its policy's, as they were last."""
    rows = Proposal.objects.filter(tenant_id=base.tenant_id, run_id=base.pk).order_by("created_at", "pk")
    return {
        row.operation: {"version": row.operation_version, "policy": int(row.policy["version"])}
        for row in rows.only("operation", "operation_version", "policy", "tenant_id", "run_id")
    }


def _check_versions(
    base: Run, flow: type[Workflow], bound: Mapping[str, Mapping[str, int]], *, acts: bool
) -> None:
    gone = [] if flow.version == base.workflow_version else [f"{base.workflow}@{base.workflow_version}"]
    gone += [
        f"{name}@{of['version']}, policy {of['policy']}"
        for name, of in bound.items()
        if not has_version(name, of)
    ]
    if gone:
        raise CannotReplay("version_gone", gone=gone)
    if acts:
        old = [
            name for name, of in bound.items()
            if current_policy(registry.operation(name, of["version"])) != of["policy"]
        ]  # fmt: skip
        if old:
            raise CannotReplay("policy_old", operations=old)


def _content_of(base: Run) -> bytes:
    row = Document.objects.filter(tenant_id=base.tenant_id, run_id=base.pk, pk=base.input_ref).first()
    content = readable(row, "content") if row is not None else None
    # What was erased with the original is not kept alive by replays of replays.
    if content is None or is_erased(base if base.original is None else base.original):
        raise CannotReplay("input_erased")
    return bytes(content)


def _data_of(base: Run) -> tuple[Document, ...]:
    """What people supplied to it, in their order."""
    rows = Document.objects.filter(tenant_id=base.tenant_id, run_id=base.pk, kind__startswith="data.")
    found = tuple(rows.order_by("created_at", "id"))
    if any(readable(row, "content") is None for row in found):
        raise CannotReplay("input_erased")
    return found


def _check_may_act(base: Run, steps: tuple[StepPlan, ...]) -> None:
    open_ = list(family_of(base).exclude(status__in=RunStatus.final_states).select_related("replay"))
    if any(run.kind == RunKind.ORIGINAL for run in open_):
        raise CannotReplay("not_ended")
    if any(run.kind == RunKind.REPLAY and _acts(run) for run in open_):
        raise CannotReplay("being_replayed")
    if any(step.found is not None and step.found.why in SETTLE_FIRST for step in steps):
        raise CannotReplay("in_doubt")
    effects = [step for step in steps if step.kind == StepKind.SIDE_EFFECT]
    if not any(step.found is None for step in effects):
        raise CannotReplay(
            "nothing_to_propose", steps={step.key: step.found.why for step in effects if step.found}
        )


def _acts(run: Run) -> bool:
    replay = getattr(run, "replay", None)
    return replay is not None and replay.effects == Effects.PROPOSE


# -- what becomes of each step ----------------------------------------------------------------------------------


def _step_plan(base: Run, key: str, kind: str, asked: Asked) -> StepPlan:
    if kind != StepKind.SIDE_EFFECT:
        return StepPlan(key, kind, "runs again", runs=True)
    found = in_the_way(base, key)
    if asked.effects == Effects.DRY:
        says = "is prepared and judged, and nothing is proposed: no effect of this replay"
        return StepPlan(key, kind, says, runs=True, found=found)
    if found is not None:
        return StepPlan(key, kind, "is left out, and never sent by this replay", runs=False, found=found)
    return StepPlan(key, kind, "is proposed anew, and done only once it is approved anew", runs=True)
