"""``/operations``, ``/workflows``, ``/runs``, ``/commands``, ``/receipts`` and ``/results``.

``POST /proposals`` is in `workflows.api_proposals`, which hangs it on the router of `approvals.api`.
"""

from base64 import b64encode
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Path, Router
from ninja.responses import Status
from pydantic import SkipValidation

from access.actions_agents import require_may_start
from access.auth import wait_as
from access.enums import Scope
from audit.principals import Principal, ScopeMissing, principal_of, require_scope
from common import signing
from common.clock import db_clock
from common.cursors import PAGE
from common.errors import InvalidInput, Refused
from common.longpoll import Since, Wait
from common.problems import Problem, RefusedJson, document_of
from common.strictbody import LargeBody, StrictBody, checked
from common.strictjson import JsonRefused, strict
from workflows import api_proposals, api_reads, registry, selectors
from workflows.actions.cancelling import cancel_run, supply_data
from workflows.actions.runs import Started, start_run
from workflows.api_catalog import OperationOut, OperationsOut, WorkflowsOut, operation_of, workflow_of
from workflows.api_commands import CommandOut, command_of
from workflows.api_requests import count_items, requester_of, source_of
from workflows.api_schemas import (
    BulkOut,
    CancelIn,
    CancelOut,
    DataIn,
    KeysOut,
    ReceiptOut,
    ResultOut,
    RunIn,
    RunOut,
    RunsOut,
)
from workflows.documents import load_json
from workflows.enums import RunStatus
from workflows.receipt import receipt

__all__ = ["api_proposals", "router"]

router = Router(tags=["runs"])
LONGEST_BULK = 500

StepKey = Annotated[str, Path(pattern=r"^[^\x00]+$")]
READ_PROBLEMS = frozenset({401, 403, 404, 422})
WRITE_PROBLEMS = frozenset({400, 401, 403, 404, 409, 413, 415, 422, 503})


class TooManyItems(InvalidInput):
    """A bulk has at most 500 items. Nothing of it was taken in."""

    code = "too_many_items"


# -- what is installed ----------------------------------------------------------------------------------------


@router.get(
    "/operations",
    response={200: OperationsOut, 401: Problem},
    tags=["catalog"],
    summary="List the operations",
)
def list_operations(request: HttpRequest) -> dict[str, Any]:
    """The newest installed version of each, with the JSON Schema of its arguments."""
    return {"operations": [operation_of(operation) for operation in registry.operations()]}


@router.get(
    "/operations/{name}", response={200: OperationOut, frozenset({401, 404, 422}): Problem}, tags=["catalog"],
    summary="Read one operation",
)  # fmt: skip
def get_operation(request: HttpRequest, name: str, version: int | None = None) -> dict[str, Any]:
    """The newest installed version, or the one that is asked for."""
    return operation_of(registry.operation(name, version))


@router.get(
    "/workflows", response={200: WorkflowsOut, 401: Problem}, tags=["catalog"], summary="List the workflows"
)
def list_workflows(request: HttpRequest) -> dict[str, Any]:
    """What each promises, its input, and which of them accept proposals from outside."""
    return {"workflows": [workflow_of(flow) for flow in registry.workflows()]}


# -- runs -----------------------------------------------------------------------------------------------------


@router.post(
    "/runs",
    response={201: RunOut, 200: RunOut | BulkOut, WRITE_PROBLEMS: Problem},
    summary="Start a run, or many",
)
def start(
    request: HttpRequest, body: Annotated[SkipValidation[RunIn | list[RunIn]], LargeBody()]
) -> Status[dict[str, Any]]:
    """One source event: 201 with its run; the same event again: 200 and the same run; with other input: 422.

    An array makes a bulk: 200 with a result for each item. Needs the scope ``runs:write``.
    """
    principal = require_scope(request, Scope.RUNS_WRITE)
    if isinstance(body, list):
        return Status(200, _start_many(request, principal, body))
    started = _start_one(principal, body)
    return Status(201 if started.created else 200, selectors.envelope(started.run))


def _start_one(principal: Principal, raw: Any) -> Started:
    item = checked(RunIn, raw)
    require_may_start(principal, item.workflow)
    strict(item.input)  # a large body may carry what one input may not
    return start_run(
        tenant_id=principal.tenant.pk, workflow=item.workflow, source=source_of(item.source), input=item.input,
        by=principal.actor, clock=db_clock, requester=requester_of(principal), callback=item.callback or "",
    )  # fmt: skip


def _start_many(request: HttpRequest, principal: Principal, items: list[Any]) -> dict[str, Any]:
    if len(items) > LONGEST_BULK:
        raise TooManyItems(limit=LONGEST_BULK)
    count_items(principal, len(items))
    results = [_start_item(request, principal, index, item) for index, item in enumerate(items)]
    statuses = [result["status"] for result in results]
    created, repeated = statuses.count(201), statuses.count(200)
    return {
        "created": created, "repeated": repeated, "refused": len(items) - created - repeated, "results": results,
    }  # fmt: skip


def _start_item(request: HttpRequest, principal: Principal, index: int, item: Any) -> dict[str, Any]:
    """Each item has a transaction of its own: one that is refused leaves the others as they are."""
    try:
        started = _start_one(principal, item)
    except JsonRefused as refused:
        answer = document_of(request, RefusedJson(refused), code=refused.code)
    except Refused as refused:
        answer = document_of(request, refused)
    else:
        status = 201 if started.created else 200
        return {"index": index, "status": status, "run": selectors.envelope(started.run)}
    return {"index": index, "status": answer["status"], "problem": answer}


