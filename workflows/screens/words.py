"""Words for runs and steps: what they wait for, what happens when the wait is over, how they stand."""

from typing import Final

from common.display import visible
from workflows import registry
from workflows.counteractions import BETWEEN
from workflows.enums import HoldReason, OnExpiry, RunStatus, StepKind, StepStatus, WaitingFor
from workflows.models import Run, Step
from workflows.registry import UnknownWorkflow

R = RunStatus

THEN: Final = {
    OnExpiry.MANUAL_QUEUE: "a person looks at it",
    OnExpiry.ESCALATE: "it is escalated",
    OnExpiry.FAIL: "it fails",
    OnExpiry.CANCEL: "it is cancelled",
}
KINDS: Final = {
    StepKind.READ_ONLY: "reads only",
    StepKind.MODEL: "judges, decides nothing",
    StepKind.SIDE_EFFECT: "acts outside",
}
WAITS: Final = {
    R.QUEUED: "a worker",
    R.RUNNING: "its step",
    R.WAITING_FOR_DATA: "data from the requester",
    R.WAITING_FOR_APPROVAL: "a person's decision",
    R.WAITING_FOR_PROVIDER: "a provider",
    R.WAITING_FOR_RETRY: "the next try",
    R.WAITING_FOR_CHILDREN: "its child runs",
    R.EXECUTING: "the provider's answer",
    R.DEGRADED: "the hold to end",
    R.UNKNOWN: "a look-up or a person",
    R.MANUAL_REPAIR: "a person who asks anew or cancels it",
}
SENTENCES: Final = {
    R.QUEUED: "It starts when a worker is free.",
    R.RUNNING: "A worker is at one of its steps.",
    R.WAITING_FOR_DATA: "The requester was asked for something.",
    R.WAITING_FOR_APPROVAL: "Nothing is sent until a person has approved exactly what they saw.",
    R.WAITING_FOR_PROVIDER: "A source did not answer. It is asked again by itself.",
    R.WAITING_FOR_RETRY: "The last try changed nothing. It is tried again by itself.",
    R.WAITING_FOR_CHILDREN: "It goes on when its child runs have ended.",
    R.EXECUTING: "It was approved and is on its way to the provider.",
    R.DEGRADED: "What was approved is held back. Nothing is lost and nothing is sent.",
    R.UNKNOWN: "It was sent and no complete answer came. It is looked up, and never sent again blindly.",
    R.MANUAL_REPAIR: "It does not go on by itself. A person asks anew for what is wanted, or cancels this run.",
    R.COMPLETED: "It went through to its end.",
    R.FAILED: "It ended without doing what was asked for.",
    R.CANCELLED: "It was stopped before its end.",
}


def title_of(workflow: str) -> str:
    """A workflow's title; its name where it is no longer installed."""
    try:
        return registry.workflow(workflow).title
    except UnknownWorkflow:
        return workflow


def known_outcomes(workflow: str) -> list[str]:
    """The outcomes that a workflow's contract names, and those that every run can have."""
    known = {"declined", "cancelled", "partial"}
    try:
        contract = registry.workflow(workflow).contract
    except UnknownWorkflow:
        return sorted(known)
    return sorted({*known, contract.done_outcome, *(row.outcome for row in contract.exceptions)} - {""})


def code_words(code: str) -> str:
    """A stable code as words: ``already_refunded`` → ``already refunded``."""
    return code.replace("_", " ")


def waits_for(run: Run, step: Step | None, hold_reason: str = "") -> str:
    """What a run that has not ended waits for."""
    status = RunStatus(run.status)
    if status == R.DEGRADED and hold_reason:
        return f"held: {HoldReason(hold_reason).label.lower()}"
    if status == R.RUNNING and step is not None:
        return step_words(step.key)
    if status == R.WAITING_FOR_DATA and step is not None and question_of(step):
        return f"{WAITS[status]}: {question_of(step)}"
    return WAITS[status]


def question_of(step: Step) -> str:
    """What a step that waits for data asks for, in the words of the workflow's author."""
    return visible(str((step.asks or {}).get("question", "")))


def then(on_expiry: str) -> str:
    return THEN[OnExpiry(on_expiry)] if on_expiry else "goes on by itself"


FOLLOWS: Final = {"undo": "taken back", "twice": "its second effect"}


def step_words(key: str) -> str:
    """``refund`` → *Refund*; of what follows its effect: *Refund, taken back*, *Refund, part 2*."""
    stage, *after = key.split(BETWEEN)
    parts = (
        FOLLOWS.get(part) or (f"part {part}" if part.isdecimal() else code_words(part)) for part in after
    )
    return ", ".join((code_words(stage).capitalize(), *parts))


def step_state(step: Step, *, unknown: bool, held: bool) -> tuple[str, str]:
    """(thing, state) of the table of states that shows a step: a lost outcome and a hold have their own looks."""
    if unknown:
        return "run", R.UNKNOWN
    if held:
        return "run", R.DEGRADED
    if step.status == StepStatus.WAITING and step.waiting_for == WaitingFor.PERSON:
        return "run", R.MANUAL_REPAIR
    return "step", step.status


def asked_of(step: Step) -> str:
    """What a waiting step waits for, as a sentence's part."""
    return WaitingFor(step.waiting_for).label if step.waiting_for else ""
