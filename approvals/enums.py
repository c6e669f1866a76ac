"""States and words of asking people."""

from datetime import timedelta
from enum import nonmember

from django.db.models import TextChoices


class ProposalStatus(TextChoices):
    """Where a proposal stands. *Approved* is final for modes that send nothing."""

    PENDING = "pending", "Waiting for approval"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    CHANGES_REQUESTED = "changes_requested", "Changes requested"
    EXPIRED = "expired", "Expired"
    WITHDRAWN = "withdrawn", "Withdrawn"
    SUPERSEDED = "superseded", "Superseded"
    INVALIDATED = "invalidated", "Invalidated"
    CONSUMED = "consumed", "Used"
    LAPSED = "lapsed", "Lapsed"

    # A step has at most one proposal in these states; approving needs the first.
    live_states = nonmember(("pending", "approved", "changes_requested"))
    open_states = nonmember(("pending",))
    final_states = nonmember(
        ("rejected", "expired", "withdrawn", "superseded", "invalidated", "consumed", "lapsed")
    )


class Mode(TextChoices):
    """What an approval leads to: only *live* proposals may ever have a command."""

    LIVE = "live", "Live"
    SHADOW = "shadow", "Shadow"
    DRAFT = "draft", "Draft"
    CANARY = "canary", "Canary"


class DecisionKind(TextChoices):
    """What a person can say. The list is closed; nothing else counts as a yes."""

    APPROVE = "approve", "Approve"
    REJECT = "reject", "Reject"
    REQUEST_CHANGES = "request_changes", "Request changes"


class DecisionResult(TextChoices):
    """What a decision led to."""

    RECORDED = "recorded", "Recorded, more people are needed"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    CHANGES_REQUESTED = "changes_requested", "Changes requested"


class ReasonCode(TextChoices):
    """Why not, in a word that can be counted."""

    WRONG_TARGET = "wrong_target", "Wrong record"
    WRONG_AMOUNT = "wrong_amount", "Wrong amount"
    NOT_JUSTIFIED = "not_justified", "Not justified by the evidence"
    EVIDENCE_MISSING = "evidence_missing", "Evidence is missing or old"
    SUSPICIOUS = "suspicious", "Looks like abuse"
    DUPLICATE = "duplicate", "Already done"
    OTHER = "other", "Another reason"


class Asked(TextChoices):
    """Of whom a question is asked."""

    PROPOSER = "proposer", "The proposer"
    COLLEAGUE = "colleague", "A colleague"


class Remember(TextChoices):
    """For how long a rejection answers whoever proposes the same again."""

    NONE = "none", "Ask people again"
    DAY = "day", "Say no for a day"
    WEEK = "week", "Say no for 7 days"
    MONTH = "month", "Say no for 30 days"

    @property
    def span(self) -> timedelta:
        return timedelta(days={"none": 0, "day": 1, "week": 7, "month": 30}[self.value])


class EscalationOutcome(TextChoices):
    """What became of a planned step of widening."""

    WIDENED = "widened", "Asked of more people"
    NOT_NEEDED = "not_needed", "Not needed any more"


class AfterVerdict(TextChoices):
    """What a person says about an automatic action afterwards."""

    FINE = "fine", "Fine"
    WRONG = "wrong", "Wrong"
