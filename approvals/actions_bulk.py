"""Deciding several proposals from one list: each through the ordinary action, in a transaction of its own.

Nothing here can do what a person could not do on the page of each: the same checks, digests and receipts.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.core import signing

from approvals.actions import Submission, decide
from approvals.alike import MOST, Listed, digest_of
from approvals.refusals import DecisionRefused
from audit.actors import Actor
from common import away
from common.away import AWAY
from common.clock import Clock
from common.errors import InvalidInput, Refused
from common.problems import Unavailable

_SALT = "placet.bulk-list.v1"


class ListMismatch(DecisionRefused):
    """This is not the list that you were shown. Look at what stands here now."""

    code = "list_mismatch"


class NotAlike(DecisionRefused):
    """It is not, or not any more, of the kind that is decided in a list. Decide it on its own page."""

    code = "not_alike"


class NothingChosen(InvalidInput):
    """Tick at least one of the list first."""

    code = "nothing_chosen"


class TooManyChosen(InvalidInput):
    """A list has at most fifty."""

    code = "too_many_chosen"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person said about all that they ticked in one list."""

    kind: str
    list_digest: str
    reason_code: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one of them, as a word of `DecisionResult`, or why it was refused."""

    proposal_id: UUID
    became: str = ""
    refusal: Refused | None = None


def seal_list(items: Iterable[Listed], *, user_id: object, at: datetime) -> str:
    """Sign that this list was shown to this person."""
    return signing.Signer(salt=_SALT).sign_object([str(user_id), digest_of(items), at.isoformat()])


def check_list(items: Iterable[Listed], seal: str, *, user_id: object) -> str:
    """The digest of the list that was shown. Raises ListMismatch for another one, or another person's."""
    digest = digest_of(items)
    try:
        claim = signing.Signer(salt=_SALT).unsign_object(seal)
    except (signing.BadSignature, ValueError) as error:
        raise ListMismatch() from error
    if claim[:2] != [str(user_id), digest]:
        raise ListMismatch()
    return digest


def chosen_of(items: Iterable[Listed], ticked: Collection[str]) -> tuple[Listed, ...]:
    """What was ticked, in the order of the list. Raises NothingChosen, TooManyChosen, ListMismatch."""
    if not ticked:
        raise NothingChosen()
    if len(ticked) > MOST:
        raise TooManyChosen()
    chosen = tuple(item for item in items if item.proposal_id in ticked)
    if {item.proposal_id for item in chosen} != set(ticked):
        raise ListMismatch()
    return chosen


def decide_listed(
    *,
    tenant_id: UUID,
    chosen: Iterable[Listed],
    offered: Collection[UUID],
    wanted: Wanted,
    by: Actor,
    clock: Clock,
) -> list[Result]:
    """Decide each for itself; one that is refused stops none of the others, and leaves itself as it was.

    ``offered``: which of them are of the kind that a list may hold. When the database goes away, the rest is not tried.
    """
    results: list[Result] = []
    for item in chosen:
        proposal_id = UUID(item.proposal_id)
        if results and isinstance(results[-1].refusal, Unavailable):
            results.append(Result(proposal_id, refusal=Unavailable(retry_after=5)))
        elif proposal_id not in offered:
            results.append(Result(proposal_id, refusal=NotAlike()))
        else:
            results.append(_decide_one(tenant_id, proposal_id, _submission(item, wanted), by, clock))
    return results


def _decide_one(
    tenant_id: UUID, proposal_id: UUID, submission: Submission, by: Actor, clock: Clock
) -> Result:
    try:
        outcome = decide(
            tenant_id=tenant_id, proposal_id=proposal_id, submission=submission, by=by, clock=clock
        )
    except Refused as refusal:
        return Result(proposal_id, refusal=refusal)
    except AWAY as error:
        away.note(error)
        away.drop_failed_connection()
        return Result(proposal_id, refusal=Unavailable(retry_after=5))
    return Result(proposal_id, became=outcome.result)


def _submission(item: Listed, wanted: Wanted) -> Submission:
    return Submission(
        kind=wanted.kind, digest=item.digest, view_digest=item.view_digest, view_receipts=(item.receipt,),
        reason_code=wanted.reason_code, reason=wanted.reason, bulk_list=wanted.list_digest,
    )  # fmt: skip
