"""What hangs on one person's decisions at this moment: told to admins before that person stops counting."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Q

from approvals.enums import DecisionKind, Mode, ProposalStatus
from approvals.models import Decision, Proposal


def effects_of_leaving(tenant_id: UUID, accounts: Collection[UUID]) -> list[str]:
    """Sentences with numbers; none where nothing hangs on them."""
    theirs_too = Q(user_id__in=accounts) | Q(in_stead_of_id__in=accounts)
    votes = Decision.objects.filter(theirs_too, kind=DecisionKind.APPROVE, replaced_at__isnull=True)
    theirs = Proposal.objects.filter(tenant_id=tenant_id, pk__in=votes.values("proposal_id"))
    waiting = theirs.filter(status=ProposalStatus.PENDING).count()
    unfinished = theirs.filter(status=ProposalStatus.APPROVED, mode=Mode.LIVE).count()
    says = []
    if waiting:
        says.append(
            f"{_count(waiting, 'proposal')} with their approval wait for a second person: it no longer counts."
        )
    if unfinished:
        says.append(
            f"{_count(unfinished, 'action')} that they approved {'is' if unfinished == 1 else 'are'} not finished: "
            "what is not sent yet goes back to review as a new version, what is sent is not called back."
        )
    return says


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
