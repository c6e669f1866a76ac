"""What reviewers ask before they decide, and the answers: personal words, sealed, and part of no digest."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from access.models import User
from approvals.enums import Asked
from approvals.models.proposals import Proposal
from common.sealed import SealedRow, SealedText
from common.tenancy import SameTenant, TenantRow, tenant_key
from common.walls import AppendOnly

LONGEST_WORDS = 2000
"""Characters of a question, and of an answer."""


class Question(SealedRow, TenantRow):
    """One question about one version of a proposal. It decides nothing, and the clock goes on."""

    content_run = "proposal.run_id"
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, db_constraint=False, related_name="questions"
    )
    of = models.CharField(max_length=20, choices=Asked.choices)
    colleague = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    wording = SealedText()
    asked_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField()

    class Meta:
        triggers: ClassVar = [AppendOnly(name="approvals_question_append_only")]
        constraints = [
            tenant_key("approvals_question_tenant_id"),
            SameTenant(field="proposal", name="approvals_question_proposal_tenant"),
            models.CheckConstraint(
                condition=Q(of=Asked.PROPOSER, colleague__isnull=True)
                | Q(of=Asked.COLLEAGUE, colleague__isnull=False),
                name="approvals_question_of_somebody",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "colleague"], name="approvals_question_colleague")]
        ordering = ["asked_at", "id"]

    def __str__(self) -> str:
        return f"question {self.pk} to the {self.of}"


class Answer(SealedRow, TenantRow):
    """The one answer to a question: by the proposer or somebody on their side, or by the colleague."""

    content_run = "question.proposal.run_id"
    question = models.OneToOneField(
        Question, on_delete=models.PROTECT, db_constraint=False, related_name="answer"
    )
    wording = SealedText()
    user = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    performed_by = models.CharField(max_length=200)
    via = models.CharField(max_length=20)
    at = models.DateTimeField()

    class Meta:
        triggers: ClassVar = [AppendOnly(name="approvals_answer_append_only")]
        constraints = [SameTenant(field="question", name="approvals_answer_question_tenant")]
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"answer by {self.performed_by}"
