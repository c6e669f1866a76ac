"""Valid rows in memory, and the shortest legal way to any state of them. Nothing here touches the database.

Every function takes overrides by field name. Times hang on ``at``: the present, unless a test says otherwise.
"""

import hashlib
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.db.models import Model
from django_fsm import FSMField

from access.models import User
from approvals.alike import shape_of
from approvals.enums import DecisionKind
from approvals.models import Decision, Evidence, Proposal
from approvals.viewdoc import ViewDocument, build_view
from audit.actors import Via
from common import digests
from common.fields import Arguments, Currency, Identifier, Money, arg
from common.ids import new_id
from common.models import Tenant
from common.strictjson import canonicalize
from examples.refunds.operation import IssueRefund
from repair.models import RepairPacket
from tests.moves import DECIDE_WITHIN, EXECUTE_WITHIN, LEASE, arguments_of_moves  # noqa: F401 - for tests too
from workflows.enums import (
    OnExpiry,
    RunStatus,
    StepKind,
)
from workflows.models import Attempt, Command, Document, Lookup, Run, SourceEvent, Step

Row = TypeVar("Row", bound=Model)


class RefundArguments(Arguments):
    """What the proposals of the tests do."""

    order: Identifier = arg(label="Order", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")


REFUND = {"order": "1042", "amount": "25.00", "currency": "EUR"}


def now() -> datetime:
    return datetime.now(UTC)


def made(model: type[Row], defaults: dict[str, Any], overrides: dict[str, Any]) -> Row:
    return model(**(defaults | overrides))


def tenant_row(slug: str = "acme", **fields: Any) -> Tenant:
    return made(Tenant, {"slug": slug, "name": slug.title()}, fields)


def run_row(tenant: Tenant, *, at: datetime | None = None, **fields: Any) -> Run:
    """A queued run of its own source event."""
    event = str(new_id())
    defaults = {
        "tenant": tenant,
        "workflow": "refund-triage",
        "workflow_version": 1,
        "requested_by": "api:intake",
        "source_system": "helpdesk",
        "source_event_id": event,
        "input_ref": new_id(),
        "input_hash": digests.tenant_hmac(tenant.pk, "input", event.encode()),
        "created_at": at or now(),
    }
    return made(Run, defaults, fields)


def step_row(run: Run, *, key: str = "refund", position: int = 0, **fields: Any) -> Step:
    """A pending step; due at once only if ``due_at`` says so."""
    defaults = {
        "tenant_id": run.tenant_id,
        "run": run,
        "key": key,
        "position": position,
        "kind": StepKind.SIDE_EFFECT,
    }
    return made(Step, defaults, fields)


def contract_for(run: Run, step: Step, key: str, arguments: dict[str, str], at: datetime) -> bytes:
    """The canonical bytes of a contract as section 5 of the design spells it."""
    return canonicalize(
        {
            "v": 1,
            "tenant": str(run.tenant_id),
            "workflow": run.workflow,
            "workflow_version": run.workflow_version,
            "run_id": str(run.identity),
            "step": step.key,
            "operation": "refunds.issue",
            "operation_version": IssueRefund.version,
            "actor": run.requested_by,
            "arguments": arguments,
            "target": f"order:{arguments['order']}",
            "policy_version": 1,
            "nonce": str(new_id()),
            "evidence": [],
            "pins": {},
            "idempotency_key": key,
            "decide_by": (at + DECIDE_WITHIN).isoformat(),
            "execute_within_s": int(EXECUTE_WITHIN.total_seconds()),
        }
    )


def view_for(digest: str, arguments: dict[str, str]) -> ViewDocument:
    return build_view(
        operation="refunds.issue",
        operation_version=IssueRefund.version,
        contract_digest=digest,
        headline="Refund EUR 25.00",
        consequence="EUR 25.00 goes back to the customer of order 1042.",
        schema=RefundArguments,
        arguments=arguments,
    )


def proposal_row(
    run: Run,
    step: Step,
    *,
    at: datetime | None = None,
    arguments: dict[str, str] = REFUND,
    needed: int = 1,
    **fields: Any,
) -> Proposal:
    """A pending proposal whose contract, view and digests fit together. ``needed=0``: the rule approves."""
    at, tenant, target = at or now(), run.tenant_id, f"order:{arguments['order']}"
    key = digests.idempotency_key(tenant, run.identity, step.key, fields.get("generation", 1))
    contract = contract_for(run, step, key, arguments, at)
    digest = digests.contract_digest(contract)
    document = view_for(digest, arguments)
    view = canonicalize(document.model_dump(mode="json"))
    verdict = {0: "auto", 1: "ask_one", 2: "ask_two"}[needed]
    defaults = {
        "tenant_id": tenant,
        "run_id": run.pk,
        "step": step.key,
        "workflow": run.workflow,
        "workflow_version": 1,
        "operation": "refunds.issue",
        "operation_version": IssueRefund.version,
        "target": target,
        "contract": contract,
        "digest": digest,
        "view": view,
        "view_digest": digests.view_digest(view),
        "idempotency_key": key,
        "material_digest": digests.material_digest(
            tenant,
            operation="refunds.issue",
            version=IssueRefund.version,
            target=target,
            arguments=dict(arguments),
        ),
        "business_key": digests.business_key(tenant, "refunds.issue", ["refund", target]),
        "policy": {
            "version": 1,
            "rule": "refund.limit",
            "verdict": verdict,
            "because": "A refund.",
            "tests": [],
        },
        "needed": needed,
        "proposed_by": run.requested_by,
        "summary": "Refund EUR 25.00",
        "consequence": "EUR 25.00 goes back to the customer of order 1042.",
        "created_at": at,
        "wait_id": new_id(),
        "decide_by": at + DECIDE_WITHIN,
        "execute_within_s": int(EXECUTE_WITHIN.total_seconds()),
    }
    proposal = made(Proposal, defaults, fields)
    if "shape" not in fields and "view" not in fields:
        proposal.shape = shape_of(proposal, document)
    return proposal


def evidence_row(
    proposal: Proposal, *, position: int = 0, content: bytes = b"A message.", **fields: Any
) -> Evidence:
    salt = bytes(32)
    defaults = {
        "tenant_id": proposal.tenant_id,
        "proposal": proposal,
        "position": position,
        "kind": "message",
        "title": "The customer's message",
        "content": content,
        "salt": salt,
        "digest": digests.evidence_digest(salt, content),
        "captured_at": proposal.created_at,
    }
    return made(Evidence, defaults, fields)


def decision_row(
    proposal: Proposal, user: User | None, *, kind: str = DecisionKind.APPROVE, **fields: Any
) -> Decision:
    """What ``user`` said, or, without one, what the policy rule said."""
    by = (
        {"user": user, "role": "reviewer", "performed_by": f"user:{user.pk}", "via": Via.SESSION}
        if user
        else {
            "rule": "refund.limit",
            "rule_version": 1,
            "performed_by": "rule:refund.limit@1",
            "via": Via.RULE,
        }
    )
    defaults = {
        "tenant_id": proposal.tenant_id,
        "proposal": proposal,
        "kind": kind,
        "digest": proposal.digest,
        "view_digest": proposal.view_digest,
        "at": proposal.created_at,
        **by,
    }
    return made(Decision, defaults, fields)


def command_row(
    proposal: Proposal, run: Run, step: Step, *, at: datetime | None = None, **fields: Any
) -> Command:
    """The ready command of an approved proposal, due at once."""
    at = at or now()
    same = (
        "operation",
        "operation_version",
        "target",
        "business_key",
        "idempotency_key",
        "mode",
        "tenant_id",
    )
    defaults = {name: getattr(proposal, name) for name in same}
    defaults |= {
        "proposal": proposal,
        "run": run,
        "step": step,
        "provider": "payments",
        "created_at": at,
        "due_at": at,
    }
    return made(Command, defaults, fields)


def attempt_row(command: Command, *, number: int = 1, at: datetime | None = None, **fields: Any) -> Attempt:
    """The attempt of the worker that holds the command, or of another if nobody does."""
    defaults = {
        "tenant_id": command.tenant_id,
        "command": command,
        "number": number,
        "worker": "worker:1",
        "token": command.lease_token or new_id(),
        "claimed_at": at or now(),
    }
    return made(Attempt, defaults, fields)


def lookup_row(command: Command, *, at: datetime | None = None, **fields: Any) -> Lookup:
    at = at or now()
    defaults = {
        "tenant_id": command.tenant_id,
        "command": command,
        "asked_at": at,
        "ended_at": at,
        "worker": "worker:1",
        "finding": "not_found",
    }
    return made(Lookup, defaults, fields)


def packet_row(run: Run, *, at: datetime | None = None, **fields: Any) -> RepairPacket:
    at = at or now()
    defaults = {
        "tenant_id": run.tenant_id,
        "run": run,
        "step": "refund",
        "cause": "refused",
        "summary": "It was refused.",
        "owner": "operators",
        "wait_id": new_id(),
        "waiting_until": at + timedelta(hours=24),
        "opened_at": at,
    }
    return made(RepairPacket, defaults, fields)


def document_row(run: Run, *, content: bytes = b"{}", **fields: Any) -> Document:
    defaults = {
        "tenant_id": run.tenant_id,
        "run_id": run.pk,
        "kind": "input",
        "content": content,
        "created_at": now(),
        "digest": "hmac:" + hashlib.sha256(content).hexdigest(),
    }
    return made(Document, defaults, fields)


def source_event_row(run: Run, **fields: Any) -> SourceEvent:
    defaults = {
        "tenant_id": run.tenant_id,
        "run": run,
        "workflow": run.workflow,
        "system": run.source_system,
        "event_id": run.source_event_id,
        "input_hash": run.input_hash,
        "created_at": now(),
    }
    return made(SourceEvent, defaults, fields)


# -- the legal way to a state ---------------------------------------------------------------------


def path_to(model: type[Model], status: str) -> list[str]:
    """Names of the transitions of the shortest declared way from the first state to ``status``."""
    field = model._meta.get_field("status")
    assert isinstance(field, FSMField)
    # Not by *doubt*, the short way to *unknown* that only a restored backup takes.
    moves = [
        (str(move.source), str(move.target), move.name)
        for move in field.get_all_transitions(model)
        if move.name != "doubt"
    ]
    todo, seen = deque([(str(field.default), [])]), {str(field.default)}
    while todo:
        state, path = todo.popleft()
        if state == status:
            return path
        for source, target, name in moves:
            if source == state and target not in seen:
                seen.add(target)
                todo.append((target, [*path, name]))
    raise AssertionError(f"{model.__name__} has no way to {status}")


def moved(row: Any, name: str, at: datetime, **arguments: Any) -> None:
    """Make one transition in memory, with valid arguments except where the test gives its own."""
    getattr(row, name)(**(arguments_of_moves(at)[type(row)][name] | arguments))


def settled(run: Run, status: RunStatus, at: datetime) -> None:
    """Bring a run to ``status`` with the fields that belong to it."""
    run.settle(status)
    if status not in RunStatus.unclocked_states:
        run.wait_id, run.waiting_until, run.on_expiry = new_id(), at + DECIDE_WITHIN, OnExpiry.MANUAL_QUEUE
    if status in RunStatus.final_states:
        run.finished_at, run.outcome = at, run.outcome or "done"
