"""Passkeys as keys that sign: which a person has, what one has signed, and since when the history knows it.

The history's word counts, not the table's: a key in the table whose registration no event tells of signs nothing.
"""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from allauth.mfa.models import Authenticator
from cryptography.exceptions import UnsupportedAlgorithm
from fido2 import cbor
from fido2.cose import CoseKey
from fido2.rpid import verify_rp_id
from fido2.server import Fido2Server
from fido2.utils import websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    AuthenticatorData,
    CollectedClientData,
    PublicKeyCredentialRpEntity,
    UserVerificationRequirement,
)

from access.passkeys import COUNT, ODD
from audit.models import Event
from common.errors import Refused
from common.tx import require_transaction

ADDED: Final = "user.mfa_added"
REMOVED: Final = "user.mfa_removed"
KINDS: Final = frozenset({-7, -8, -35, -36, -37, -257})
"""ES256, EdDSA, ES384, ES512, PS256, RS256 by their COSE numbers: what `verify_history.py` reads too."""
_OTHER_KIND: Final = (NotImplementedError, UnsupportedAlgorithm)
"""What the libraries raise over a key that they cannot use."""
_PATIENCE_MS: Final = 300_000
_PARTS: Final = {"authenticator_data": 512, "client_data": 1024, "signature": 1024}
"""The most bytes of each part of an answer: all of it has to fit into an event."""


class SigningRefused(Refused):
    """This was not signed."""

    code = "signing_refused"
    http_status = 403


class SignatureInvalid(SigningRefused):
    """The signature is not one of your passkey over exactly this. Nothing was recorded; sign again."""

    code = "signature_invalid"


class PasskeyUnknown(SigningRefused):
    """The history of this organisation does not say that this passkey is yours. Remove it and add it anew."""

    code = "passkey_not_registered"


@dataclass(frozen=True, slots=True)
class Assertion:
    """What a passkey answered, and its public key (COSE) as it was held here then."""

    credential_id: str
    public_key: bytes
    authenticator_data: bytes
    client_data: bytes
    signature: bytes


def facts_of(authenticator: Authenticator) -> dict[str, str]:
    """What the event of its registration, or removal, says of a passkey."""
    found = _attested(authenticator)
    return {
        "credential_id": websafe_encode(found.credential_id), "public_key": b64encode(cose_of(found)).decode(),
    }  # fmt: skip


def cose_of(attested: AttestedCredentialData) -> bytes:
    return cbor.encode(dict(attested.public_key))


def fingerprint_of(authenticator: Authenticator) -> str:
    """SHA-256 of the COSE key: what a person gives to whoever checks what they signed."""
    return hashlib.sha256(cose_of(_attested(authenticator))).hexdigest()


def _attested(authenticator: Authenticator) -> AttestedCredentialData:
    data: AttestedCredentialData = authenticator.wrap().authenticator_data.credential_data
    return data


def _passkeys(user_id: UUID) -> Any:
    return Authenticator.objects.filter(user_id=user_id, type=Authenticator.Type.WEBAUTHN).order_by("pk")


def passkeys_of(user_id: UUID) -> list[AttestedCredentialData]:
    return [_attested(row) for row in _passkeys(user_id)]


def signing_keys_of(user_id: UUID, tenant_id: UUID) -> list[AttestedCredentialData]:
    """Those of the person's passkeys that the tenant's history tells of, and that everybody can check."""
    return [
        key for key in passkeys_of(user_id)
        if key.public_key.get(3) in KINDS
        and is_registered(tenant_id, user_id, websafe_encode(key.credential_id), cose_of(key))
    ]  # fmt: skip


def is_registered(
    tenant_id: UUID, user_id: UUID, credential_id: str, public_key: bytes, *, at: datetime | None = None
) -> bool:
    """Whether the tenant's history says that this very key was this person's: now, or at that time."""
    events = Event.objects.filter(
        tenant_id=tenant_id, subject_id=user_id, kind__in=(ADDED, REMOVED), body__credential_id=credential_id
    )
    if at is not None:
        events = events.filter(at__lte=at)
    last = events.order_by("-at", "-id").values_list("kind", "body").first()
    return (
        last is not None and last[0] == ADDED and last[1].get("public_key") == b64encode(public_key).decode()
    )