@router.get("/runs/{run_id}", response={200: RunOut, READ_PROBLEMS: Problem}, summary="Read one run")
def get_run(request: HttpRequest, run_id: UUID, wait: Wait = 0, since: Since = None) -> dict[str, Any]:
    """The execution envelope. With ``wait`` the answer comes when something changes. Needs ``runs:read``."""
    tenant_id = require_scope(request, Scope.RUNS_READ).tenant.pk
    run = selectors.get_run(tenant_id, run_id)
    if wait:
        known = run.state_version if since is None else since
        wait_as(request, lambda: api_reads.has_moved(tenant_id, run_id, known), wait)
        run = selectors.get_run(tenant_id, run_id)
    return selectors.envelope(run)


@router.get("/runs", response={200: RunsOut, frozenset({401, 403, 422}): Problem}, summary="List runs")
def list_runs(
    request: HttpRequest,
    workflow: str = "",
    status: RunStatus | None = None,
    cursor: str = "",
    limit: int = PAGE,
) -> dict[str, Any]:
    """Newest first. Needs the scope ``runs:read``."""
    tenant_id = require_scope(request, Scope.RUNS_READ).tenant.pk
    found = api_reads.list_runs(tenant_id, workflow=workflow, status=status or "", cursor=cursor, size=limit)
    return {"runs": selectors.envelopes(found.rows), "next_cursor": found.next_cursor}


@router.post("/runs/{run_id}/data", response={200: RunOut, WRITE_PROBLEMS: Problem}, summary="Supply data")
def supply(request: HttpRequest, run_id: UUID, body: Annotated[DataIn, StrictBody()]) -> dict[str, Any]:
    """Answers a run in *waiting_for_data*; 409 ``wait_over`` when it no longer waits for that. Needs ``runs:write``."""
    principal = require_scope(request, Scope.RUNS_WRITE)
    require_may_start(principal, selectors.get_run(principal.tenant.pk, run_id).workflow)
    run = supply_data(
        tenant_id=principal.tenant.pk, run_id=run_id, wait_id=body.wait_id, data=body.data, by=principal.actor,
        clock=db_clock, side=requester_of(principal).excluded_users,
    )  # fmt: skip
    return selectors.envelope(selectors.get_run(principal.tenant.pk, run.pk))


@router.post(
    "/runs/{run_id}/cancel",
    response={frozenset({200, 202}): CancelOut, WRITE_PROBLEMS: Problem},
    summary="Cancel a run",
)
def cancel(
    request: HttpRequest, run_id: UUID, body: Annotated[CancelIn, StrictBody()]
) -> Status[dict[str, Any]]:
    """200 ``cancelled``, or 202 ``cancel_requested`` once something was sent. Needs the scope ``runs:write``."""
    principal = require_scope(request, Scope.RUNS_WRITE)
    require_may_start(principal, selectors.get_run(principal.tenant.pk, run_id).workflow)
    result = cancel_run(
        tenant_id=principal.tenant.pk, run_id=run_id, reason=body.reason, by=principal.actor, clock=db_clock
    )
    run = selectors.envelope(selectors.get_run(principal.tenant.pk, run_id))
    return Status(200 if result == "cancelled" else 202, {"result": result} | run)


# -- what was done --------------------------------------------------------------------------------------------


@router.get(
    "/commands/{command_id}", response={200: CommandOut, READ_PROBLEMS: Problem}, tags=["execution"],
    summary="Read what was attempted",
)  # fmt: skip
def get_command(request: HttpRequest, command_id: UUID) -> dict[str, Any]:
    """A command with its tries, look-ups and what people said. Needs ``runs:read`` or ``proposals:read``."""
    principal = _reader(request)
    return command_of(selectors.get_command(principal.tenant.pk, command_id))


@router.get(
    "/receipts/keys",
    response={200: KeysOut, 401: Problem},
    tags=["execution"],
    summary="Read the receipts' public keys",
)
def list_keys(request: HttpRequest) -> dict[str, Any]:
    """The keys with which receipts are signed. Keep a copy of your own: a receipt is checked against that."""
    public = b64encode(signing.public_key()).decode()
    return {"keys": [{"key_id": signing.key_id(), "alg": signing.ALGORITHM, "public_key": public}]}


@router.get(
    "/receipts/{run_id}/{step}", response={200: ReceiptOut, READ_PROBLEMS | {409}: Problem}, tags=["execution"],
    summary="Read the receipt of a step",
)  # fmt: skip
def get_receipt(request: HttpRequest, run_id: UUID, step: StepKey) -> dict[str, Any]:
    """Who decided, and what was done; 409 ``no_receipt_yet`` while nobody has decided.

    Needs ``runs:read`` or ``proposals:read``.
    """
    return receipt(_reader(request).tenant.pk, run_id, step)


@router.get(
    "/results/{ref}",
    response={200: ResultOut, READ_PROBLEMS: Problem},
    tags=["execution"],
    summary="Read a result",
)
def get_result(request: HttpRequest, ref: UUID) -> dict[str, Any]:
    """A document that an envelope points at. Needs the scope ``results:read``."""
    tenant_id = require_scope(request, Scope.RESULTS_READ).tenant.pk
    found = api_reads.get_result(tenant_id, ref)
    return {
        "ref": found.pk, "run_id": found.run_id, "kind": found.kind, "created_at": found.created_at,
        "digest": found.digest, "content": load_json(found),
    }  # fmt: skip


def _reader(request: HttpRequest) -> Principal:
    """Whoever may read runs or proposals; both lead to commands and receipts."""
    principal = principal_of(request)
    if not principal.scopes & {Scope.RUNS_READ, Scope.PROPOSALS_READ}:
        raise ScopeMissing(scope=Scope.RUNS_READ.value)
    return principal
