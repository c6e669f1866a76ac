"""The policy changes, and with it the version of the operation that asks it."""

from examples.refunds.flows import RefundDeskAgent
from examples.refunds.operation import IssueRefund
from examples.refunds.policy import RefundPolicy
from examples.refunds.reversal import ReverseRefund
from workflows.authoring import register


class StricterPolicy(RefundPolicy):
    version = RefundPolicy.version + 1


class IssueRefundStrictly(IssueRefund):
    version = IssueRefund.version + 1
    policy = StricterPolicy()


@register
class RefundDeskAgentStrictly(RefundDeskAgent):
    version = RefundDeskAgent.version + 1
    operations = (IssueRefund, IssueRefundStrictly, ReverseRefund)
