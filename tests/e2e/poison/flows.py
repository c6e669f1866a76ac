"""The operation stays the one that people approved; what it runs into is new."""

import os
import signal
from typing import Any

from examples.refunds.arguments import RefundArguments
from examples.refunds.operation import IssueRefund
from workflows.authoring import Site

_look = IssueRefund.look


def _poisoned_look(self: IssueRefund, site: Site, arguments: RefundArguments) -> Any:
    if arguments.order == os.environ.get("PLACET_TEST_POISON"):
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does with what takes too much memory
    return _look(self, site, arguments)


IssueRefund.look = _poisoned_look  # type: ignore[method-assign]
