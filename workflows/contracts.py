"""The contract that an approval binds to: what goes in, its canonical bytes, its digests (design, section 5)."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from approvals.signing import MEMBER, PASSKEY
from common.digests import business_key, contract_digest, idempotency_key, material_digest
from common.strictjson import canonicalize, parse
from workflows.models import Run
from workflows.operations import Operation


@dataclass(frozen=True, slots=True)
class Draft:
    """A proposed action before it is bound: normalized arguments and what was read about them."""

    operation: Operation[Any]
    material: Mapping[str, Any]
    volatile: Mapping[str, Any]
    target: str
    pins: Mapping[str, str]

    @property
    def arguments(self) -> Any:
        return self.operation.arguments.model_validate({**self.material, **self.volatile})


@dataclass(frozen=True, slots=True)
class Bound:
    """The contract's bytes and everything derived from them."""

    contract: bytes
    digest: str
    material_digest: str
    business_key: str
    idempotency_key: str


def material_digest_of(tenant_id: UUID, draft: Draft) -> str:
    """Equal for two requests of one thing, whenever, by whomever and on whatever evidence they are made."""
    return material_digest(
        tenant_id, operation=draft.operation.name, version=draft.operation.version, target=draft.target,
        arguments=dict(draft.material),
    )  # fmt: skip


def bind(
    run: Run, step: str, draft: Draft, *, tenant: str, actor: str, generation: int, evidence: Sequence[str],
    decide_by: datetime, signed: bool = False,
) -> Bound:  # fmt: skip
    """Write the contract. The nonce makes two contracts about the same thing differ, and cannot be guessed.

    ``signed``: each approval must be signed by a passkey. Then, and only then, the contract says so.
    """
    operation = draft.operation
    key = idempotency_key(run.tenant_id, run.identity, step, generation)
    contract = canonicalize({
        "v": 1, "tenant": tenant, "workflow": run.workflow, "workflow_version": run.workflow_version,
        "run_id": str(run.pk), "step": step, "operation": operation.name, "operation_version": operation.version,
        "actor": actor, "arguments": dict(draft.material), "target": draft.target,
        "policy_version": operation.policy.version, "nonce": secrets.token_hex(16), "evidence": list(evidence),
        "pins": dict(draft.pins), "idempotency_key": key, "decide_by": utc_text(decide_by),
        "execute_within_s": int(operation.execute_within.total_seconds()), **({MEMBER: PASSKEY} if signed else {}),
    })  # fmt: skip
    return Bound(
        contract=contract, digest=contract_digest(contract), idempotency_key=key,
        material_digest=material_digest_of(run.tenant_id, draft),
        business_key=business_key(run.tenant_id, operation.name, [operation.business_key(draft.arguments)]),
    )  # fmt: skip


def utc_text(at: datetime) -> str:
    """RFC 3339 in UTC, whole seconds: ``2026-09-19T17:52:08Z``."""
    return at.astimezone(UTC).replace(microsecond=0).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_contract(stored: bytes) -> Mapping[str, Any]:
    """The stored contract, strictly parsed. Raises JsonRefused for bytes that are none."""
    return parse_object(stored)


def parse_object(stored: bytes) -> Mapping[str, Any]:
    value = parse(stored)
    assert isinstance(value, dict)
    return value


def bound_arguments(operation: Operation[Any], contract: Mapping[str, Any]) -> Any:
    """The typed arguments that a provider's request is built from: the contract's, and nothing else."""
    return operation.arguments.model_validate(dict(contract["arguments"]))
