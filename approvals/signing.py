"""Approvals that the approver's own passkey signs: what is signed, when it is asked for, and whether it holds.

A contract with ``"approval": "passkey"`` counts only approvals that carry such a signature. What is signed is a
document of the decision (which proposal and version, which digests, who, once); the WebAuthn challenge is its digest,
so that whoever has the document, the answer and the public key can check it: the worker before each send, and anybody
outside. Nothing is written to ask: the ticket that leads from the question to the answer is signed by the server.
"""

import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.core import signing
from fido2.webauthn import AttestedCredentialData

from access.signing_keys import (
    Assertion,
    PasskeyUnknown,
    SignatureInvalid,
    holds,
    is_registered,
    options_to_sign,
    passkeys_of,
    signing_keys_of,
    take_assertion,
)
from approvals.enums import DecisionKind
from approvals.models import Decision, Proposal, Signature
from approvals.recorded import note
from approvals.refusals import PasskeyMissing, SignatureOver, SignatureRequired
from audit.actors import Actor
from common import prepared
from common.digests import approval_challenge, same
from common.sealed import readable
from common.strictjson import JsonRefused, canonicalize, parse

SIGNED: Final = "proposal.signed"
MEMBER: Final = "approval"
PASSKEY: Final = "passkey"
LIFE: Final = timedelta(minutes=5)
"""So long a person has from the question to the answer."""
_SALT: Final = "placet.approval-ticket.v1"
_MAYBE: Final = b'"approval":"passkey"'
"""In the canonical bytes of each contract that demands it."""
PARTS: Final = ("public_key", "authenticator_data", "client_data", "signature")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the browser sends with an approval: the server's ticket, what the passkey said, and at which host."""

    ticket: str
    credential: Mapping[str, Any]
    rp_id: str


@dataclass(frozen=True, slots=True)
class Signed:
    """A document and the passkey's answer to its challenge; both were checked."""

    document: Mapping[str, Any]
    answer: Assertion


def demands(contract: Mapping[str, Any]) -> bool:
    """Whether each approval of this contract must be signed."""
    return contract.get(MEMBER) == PASSKEY


def must_be_signed(proposal: Proposal) -> bool:
    """The same of a proposal, by its stored bytes; not by a column, which nobody has signed."""
    stored = readable(proposal, "contract") or b""
    if _MAYBE not in stored:
        return False
    try:
        contract = parse(stored)
    except JsonRefused:
        return False
    return isinstance(contract, dict) and demands(contract)


def document_of(
    proposal: Proposal, approver: UUID | None, *, nonce: str, asked_at: str, rp_id: str
) -> dict[str, Any]:
    """What is signed."""
    return {
        "v": 1, "tenant": str(proposal.tenant_id), "proposal": str(proposal.pk), "version": proposal.version,
        "digest": proposal.digest, "view_digest": proposal.view_digest, "decision": DecisionKind.APPROVE.value,
        "approver": str(approver), "nonce": nonce, "asked_at": asked_at, "rp_id": rp_id,
    }  # fmt: skip


def question(proposal: Proposal, *, by: Actor, rp_id: str, now: datetime) -> dict[str, Any]:
    """What a browser needs to ask a passkey: its options, and the ticket to hand back. Nothing is written.

    Raises PasskeyMissing where the person has none, PasskeyUnknown where the history tells of none of theirs.
    """
    keys = check_has_key(by, proposal.tenant_id)
    asked_at = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    document = document_of(proposal, by.user_id, nonce=secrets.token_hex(16), asked_at=asked_at, rp_id=rp_id)
    challenge = approval_challenge(canonicalize(document))
    ticket = signing.Signer(salt=_SALT).sign_object(document)
    return {"ticket": ticket, "options": options_to_sign(keys, rp_id=rp_id, challenge=challenge)}


def check_has_key(by: Actor, tenant_id: UUID) -> list[AttestedCredentialData]:
    """The passkeys with which this person can sign. Raises PasskeyMissing or PasskeyUnknown where there is none."""
    keys = signing_keys_of(_user(by), tenant_id)
    if not keys:
        raise PasskeyUnknown() if passkeys_of(_user(by)) else PasskeyMissing()
    return keys