# -- signing ------------------------------------------------------------------------------------------------------


def options_to_sign(
    keys: Sequence[AttestedCredentialData], *, rp_id: str, challenge: bytes
) -> dict[str, Any]:
    """What the browser is asked with: one of these passkeys, by a person whom it has recognised."""
    known = [{"type": "public-key", "id": websafe_encode(key.credential_id)} for key in keys]
    public = {
        "challenge": websafe_encode(challenge), "rpId": rp_id, "userVerification": "required",
        "allowCredentials": known, "timeout": _PATIENCE_MS,
    }  # fmt: skip
    return {"publicKey": public}


def _server(rp_id: str) -> Fido2Server:
    return Fido2Server(PublicKeyCredentialRpEntity(id=rp_id, name=rp_id))


def take_assertion(
    credential: Mapping[str, Any], *, user_id: UUID, tenant_id: UUID, rp_id: str, challenge: bytes
) -> Assertion:
    """The answer of one of this person's passkeys to this challenge, and counted. Inside a transaction.

    Raises SignatureInvalid, and PasskeyUnknown for a passkey that the history does not tell of.
    """
    require_transaction()
    rows = list(_passkeys(user_id).select_for_update())
    state = {
        "challenge": websafe_encode(challenge),
        "user_verification": UserVerificationRequirement.REQUIRED,
    }
    try:
        answer = AuthenticationResponse.from_dict(credential)
        key = _server(rp_id).authenticate_complete(state, [_attested(row) for row in rows], answer)
        row = next(row for row in rows if _attested(row).credential_id == key.credential_id)
        _count(row, answer.response.authenticator_data.counter)
        found = Assertion(
            websafe_encode(key.credential_id), cose_of(key), bytes(answer.response.authenticator_data),
            bytes(answer.response.client_data), bytes(answer.response.signature),
        )  # fmt: skip
    except (*ODD, *_OTHER_KIND) as error:
        raise SignatureInvalid() from error
    if not holds(found, rp_id=rp_id, challenge=challenge) or any(
        len(getattr(found, name)) > most for name, most in _PARTS.items()
    ):
        raise SignatureInvalid()
    known = is_registered(tenant_id, user_id, found.credential_id, found.public_key)
    if key.public_key.get(3) not in KINDS or not known:
        raise PasskeyUnknown()
    return found


def _count(row: Authenticator, counted: int) -> None:
    """A passkey that counts its signatures must have counted on: a copy of it lags behind. Raises ValueError."""
    before = row.data.get(COUNT, row.wrap().authenticator_data.counter)
    if (counted or before) and counted <= before:
        raise ValueError("the counter did not go on")
    row.data |= {COUNT: counted}
    row.save(update_fields=["data"])
    row.record_usage()


def holds(it: Assertion, *, rp_id: str, challenge: bytes) -> bool:
    """Whether a stored answer is a signature by its key over this challenge, given by a person it had recognised.

    Pure: whose key it was, the caller asks.
    """
    try:
        said, data = CollectedClientData(it.client_data), AuthenticatorData(it.authenticator_data)
        encoded: Any = cbor.decode(it.public_key)
        CoseKey.parse(encoded).verify(it.authenticator_data + said.hash, it.signature)
        return bool(
            said.type == CollectedClientData.TYPE.GET
            and said.challenge == challenge
            and not said.cross_origin
            and verify_rp_id(rp_id, said.origin)
            and data.rp_id_hash == hashlib.sha256(rp_id.encode()).digest()
            and data.is_user_present()
            and data.is_user_verified()
        )
    except Exception:  # noqa: BLE001 - bytes that anybody may have written, read by a library: they hold nothing
        return False
