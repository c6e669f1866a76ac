"""View receipts: proof that a response carried a part of a view document to a user.

A receipt is issued only by the response that holds the part's text, and is handed back with the decision,
so that no GET needs to write. It signs the user, the proposal, both digests, the part and the time, and holds
for that user until the proposal's decide-by. Pure: the caller passes the times, from the database's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.core import signing

_SALT: Final = "placet.view-receipt.v1"
_MAX_LENGTH: Final = 2_048
_PART: Final = 4
"""Where the part stands in a claim."""
_CLOCK_STEP: Final = timedelta(seconds=2)
"""How far the database's clock may step back between issuing and checking."""


@dataclass(frozen=True, slots=True)
class Check:
    """Whether a receipt holds; if not, `reason` says why in one word."""

    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


def _refused(reason: str) -> Check:
    return Check(ok=False, reason=reason)


def issue(
    *, user_id: object, proposal_id: object, digest: str, view_digest: str, part: str, at: datetime
) -> str:
    """Sign that this part was carried to this user at this time (aware)."""
    claim = [str(user_id), str(proposal_id), digest, view_digest, part, at.astimezone(UTC).isoformat()]
    return signing.Signer(salt=_SALT).sign_object(claim)


def check(
    receipt: object,
    *,
    user_id: object,
    proposal_id: object,
    digest: str,
    view_digest: str,
    part: str,
    now: datetime,
    decide_by: datetime,
) -> Check:
    """Whether a receipt shows that this user was given this part. Never raises on what a client sends.

    Reasons: malformed, forged, other_user, other_proposal, other_digest, other_view, other_part, expired,
    early.
    """
    claim = _claim(receipt)
    if isinstance(claim, Check):
        return claim
    expected = {
        "other_user": str(user_id),
        "other_proposal": str(proposal_id),
        "other_digest": digest,
        "other_view": view_digest,
        "other_part": part,
    }
    for (reason, value), claimed in zip(expected.items(), claim, strict=False):
        if value != claimed:
            return _refused(reason)
    return _in_time(datetime.fromisoformat(claim[-1]), now, decide_by)


def _in_time(at: datetime, now: datetime, decide_by: datetime) -> Check:
    if now >= decide_by:
        return _refused("expired")
    if at > now + _CLOCK_STEP:
        return _refused("early")
    return Check(ok=True)


def _claim(receipt: object) -> list[str] | Check:
    if not isinstance(receipt, str) or not receipt.isascii() or not 0 < len(receipt) <= _MAX_LENGTH:
        return _refused("malformed")
    try:
        claim = signing.Signer(salt=_SALT).unsign_object(receipt)
    except signing.BadSignature:
        return _refused("forged")
    return claim if isinstance(claim, list) else _refused("malformed")


def by_part(sent: Iterable[object], **expected: Any) -> dict[str, str]:
    """The receipts that hold, by the part that each is for; `expected` is what `check` takes beside the part."""
    held: dict[str, str] = {}
    for receipt in sent:
        claim = _claim(receipt)
        if not isinstance(claim, Check) and check(receipt, part=claim[_PART], **expected):
            held[claim[_PART]] = str(receipt)
    return held


def parts_not_shown(receipts: Iterable[object], parts: Sequence[str], **expected: Any) -> tuple[str, ...]:
    """The parts that none of the receipts proves; `expected` is what `check` takes beside the part."""
    shown = by_part(receipts, **expected)
    return tuple(part for part in parts if part not in shown)
