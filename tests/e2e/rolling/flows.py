"""Old actions are executed by the code that people approved; new ones are proposed for the new code."""

from examples.refunds.flows import RefundDeskAgent
from examples.refunds.operation import IssueRefund
from examples.refunds.reversal import ReverseRefund
from workflows.authoring import register


class IssueRefundAgain(IssueRefund):
    """What a release changes in an operation makes it another version."""

    version = IssueRefund.version + 1


@register
class RefundDeskAgentAgain(RefundDeskAgent):
    """Knows both versions for as long as actions of the first one wait."""

    version = RefundDeskAgent.version + 1
    operations = (IssueRefund, IssueRefundAgain, ReverseRefund)
