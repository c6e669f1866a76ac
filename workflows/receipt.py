"""The durable, signed receipt of one step: who decided what, and, apart from it, what was done.

Made from the rows each time, never stored: its bytes, and so its signature, are the same until the state changes, and
for ever once it is ``final``. Signed is ``"placet.receipt.v1\\n" + RFC 8785(receipt without "signature")``.
"""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from approvals.enums import Mode, ProposalStatus
from approvals.models import Decision, Proposal
from approvals.policies import standing_votes
from common.errors import Refused
from common.signing import sign
from common.strictjson import canonicalize
from workflows.api_reads import get_step
from workflows.enums import CommandStatus
from workflows.models import Attempt, Command
from workflows.selectors import RETRY_AFTER_S

DOMAIN: Final = b"placet.receipt.v1\n"


class NoReceiptYet(Refused):
    """Nobody has decided on this step, so there is no receipt yet."""

    code = "no_receipt_yet"


def receipt(tenant_id: UUID, run_id: UUID, key: str) -> dict[str, Any]:
    """The receipt of a step's newest proposal. Raises NotFound, or NoReceiptYet while nothing is decided."""
    step = get_step(tenant_id, run_id, key)
    found = Proposal.objects.filter(
        tenant_id=tenant_id, pk__in=[step.proposal_id] if step.proposal_id else []
    )
    proposal = found.first()
    if proposal is None or proposal.status == ProposalStatus.PENDING:
        raise NoReceiptYet(retry_after=RETRY_AFTER_S)
    command = Command.objects.filter(tenant_id=tenant_id, proposal=proposal).first()
    document = {
        "v": 1, "tenant_id": str(tenant_id), "run_id": str(run_id), "step": key, "workflow": proposal.workflow,
        "workflow_version": proposal.workflow_version, "operation": proposal.operation,
        "operation_version": proposal.operation_version, "target": proposal.target, "mode": proposal.mode,
        "final": _is_final(proposal, command), "decision": _decision(proposal),
        "execution": _execution(command) if command is not None else None,
    }  # fmt: skip
    return document | {"signature": asdict(sign(DOMAIN, canonicalize(document)))}


def _is_final(proposal: Proposal, command: Command | None) -> bool:
    """Whether this receipt can no longer change."""
    if command is not None:
        return command.status in CommandStatus.final_states
    sends_nothing = proposal.status == ProposalStatus.APPROVED and proposal.mode != Mode.LIVE
    return sends_nothing or proposal.status in ProposalStatus.final_states


def _decision(proposal: Proposal) -> dict[str, Any]:
    return {
        "proposal_id": str(proposal.pk), "version": proposal.version, "status": proposal.status,
        "digest": proposal.digest, "view_digest": proposal.view_digest, "material_digest": proposal.material_digest,
        "policy": {name: proposal.policy[name] for name in ("version", "rule", "verdict")},
        "needed": proposal.needed, "decide_by": _text(proposal.decide_by), "decided_at": _text(proposal.decided_at),
        "execute_by": _text(proposal.execute_by), "ended_at": _text(proposal.ended_at),
        "votes": [_vote(vote) for vote in standing_votes(proposal)],
    }  # fmt: skip


def _vote(vote: Decision) -> dict[str, Any]:
    return {
        "decision_id": str(vote.pk), "decision": vote.kind, "by": vote.performed_by, "via": vote.via,
        "role": vote.role or None, "rule": vote.rule or None, "rule_version": vote.rule_version,
        "reason_code": vote.reason_code or None, "digest": vote.digest, "view_digest": vote.view_digest,
        "at": _text(vote.at), **({"posture": vote.posture} if vote.posture else {}),
        **({"in_stead_of": f"user:{vote.in_stead_of_id}"} if vote.in_stead_of_id else {}),
    }  # fmt: skip


def _execution(command: Command) -> dict[str, Any]:
    return {
        "command_id": str(command.pk), "status": command.status, "effect": command.effect,
        "settled_by": command.settled_by or None, "provider": command.provider,
        "provider_reference": command.provider_reference or None, "idempotency_key": command.idempotency_key,
        "void_reason": command.void_reason or None, "failure_code": command.failure_code or None,
        "tries": command.tries, "first_sent_at": _text(command.first_sent_at), "ended_at": _text(command.ended_at),
        "result_ref": str(command.result_ref) if command.result_ref else None,
        "attempts": [_attempt(attempt) for attempt in command.attempts.order_by("number")],
    }  # fmt: skip


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number, "status": attempt.status, "outcome": attempt.outcome or None,
        "sent_at": _text(attempt.sent_at), "ended_at": _text(attempt.ended_at),
    }  # fmt: skip


def _text(at: datetime | None) -> str | None:
    """UTC with the six digits that PostgreSQL keeps."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if at is not None else None