def _user(by: Actor) -> UUID:
    assert by.user_id is not None, "a person decides"
    return by.user_id


def check_signed(proposal: Proposal, answer: Answer | None, *, by: Actor, now: datetime) -> Signed | None:
    """What the approver's passkey signed of this very proposal; None where nothing is to be signed. In an action.

    Raises SignatureRequired, SignatureOver, SignatureInvalid or PasskeyUnknown.
    """
    if not must_be_signed(proposal):
        return None
    if answer is None:
        raise SignatureRequired()
    document = _ticket(answer, proposal, by, now)
    taken = take_assertion(
        answer.credential, user_id=_user(by), tenant_id=proposal.tenant_id, rp_id=answer.rp_id,
        challenge=approval_challenge(canonicalize(document)),
    )  # fmt: skip
    return Signed(document, taken)


def _ticket(answer: Answer, proposal: Proposal, by: Actor, now: datetime) -> dict[str, Any]:
    """The document that was asked about: by this server, lately, of this person, on this very proposal, and once."""
    try:
        document = signing.Signer(salt=_SALT).unsign_object(answer.ticket)
        meant = document_of(
            proposal, by.user_id, nonce=document["nonce"], asked_at=document["asked_at"], rp_id=answer.rp_id
        )
        asked_at = datetime.fromisoformat(document["asked_at"])
    except (signing.BadSignature, ValueError, KeyError, TypeError) as error:
        raise SignatureInvalid() from error
    if document != meant:
        raise SignatureInvalid()
    if now >= asked_at + LIFE or Signature.objects.filter(nonce=document["nonce"]).exists():
        raise SignatureOver()
    return meant


def keep(proposal: Proposal, vote: Decision, signed: Signed, *, by: Actor) -> None:
    """Store the signature with its vote, and tell the history all of it. In the running action."""
    it = signed.answer
    parts = {name: b64encode(getattr(it, name)).decode() for name in PARTS}
    document = dict(signed.document)
    prepared.insert(Signature(
        tenant_id=proposal.tenant_id, decision=vote, nonce=document["nonce"], at=vote.at,
        document=canonicalize(document).decode(), credential_id=it.credential_id, **parts,
    ))  # fmt: skip
    body = {
        "decision_id": str(vote.pk),
        "document": document,
        "credential_id": it.credential_id,
        **parts,
    }
    note(proposal, "proposal.signed", by=by, body=body)


def signed_votes(proposal: Proposal) -> frozenset[UUID]:
    """The votes on it that came with a signature; whether each holds is for who executes."""
    rows = Signature.objects.filter(tenant_id=proposal.tenant_id, decision__proposal=proposal)
    return frozenset(rows.values_list("decision_id", flat=True))


# -- before anything is sent ----------------------------------------------------------------------------------------


def those_that_count(proposal: Proposal, votes: Sequence[Decision]) -> list[Decision]:
    """The votes without the approvals that carry no signature which holds: over this very proposal, by a key that the
    history says was that person's when they approved.
    """
    rows = Signature.objects.filter(tenant_id=proposal.tenant_id, decision__in=[vote.pk for vote in votes])
    by_vote = {row.decision_id: row for row in rows}
    return [
        vote for vote in votes
        if vote.kind != DecisionKind.APPROVE or _is_signed(proposal, vote, by_vote.get(vote.pk))
    ]  # fmt: skip


def _is_signed(proposal: Proposal, vote: Decision, row: Signature | None) -> bool:
    if row is None or vote.user_id is None:
        return False
    try:
        said: Any = parse(row.document.encode())
        meant = document_of(
            proposal, vote.user_id, nonce=row.nonce, asked_at=str(said["asked_at"]), rp_id=str(said["rp_id"])
        )
        parts = {name: b64decode(getattr(row, name), validate=True) for name in PARTS}
    except (JsonRefused, KeyError, TypeError, ValueError):
        return False
    stored = canonicalize(meant)
    if not same(stored.decode(), row.document):
        return False
    answer = Assertion(credential_id=row.credential_id, **parts)
    if not holds(answer, rp_id=meant["rp_id"], challenge=approval_challenge(stored)):
        return False
    return is_registered(proposal.tenant_id, vote.user_id, row.credential_id, answer.public_key, at=vote.at)
