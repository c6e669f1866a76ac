"""Do proposals, decisions and evidence still say what was recorded, and are the bytes those that were bound?

For the daily check (`audit.replay`). The chain holds whatever somebody does to these rows; events know their digests.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from approvals.bound import DECISION, LATER, PROPOSAL, of_decision, of_proposal
from approvals.models import Decision, Evidence, Proposal
from audit.bound import ROW, row_digest, utc_text
from audit.models import Event
from audit.replay import batch_by_batch
from common.content_errors import ContentErased
from common.content_keys import KeyUnknown, SealBroken
from common.digests import contract_digest, evidence_digest, view_digest
from common.sealed import prefetch_keys
from common.strictjson import JsonRefused, parse

AT_ONCE: Final = 200
_TOLD: Final = ("proposal.made", "proposal.vote", "proposal.approved")
_COLUMNS: Final = tuple(name for name in PROPOSAL + LATER if name != "id")


def differences(tenant_id: UUID) -> Iterator[str]:
    """A sentence for each row that is not what it was, in the order of ids."""
    yield from batch_by_batch(tenant_id, _differ)


def _differ(tenant_id: UUID, after: UUID) -> tuple[UUID | None, list[str]]:
    """Of the next rows: the last of them, None where there are no more; and what differs."""
    rows = _batch(tenant_id, after)
    told, erased = _told(tenant_id, rows), _erased(tenant_id, rows)
    pieces, votes = _of(Evidence, tenant_id, rows), _of(Decision, tenant_id, rows)
    prefetch_keys(rows)
    found: list[str] = []
    for row in rows:
        found += _proposal(row, told[row.pk])
        found += _contents(row, pieces[row.pk], is_told=row.run_id in erased)
        found += _votes(votes[row.pk], told[row.pk])
        found += _quorum(row, votes[row.pk], told[row.pk])
    return (rows[-1].pk if rows else None), found


def _batch(tenant_id: UUID, after: UUID) -> list[Proposal]:
    found = Proposal.objects.filter(tenant_id=tenant_id, pk__gt=after).order_by("pk")
    return list(found.only(*_COLUMNS, "contract", "view", "execute_by", "decided_at")[:AT_ONCE])


def _told(tenant_id: UUID, rows: Sequence[Proposal]) -> dict[UUID, list[tuple[str, dict[str, Any]]]]:
    """Kind and body of what was recorded about each, by proposal."""
    found: dict[UUID, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    events = Event.objects.filter(
        tenant_id=tenant_id, subject_id__in=[row.pk for row in rows], kind__in=_TOLD
    )
    for subject, kind, body in events.order_by("at", "id").values_list("subject_id", "kind", "body"):
        found[subject].append((kind, body))
    return found


def _of(model: Any, tenant_id: UUID, rows: Sequence[Proposal]) -> dict[UUID, list[Any]]:
    found: dict[UUID, list[Any]] = defaultdict(list)
    by_id = {row.pk: row for row in rows}
    for one in model._default_manager.filter(tenant_id=tenant_id, proposal_id__in=by_id).order_by("pk"):
        one.proposal = by_id[one.proposal_id]
        found[one.proposal_id].append(one)
    return found


def _erased(tenant_id: UUID, rows: Sequence[Proposal]) -> set[UUID]:
    runs = {row.run_id for row in rows}
    events = Event.objects.filter(tenant_id=tenant_id, subject_id__in=runs, kind="run.content_erased")
    return set(events.values_list("subject_id", flat=True))


def _proposal(row: Proposal, told: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    for kind, body in told:
        if kind == "proposal.made" and ROW in body and body[ROW] != row_digest(of_proposal(vars(row))):
            yield f"The proposal {row.pk} is not as it was made."
        if kind == "proposal.approved" and "decided_at" in body:
            times = (row.decided_at and utc_text(row.decided_at), str(row.execute_by))
            if times != (body["decided_at"], body["execute_by"]):
                yield f"The proposal {row.pk} has other times than those of its approval."


def _contents(row: Proposal, pieces: Sequence[Evidence], *, is_told: bool) -> Iterator[str]:
    try:
        contract, view = bytes(row.contract), bytes(row.view)
    except ContentErased:
        if not is_told:
            yield f"What was proposed in {row.pk} cannot be read any more, and no event says that it was erased."
        return
    except SealBroken:
        yield f"What was proposed in {row.pk} is damaged: it is not what was sealed."
        return
    except KeyUnknown:
        return  # the doctor says which key is missing
    if contract_digest(contract) != row.digest or view_digest(view) != row.view_digest:
        yield f"The contract of the proposal {row.pk}, or what was shown of it, is not what was signed."
    elif _bound_evidence(contract) not in (None, _digests(pieces)):
        yield f"The evidence of the proposal {row.pk} is not what its contract names."


def _bound_evidence(contract: bytes) -> list[Any] | None:
    try:
        document = parse(contract)
    except JsonRefused:
        return None
    found = document.get("evidence") if isinstance(document, dict) else None
    return found if isinstance(found, list) else None


def _digests(pieces: Sequence[Evidence]) -> list[str]:
    """By position, of the bytes as they are; of a piece whose bytes do not open, nothing that fits."""
    return [_digest(piece) for piece in sorted(pieces, key=lambda piece: piece.position)]


def _digest(piece: Evidence) -> str:
    try:
        found = evidence_digest(bytes(piece.salt), bytes(piece.content or b""))
        return found if found == piece.digest else ""
    except (SealBroken, ContentErased):
        return ""


def _votes(votes: Sequence[Decision], told: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    said = {body.get("decision_id"): body for kind, body in told if kind == "proposal.vote"}
    for vote in votes:
        body = said.pop(str(vote.pk), None)
        if body is None:
            yield f"The decision {vote.pk} stands in no event of the history."
        elif ROW in body and body[ROW] != row_digest(
            of_decision({name: getattr(vote, name) for name in _VOTE})
        ):
            yield f"The decision {vote.pk} is not as it was given."
    for gone in said:
        yield f"The decision {gone} stands in the history and no more in its table."
    times = Counter(str(body.get("decision_id")) for kind, body in told if kind == "proposal.vote")
    for ident in (ident for ident, number in times.items() if number > 1):
        yield f"The decision {ident} stands in the history more than once."


def _quorum(
    row: Proposal, votes: Sequence[Decision], told: Sequence[tuple[str, dict[str, Any]]]
) -> Iterator[str]:
    """What is called approved was approved by as many people as it needs, and once."""
    kinds = Counter(kind for kind, _ in told)
    people = {vote.performed_by for vote in votes if vote.kind == "approve" and vote.replaced_at is None}
    if kinds["proposal.approved"] and len(people) < max(1, row.needed):
        yield f"The proposal {row.pk} is called approved by {len(people)} decisions, and needs {max(1, row.needed)}."
    if kinds["proposal.made"] > 1 or kinds["proposal.approved"] > 1:
        yield f"The proposal {row.pk} is made or approved more than once in the history."


_VOTE: Final = ("id", *DECISION)
