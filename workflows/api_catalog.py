"""What is installed, for agents that form arguments: workflows with their contract, operations with their schema."""

from typing import Any

from pydantic import BaseModel

from common.strictjson import DEFAULT_LIMITS
from workflows import registry
from workflows.api_schemas import example
from workflows.definitions import Workflow
from workflows.modes import ByException, BySample, Escalate
from workflows.operations import Operation

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"order": {"type": "string", "x-placet-material": True}},
}
_OPERATION: dict[str, Any] = {
    "name": "refunds.issue", "version": 2, "versions": [1, 2], "title": "Issue a refund", "provider": "refunds",
    "arguments": _SCHEMA, "material": ["order", "amount", "currency"], "volatile": ["note"], "editable": ["amount"],
    "content_hash": "sha256:…", "policy": {"name": "refund.limit", "version": 7}, "undo": "It cannot be taken back.",
    "counter": None, "remainder": False,
    "limits": {"decide_within_s": 14400, "execute_within_s": 600, "max_bytes": 262144, "second_person_from": "100"},
    "proposed_through": ["refund-requests"],
}  # fmt: skip
_WORKFLOW: dict[str, Any] = {
    "name": "refund-triage", "version": 3, "title": "Refund requests", "stage": "approve", "accepts_proposals": False,
    "review": {"mode": "blocking"},
    "escalates": [{"left_s": None, "left_share": "0.25", "group": "second-line", "role": None}],
    "owner": "refund-desk", "promise": "Every request gets an answer.", "within_s": 86400, "input": _SCHEMA,
    "stages": [{"id": "intake", "kind": "read_only"}], "operations": ["refunds.issue"], "data_sources": ["orders"],
    "decision_points": ["a refund above the limit"], "side_effects": ["a refund"], "completion": "The refund is made.",
    "never": ["more than was paid"], "on_expiry": "manual_queue",
    "exceptions": [
        {"case": "unknown_order", "state": "failed", "outcome": "no_action", "tell": "We do not know this order.",
         "owner": "refund-desk", "may_submit_new": True}
    ],
}  # fmt: skip


class OperationOut(BaseModel):
    """An operation: the JSON Schema of its arguments, what of them is bound by an approval, limits and versions."""

    model_config = example(_OPERATION)

    name: str
    version: int
    versions: list[int]
    title: str
    provider: str
    arguments: dict[str, Any]
    material: list[str]
    volatile: list[str]
    editable: list[str]
    """What of the material ones a reviewer may change, in a new version that others approve."""
    content_hash: str
    policy: dict[str, Any]
    undo: str
    counter: str | None
    """The operation that takes an effect of this one back, where one does."""
    remainder: bool
    """Whether it can say what is left of what happened in part."""
    limits: dict[str, Any]
    proposed_through: list[str]


class OperationsOut(BaseModel):
    """The newest installed version of each operation, by name."""

    model_config = example({"operations": [_OPERATION]})

    operations: list[OperationOut]


class WorkflowOut(BaseModel):
    """A workflow and what it promises."""

    model_config = example(_WORKFLOW)

    name: str
    version: int
    title: str
    stage: str
    accepts_proposals: bool
    review: dict[str, Any]
    escalates: list[dict[str, Any]]
    owner: str
    promise: str
    within_s: int
    input: dict[str, Any]
    stages: list[dict[str, str]]
    operations: list[str]
    data_sources: list[str]
    decision_points: list[str]
    side_effects: list[str]
    completion: str
    never: list[str]
    on_expiry: str
    exceptions: list[dict[str, Any]]


class WorkflowsOut(BaseModel):
    """The installed workflows, by name."""

    model_config = example({"workflows": [_WORKFLOW]})

    workflows: list[WorkflowOut]


def operation_of(operation: Operation[Any]) -> dict[str, Any]:
    """One operation as the API shows it."""
    arguments, from_ = operation.arguments, operation.second_person_from
    return {
        "name": operation.name, "version": operation.version, "title": operation.title,
        "versions": [version for name, version in registry.known_operations() if name == operation.name],
        "provider": operation.provider, "arguments": arguments.schema_document(),
        "material": [spec.name for spec in arguments.specs if spec.material],
        "volatile": [spec.name for spec in arguments.specs if not spec.material],
        "editable": list(operation.editable), "content_hash": arguments.content_hash(), "undo": operation.undo,
        "counter": operation.counter.name if operation.counter is not None else None,
        "remainder": type(operation).remainder is not Operation.remainder,
        "policy": {"name": operation.policy.name, "version": operation.policy.version},
        "limits": {
            "decide_within_s": int(operation.decide_within.total_seconds()),
            "execute_within_s": int(operation.execute_within.total_seconds()),
            "max_bytes": DEFAULT_LIMITS.max_bytes, "max_depth": DEFAULT_LIMITS.max_depth,
            "second_person_from": str(from_) if from_ is not None else None,
        },
        "proposed_through": [
            flow.name for flow in registry.workflows()
            if flow.accepts_proposals and operation.name in {offered.name for offered in flow.operations}
        ],
    }  # fmt: skip


def review_of(flow: type[Workflow]) -> dict[str, Any]:
    """The mode and what is declared with it. What makes an action *sensitive* is code, and is only said to be there."""
    review = flow.review
    match review:
        case ByException():
            return {
                "mode": review.mode, "confident_from": str(review.confident_from),
                "high_impact_from": review.high_impact_from, "sensitive": review.sensitive is not None,
            }  # fmt: skip
        case BySample():
            return {"mode": review.mode, "share": str(review.share), "wrong_limit": str(review.wrong_limit)}
        case _:
            return {"mode": review.mode}


def escalation_of(declared: Escalate) -> dict[str, Any]:
    """When, and to whom."""
    left = declared.left
    return {
        "left_s": int(left.total_seconds()) if left is not None else None,
        "left_share": str(declared.left_share) if declared.left_share is not None else None,
        "group": declared.group or None, "role": declared.role or None,
    }  # fmt: skip


def workflow_of(flow: type[Workflow]) -> dict[str, Any]:
    """One workflow as the API shows it."""
    contract = flow.contract
    return {
        "name": flow.name, "version": flow.version, "title": flow.title, "stage": flow.stage,
        "accepts_proposals": flow.accepts_proposals, "review": review_of(flow),
        "escalates": [escalation_of(declared) for declared in flow.escalate],
        "owner": contract.owner, "promise": contract.promise,
        "within_s": int(contract.within.total_seconds()), "input": contract.input.model_json_schema(),
        "stages": [{"id": stage.key, "kind": str(stage.kind)} for stage in flow.stages],
        "operations": sorted({operation.name for operation in flow.operations}),
        "data_sources": list(contract.data_sources), "decision_points": list(contract.decision_points),
        "side_effects": list(contract.side_effects), "completion": contract.completion,
        "never": list(contract.never), "on_expiry": str(contract.on_expiry),
        "exceptions": [
            {
                "case": row.case, "state": row.state, "outcome": row.outcome, "tell": row.tell, "owner": row.owner,
                "may_submit_new": row.may_submit_new,
            }
            for row in contract.exceptions
        ],
    }  # fmt: skip
