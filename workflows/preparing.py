"""From a suggestion to a prepared proposal: normalize, look, check, judge. Outside any transaction; writes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from common.disclosure import for_lists
from common.fields import ArgumentsRefused
from workflows import registry
from workflows.contracts import Draft
from workflows.operations import GONE, Affected, Facts, OperationRefused, Policy, Site, Verdict
from workflows.results import EvidencePiece, Malformed, Propose
from workflows.secret_arguments import normalize


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that a proposal will say, except what needs the database: clock, nonce and keys."""

    draft: Draft
    verdict: Verdict
    consequence: str
    summary: str
    affected: tuple[Affected, ...]
    warnings: tuple[tuple[str, str, str], ...]
    reason: str
    evidence: tuple[EvidencePiece, ...]
    asserted_pins: tuple[str, ...] = ()


def prepare(site: Site, propose: Propose, *, version: int | None = None) -> Prepared:
    """Let the operation normalize, look, check and judge.

    Raises Malformed for arguments that do not fit the schema (kept as they were), OperationRefused for what the
    operation or its policy refuses (nobody is asked what would be denied anyway), and what `look` raises.
    """
    operation = registry.operation(propose.operation, version)
    try:
        normalized = normalize(operation.arguments, propose.arguments, site.tenant_id, site.tenant)
    except ArgumentsRefused as refused:
        problems = [{"path": error.path, "code": error.code} for error in refused.errors]
        raise Malformed(
            "invalid_arguments", {"arguments": dict(propose.arguments), "errors": problems}
        ) from None
    draft = Draft(operation, normalized.material, normalized.volatile, target="", pins={})
    arguments = draft.arguments
    facts = operation.look(site, arguments)
    operation.check(arguments, facts)
    verdict = operation.policy.judge(arguments, facts)
    if verdict.verdict == "refuse":
        raise OperationRefused(verdict.rule, verdict.because)
    pins = dict(operation.pins(arguments, facts))
    if GONE in pins.values():
        raise OperationRefused("record_gone", "A record that this rests on is not there any more.")
    draft = replace(draft, target=operation.target(arguments), pins=pins)
    return _described(site, draft, arguments, facts, verdict, propose)


def _described(
    site: Site, draft: Draft, arguments: Any, facts: Facts, verdict: Verdict, propose: Propose
) -> Prepared:
    """Summary and consequence stand in lists, mails and packets: they are made without personal values."""
    operation, for_all = draft.operation, for_lists(arguments, site.tenant_id)
    return Prepared(
        draft=draft, verdict=verdict, consequence=operation.consequence(for_all, facts),
        summary=operation.summary(for_all, facts)[:200], affected=operation.affected(arguments, facts),
        warnings=operation.warnings(arguments, facts), reason=propose.reason, evidence=propose.evidence,
    )  # fmt: skip


def policy_snapshot(verdict: Verdict, policy: Policy[Any]) -> Mapping[str, Any]:
    """What the proposal keeps of the verdict, for people and for the audit."""
    remember_s = int(policy.remember_rejections.total_seconds())
    return ({"remember_s": remember_s} if remember_s else {}) | {
        "version": policy.version, "rule": verdict.rule, "verdict": verdict.verdict, "because": verdict.because,
        "tests": [{"label": test.label, "ok": test.ok, "says": test.says} for test in verdict.tests],
    }  # fmt: skip
