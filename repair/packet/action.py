"""The proposed action, and what was approved, by whom, seeing what. Values leave by their declared class."""

from collections.abc import Mapping, Sequence
from typing import Any

from approvals.models import Decision
from approvals.viewdoc import ViewField
from common.content_errors import ContentErased
from common.content_keys import SealBroken
from common.disclosure import Recipient, disclosed, for_lists, may_see
from common.fields import SecretRefType
from repair.packet.case import Case
from repair.packet.texts import Part, instant, said, shortened
from workflows.contracts import bound_arguments, read_contract
from workflows.operations import Site
from workflows.tenants import slug_of

UNREADABLE = (ContentErased, SealBroken, ValueError, AssertionError)
DIGITS = 8
"""Of a secret's fingerprint: enough to tell whether it is the same one."""


def action_part(case: Case, to: Recipient) -> Part | None:
    """What was to be done; None for a stop before anything was proposed."""
    proposal, operation = case.proposal, case.operation
    if proposal is None:
        return None
    return {
        "operation": proposal.operation, "operation_version": proposal.operation_version,
        "title": operation.title if operation else proposal.operation, "installed": operation is not None,
        "provider": operation.provider if operation else (case.command.provider if case.command else None),
        "account": said(_account(case)) or None, "business_key_words": said(_business_words(case)) or None,
        "target": said(proposal.target), "mode": proposal.mode, "summary": said(proposal.summary),
        "fields": [field_part(field, to) for field in case.view.fields] if case.view else None,
        "idempotency_key": proposal.idempotency_key, "business_key": proposal.business_key,
        "pins": {said(name): said(tag) for name, tag in case.pins.items()},
        "evidence": [_evidence(row, to) for row in case.evidence],
        "undo": operation.undo if operation else None,
    }  # fmt: skip


def _account(case: Case) -> str:
    """Where the operation's connector would do it now, as its author says it."""
    run, operation = case.run, case.operation
    if operation is None:
        return ""
    return operation.account(Site(run.tenant_id, slug_of(run.tenant_id), run.on_behalf_of))


def _business_words(case: Case) -> str:
    """What must not happen twice, in the author's words and without personal values; the key itself is a digest."""
    operation, proposal = case.operation, case.proposal
    if operation is None or proposal is None:
        return ""
    try:
        arguments = bound_arguments(operation, read_contract(bytes(proposal.contract)))
    except UNREADABLE:
        return ""
    return operation.business_key(for_lists(arguments, proposal.tenant_id))


def field_part(field: ViewField, to: Recipient) -> Part:
    """One bound value as the reviewer was shown it, or what stands in its place."""
    return {
        "pointer": field.pointer, "label": field.label, "type": field.type, "class": field.data_class,
        "text": shortened(shown_value(field, to)), "characters": field.characters,
    }  # fmt: skip


def shown_value(field: ViewField, to: Recipient) -> str:
    """Also of a secret equal ones are told from different ones: by the fingerprint that the contract names."""
    if field.text is None:
        return "⟦cannot be shown⟧"
    if field.type == SecretRefType.name:
        reference, _, fingerprint = field.text.partition(" hmac:")
        return f"⟦secret {reference}, fingerprint {fingerprint[:DIGITS]}⟧"
    return disclosed(field.text, field.data_class, to)


def _evidence(row: Any, to: Recipient) -> Part:
    """Where it came from and what it hashes to; its content stays behind the proposal."""
    open_ = may_see(row.data_class, to)
    return {
        "kind": said(row.kind), "title": said(row.title) if open_ else disclosed(row.title, row.data_class, to),
        "class": row.data_class, "source": said(row.source), "captured_at": instant(row.captured_at),
        "digest": row.digest, "asserted": row.asserted,
    }  # fmt: skip


def approval_part(case: Case) -> Part | None:
    """Who said what on which digests. Their words stay on the proposal's page."""
    proposal = case.proposal
    if proposal is None:
        return None
    policy: Mapping[str, Any] = proposal.policy
    return {
        "proposal_id": str(proposal.pk), "version": proposal.version, "status": proposal.status,
        "digest": proposal.digest, "view_digest": proposal.view_digest, "material_digest": proposal.material_digest,
        "policy": {name: policy.get(name) for name in ("version", "rule", "verdict")},
        "needed": proposal.needed, "proposed_by": said(proposal.proposed_by),
        "made_at": instant(proposal.created_at), "decide_by": instant(proposal.decide_by),
        "decided_at": instant(proposal.decided_at), "execute_by": instant(proposal.execute_by),
        "ended_at": instant(proposal.ended_at), "end_reason": said(proposal.end_reason),
        "votes": [_vote(vote) for vote in _votes(case)],
    }  # fmt: skip


def _votes(case: Case) -> Sequence[Decision]:
    return case.story.votes.get(case.proposal.pk, ()) if case.proposal else ()


def _vote(vote: Decision) -> Part:
    return {
        "decision": vote.kind, "by": vote.performed_by, "via": vote.via, "role": vote.role or None,
        "rule": said(vote.rule) or None, "rule_version": vote.rule_version, "reason_code": vote.reason_code or None,
        "digest": vote.digest, "view_digest": vote.view_digest, "at": instant(vote.at),
        "parts_seen": len(vote.parts_seen), "acknowledged": [said(code) for code in vote.acknowledged],
        **({"posture": vote.posture} if vote.posture else {}),
    }  # fmt: skip
