"""Was it all in front of them? Checks a decision's receipts and acknowledgements against the stored view document."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Lock, Timer
from typing import Final

from pydantic import ValidationError

from approvals.models import Proposal
from approvals.receipts import parts_not_shown
from approvals.refusals import NotAcknowledged, NotAllShown, Uninspectable
from approvals.viewdoc import ViewDocument
from audit.actors import Actor
from common.content_keys import SealBroken
from common.strictjson import JsonRefused

_LARGE: Final = 200_000
_KEPT_S: Final = 60.0
_MOST_KEPT: Final = 6
_MEMO: Final = "_view_document"


class Kept:
    """Large documents, which take a while to read, while a person turns their pages: a few, and for a minute.

    No longer: the run whose document it is may be erased, by a process that cannot reach into the memory of this one.
    """

    def __init__(self, read: Callable[[bytes], ViewDocument], life_s: float = _KEPT_S) -> None:
        self._read, self._life_s = read, life_s
        self._lock = Lock()
        self._known: dict[bytes, ViewDocument] = {}

    def __call__(self, stored: bytes) -> ViewDocument:
        name = hashlib.sha256(stored).digest()
        with self._lock:
            found = self._known.get(name)
        return found or self._keep(name, self._read(stored))

    def _keep(self, name: bytes, document: ViewDocument) -> ViewDocument:
        with self._lock:
            while len(self._known) >= _MOST_KEPT:
                del self._known[next(iter(self._known))]
            self._known[name] = document
        forgetting = Timer(self._life_s, self.forget, [name])
        forgetting.daemon = True
        forgetting.start()
        return document

    def forget(self, name: bytes) -> None:
        with self._lock:
            self._known.pop(name, None)

    def __len__(self) -> int:
        return len(self._known)


large: Final = Kept(ViewDocument.from_bytes)


def _parsed(proposal: Proposal) -> ViewDocument:
    """Read once for each row that was fetched."""
    stored = bytes(proposal.view)
    known = proposal.__dict__.get(_MEMO)
    if known is None or known[0] != stored:
        known = (stored, (large if len(stored) > _LARGE else ViewDocument.from_bytes)(stored))
        proposal.__dict__[_MEMO] = known
    document: ViewDocument = known[1]
    return document


def view_of(proposal: Proposal) -> ViewDocument:
    """The stored document: what a later release shows too, never rendered anew.

    Raises Uninspectable for bytes that are no view document any more, and ContentErased.
    """
    try:
        return _parsed(proposal)
    except (JsonRefused, SealBroken, ValidationError) as error:
        raise Uninspectable() from error


def parts_shown(proposal: Proposal, receipts: Sequence[str], *, by: Actor, now: datetime) -> list[str]:
    """The parts that the receipts prove this person was shown."""
    parts = view_of(proposal).parts
    missing = set(_missing(proposal, receipts, parts, by, now))
    return [part for part in parts if part not in missing]


def check_all_shown(
    proposal: Proposal, receipts: Sequence[str], acknowledged: Sequence[str], *, by: Actor, now: datetime
) -> None:
    """Raises NotAllShown or NotAcknowledged, each with the list of what is missing, or Uninspectable."""
    view = view_of(proposal)
    if view.uninspectable:
        raise Uninspectable()
    if missing := _missing(proposal, receipts, view.parts, by, now):
        raise NotAllShown(parts=list(missing))
    if left := [code for code in view.to_acknowledge if code not in acknowledged]:
        raise NotAcknowledged(warnings=left)


def _missing(
    proposal: Proposal, receipts: Sequence[str], parts: Sequence[str], by: Actor, now: datetime
) -> tuple[str, ...]:
    return parts_not_shown(
        receipts, parts, user_id=by.user_id, proposal_id=proposal.pk, digest=proposal.digest,
        view_digest=proposal.view_digest, now=now, decide_by=proposal.decide_by,
    )  # fmt: skip
