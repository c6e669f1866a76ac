"""The worked example's automations: `refund-triage`, and a desk where outside agents propose refunds."""

from datetime import timedelta
from decimal import Decimal
from typing import NoReturn

from examples.refunds import messages, outcomes, stages
from examples.refunds.operation import IssueRefund
from examples.refunds.reversal import ReverseRefund
from examples.refunds.schemas import OutsideAction, RefundRequest
from workflows.authoring import (
    Blocking,
    Contract,
    Escalate,
    ExceptionCase,
    Malformed,
    OnExpiry,
    Stage,
    StageContext,
    StepKind,
    Workflow,
    register,
)

NEVER = (
    "A refund above what was paid and not yet refunded.",
    "A refund to somebody who does not own the order.",
    "Two refunds for one request, whatever is delivered twice or killed.",
    "An amount, a recipient or an approval that comes from a message or a model.",
    "Telling one customer that another customer's order exists.",
)


@register
class RefundTriage(Workflow):
    """A customer's message becomes an answer, or a refund that a person has approved."""

    name = "refund-triage"
    version = 3
    title = "Refund requests"
    # A person decides on each refund first. On stage "execute" small ones could go by rule, with ByException for what
    # is unusual, or with BySample(share=Decimal("0.05")) for a look at one in twenty afterwards: docs/authoring.md.
    review = Blocking()
    escalate = (Escalate(left_share=Decimal("0.25"), role="owner"),)
    operations = (IssueRefund, ReverseRefund)
    stages = (
        Stage("intake", stages.intake),
        Stage("normalize", stages.normalize),
        Stage("retrieve", stages.retrieve),
        Stage("analyse", stages.analyse, StepKind.MODEL),
        Stage("policy", stages.policy),
        Stage("refund", stages.refund, StepKind.SIDE_EFFECT),
        Stage("confirm", stages.confirm),
    )
    contract = Contract(
        owner=outcomes.DESK,
        promise="Every message about an order is answered, and a refund that is due is made once, after approval.",
        within=timedelta(hours=8),
        input=RefundRequest,
        data_sources=("the provider's orders, payments, refunds and customers", "the refund policy"),
        decision_points=(
            "which order, and whose", "what the message is about", "how much is due", "a person's approval",
        ),
        side_effects=("one refund through the provider, with its receipt",),
        completion="The provider confirmed the refund, or the requester has an answer that needs none.",
        never=NEVER,
        exceptions=outcomes.TABLE,
        on_expiry=OnExpiry.MANUAL_QUEUE,
        confidence=Decimal("0.70"),
        done_outcome="refunded",
        done_tell="Your refund was made.",
        declined_tell=messages.DECLINED,
    )  # fmt: skip


def _not_run(ctx: StageContext) -> NoReturn:
    """What an outside agent proposes is bound when it arrives; there is nothing to prepare here."""
    raise Malformed("proposed_from_outside")


@register
class RefundDeskAgent(Workflow):
    """Outside agents propose refunds here, one action each; the same operation, policy and people."""

    name = "refund-desk-agent"
    version = 2
    title = "Refunds proposed by agents"
    operations = (IssueRefund, ReverseRefund)
    accepts_proposals = True
    stages = (Stage("action", _not_run, StepKind.SIDE_EFFECT),)
    contract = Contract(
        owner=outcomes.DESK,
        promise="What an agent proposes is decided by a person within the time it states, and made once.",
        within=timedelta(hours=4),
        input=OutsideAction,
        data_sources=("the provider's orders and customers",),
        decision_points=("the refund policy", "a person's approval"),
        side_effects=("one refund through the provider, with its receipt",),
        completion="The provider confirmed the refund, or a person declined it.",
        never=NEVER,
        exceptions=(
            ExceptionCase(
                "approval_expired", "failed", "expired", "Nobody decided in time.", outcomes.DESK,
                may_submit_new=True,
            ),
        ),
        on_expiry=OnExpiry.FAIL,
        done_outcome="refunded",
        done_tell="The refund was made.",
        declined_tell="A person looked at the proposal and declined.",
    )  # fmt: skip
