"""The one request to the provider, outside any transaction."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from common.deadline import Deadline
from workflows.classify import CAME_TOO_LATE, Observation
from workflows.models import Command
from workflows.operations import Call, Operation
from workflows.secret_arguments import NO_SECRETS, Secrets, hidden
from workflows.worker.send import make_call

log = structlog.get_logger(__name__)


def call_once(
    operation: Operation[Any],
    command: Command,
    contract: Mapping[str, Any],
    deadline: Deadline,
    secrets: Secrets,
) -> Observation:
    """What came of the request that is built from this contract."""
    return observe(operation, lambda: make_call(command, contract, deadline), deadline, secrets=secrets)


def observe(
    operation: Operation[Any],
    call: Callable[[], Call[Any]],
    deadline: Deadline,
    *,
    secrets: Secrets = NO_SECRETS,
) -> Observation:
    """What came of it. An error of the operation's own code after *sent* is an outcome that nobody knows.

    The values of ``secrets`` go to the call, and out of what it says.
    """
    if deadline.over():
        return Observation(sent=False, code=CAME_TOO_LATE, detail="this worker came too late to call")
    try:
        made = call() if secrets is NO_SECRETS else replace(call(), secrets=secrets)
        return hidden(operation.execute(made), secrets)
    except Exception as error:
        log.exception("operation_broke", operation=operation.name)
        return Observation(sent=True, detail=type(error).__name__)
