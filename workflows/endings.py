"""How a command ends, and what that does to its proposal and step: the table of the design's section 4, as data.

Pure: rows in memory change, nothing is saved. The actions use it under their locks, and the model tests play whole
lives on it without a database.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from approvals.models import Proposal
from workflows.enums import CommandStatus, Effect
from workflows.models import Command, Step
from workflows.waits import StepWait


class StepEnd(Enum):
    """What becomes of the logical action."""

    COMPLETED = "completed"
    PERSON = "person"
    APPROVAL_OF_NEXT_VERSION = "approval"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Ending:
    """One row of the table. ``proposal`` names the transition; ``effects`` are the possible ones."""

    proposal: str
    step: StepEnd
    effects: frozenset[str]
    ask_again: bool = False


_NONE = frozenset({Effect.NONE})

ENDINGS: dict[str, Ending] = {
    "confirmed": Ending("consume", StepEnd.COMPLETED, frozenset({Effect.HAPPENED, Effect.PARTIAL})),
    "refused": Ending("consume", StepEnd.PERSON, _NONE),
    "dead": Ending("consume", StepEnd.PERSON, _NONE),
    "void(lapsed)": Ending("lapse", StepEnd.PERSON, _NONE, ask_again=True),
    "void(policy)": Ending("invalidate", StepEnd.PERSON, _NONE, ask_again=True),
    "void(pin)": Ending("invalidate", StepEnd.PERSON, _NONE, ask_again=True),
    "void(digest)": Ending("invalidate", StepEnd.PERSON, _NONE, ask_again=True),
    "void(signature)": Ending("invalidate", StepEnd.PERSON, _NONE, ask_again=True),
    "void(reviewer)": Ending("invalidate", StepEnd.APPROVAL_OF_NEXT_VERSION, _NONE),
    "void(withdrawn)": Ending("withdraw", StepEnd.SKIPPED, _NONE),
    "void(superseded)": Ending("supersede", StepEnd.APPROVAL_OF_NEXT_VERSION, _NONE),
    "cancelled": Ending("withdraw", StepEnd.CANCELLED, frozenset({Effect.NONE, Effect.HAPPENED})),
}


def ending_of(command: Command) -> Ending:
    """The row of the table for a command that has ended. Raises KeyError for one that has not."""
    if command.status == CommandStatus.VOID:
        return ENDINGS[f"void({command.void_reason})"]
    return ENDINGS[command.status]


def apply_ending(command: Command, proposal: Proposal, step: Step, *, at: datetime, wait: StepWait) -> Ending:
    """Carry the end of ``command`` over to its proposal and its step.

    ``wait`` is what a step takes on that goes to a person or to the approval of a next version.
    """
    ending = ending_of(command)
    assert command.effect in ending.effects, f"{command.status} with effect {command.effect}"
    getattr(proposal, ending.proposal)(at=at, reason=_reason(command))
    match ending.step:
        case StepEnd.COMPLETED:
            step.complete(at=at, result_ref=command.result_ref)
        case StepEnd.SKIPPED:
            step.skip(at=at)
        case StepEnd.CANCELLED:
            step.cancel(at=at)
        case StepEnd.PERSON | StepEnd.APPROVAL_OF_NEXT_VERSION:
            step.wait(for_=wait.for_, wait_id=wait.wait_id, until=wait.until, on_expiry=wait.on_expiry)
    return ending


def _reason(command: Command) -> str:
    return command.void_reason or command.failure_code or command.status
