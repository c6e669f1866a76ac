"""Whether a run's requester has heard of it: one line on the run's page."""

from collections.abc import Sequence

from common.display import visible
from workflows.actions.outbox import TOLD
from workflows.enums import CallStatus
from workflows.models import CallbackCall, Run


def callback_line(run: Run) -> str:
    """Of the newest state that somebody was to hear of. Empty where nobody is called back."""
    if not run.callback:
        return ""
    rows = CallbackCall.objects.filter(tenant_id=run.tenant_id, run=run).order_by("-state_version")
    call = rows.first()
    return f"{visible(run.callback)}: {call_words(call) if call is not None else _without_a_call(run)}"


def _without_a_call(run: Run) -> str:
    """What is over goes from the outbox after a while, and a callback that has ended is told nothing."""
    if run.status not in TOLD:
        return "nothing to tell yet"
    return "told long ago, or it had been deactivated; the history has both"


def call_words(call: CallbackCall) -> str:
    """What became of a call, for people."""
    tries = f"{call.tries} {'try' if call.tries == 1 else 'tries'}"
    said = f", last answer {call.http_status}" if call.http_status else ""
    why = f", {call.problem.replace('_', ' ')}" if call.problem and not call.http_status else ""
    match CallStatus(call.status):
        case CallStatus.DELIVERED:
            return f"delivered after {tries}"
        case CallStatus.DEAD:
            return f"given up after {tries}{said}{why}"
        case CallStatus.SUPERSEDED:
            return "a newer state was told instead"
        case _:
            return f"waiting, {tries} so far{said}{why}" if call.tries else "waiting"


def call_lines(calls: Sequence[CallbackCall]) -> list[tuple[CallbackCall, str]]:
    return [(call, call_words(call)) for call in calls]
