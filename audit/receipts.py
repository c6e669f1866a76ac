"""A receipt of one event: what somebody keeps outside, so that it cannot be taken out of the history unnoticed.

Signed with the installation's key is ``"placet.history-receipt.v1\\n" + RFC 8785(receipt without "signature")``. It is
made from the rows each time: at first the hash of what the event says; later also its place in the chain, and once a
checkpoint stands over it, the checkpoint and the proof that leads there.
"""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from audit import bundle_reading as reading
from audit.chain import content_hash
from audit.models import Event, Seal
from audit.selectors import stored_content
from common.clock import Clock
from common.errors import NotFound
from common.pipelined import Question, first_of
from common.rates import Rate, check_rate
from common.signing import sign
from common.strictjson import canonicalize

DOMAIN: Final = b"placet.history-receipt.v1\n"
RATE: Final = Rate(per_minute=120, burst=120)
"""Each reads all hashes of its tenant."""
OF_RUNS: Final = ("run", "step", "command")
OF_PROPOSALS: Final = ("proposal",)


def get_event(tenant_id: UUID, event_id: UUID, subjects: Iterable[str] | None) -> Event:
    """An event about one of these kinds of things, or about anything. Raises NotFound, for another tenant's too."""
    found = Event.objects.filter(tenant_id=tenant_id, pk=event_id)
    event = (found if subjects is None else found.filter(subject_type__in=list(subjects))).first()
    if event is None:
        raise NotFound
    return event


def receipt(event: Event, clock: Clock) -> dict[str, Any]:
    """The signed receipt as it can be given now. Raises RateLimited."""
    check_rate(f"receipts:{event.tenant_id}", RATE)
    with transaction.atomic():
        return _signed(event, clock)


def _signed(event: Event, clock: Clock) -> dict[str, Any]:
    content, seal = stored_content(event.pk), Seal.objects.filter(event_id=event.pk).first()
    document = {
        "v": 1, "tenant_id": str(event.tenant_id), "event_id": str(event.pk), "kind": event.kind,
        "subject": content.members["subject"], "run_id": content.members["run"], "at": content.at,
        "content_hash": content_hash(content), "issued_at": reading.utc(clock()),
        "seq": seal.seq if seal else None, "hash": seal.hash if seal else None,
        **(_proof(event.tenant_id, seal.seq) if seal else {"proof": None, "checkpoint": None}),
    }  # fmt: skip
    return document | {"signature": asdict(sign(DOMAIN, canonicalize(document)))}


def _proof(tenant_id: UUID, seq: int) -> dict[str, Any]:
    checkpoint = reading.newest_checkpoint(tenant_id)
    if checkpoint is None or checkpoint.size < seq:
        return {"proof": None, "checkpoint": None}
    [proof] = reading.proofs(tenant_id, [seq], checkpoint.size)
    return {"proof": {"size": proof["size"], "path": proof["path"]}, "checkpoint": checkpoint.note}


# --- which event says that something was decided, or proposed -------------------------------------------------------


def event_of_decision(tenant_id: UUID, proposal_id: UUID, decision_id: UUID) -> Event:
    """Raises NotFound."""
    found = events_of_decisions(tenant_id, proposal_id).get(str(decision_id))
    if found is None:
        raise NotFound
    return Event.objects.get(tenant_id=tenant_id, pk=found)


def made_question(tenant_id: UUID, proposal_id: UUID) -> Question[UUID | None]:
    """Which event says that it was made, for who asks more on the same way."""
    return first_of(_MADE, [tenant_id, proposal_id])


_MADE: Final = (
    "SELECT id FROM audit_event WHERE tenant_id = %s AND subject_id = %s AND kind = 'proposal.made' LIMIT 1"
)


def events_of_decisions(tenant_id: UUID, proposal_id: UUID) -> dict[str, UUID]:
    """The event of each decision on a proposal, by the decision's id."""
    found = Event.objects.filter(tenant_id=tenant_id, subject_id=proposal_id, kind="proposal.vote")
    return {str(body.get("decision_id")): pk for pk, body in found.values_list("pk", "body")}
