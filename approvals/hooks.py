"""The upward calls of this app: whoever made the proposal hears, in the same transaction, that it ended, or that
something was asked or answered about it; and says which of its arguments a reviewer may change.

``approvals`` knows nothing of workflows; they register here when the apps are loaded.
"""

from collections.abc import Callable, Sequence
from typing import Protocol
from uuid import UUID

from approvals.models import Proposal, Question
from audit.actors import Actor
from common.clock import Clock
from common.tx import require_transaction


class ProposalEnded(Protocol):
    """``how`` is the proposal's new status. Returns the command's id where one was made.

    It is called with the proposal locked; what it locks comes after proposals in the lock order: commands, then run.
    A refusal that it raises (such as *action in progress*) rolls the whole decision back.
    """

    def __call__(self, proposal: Proposal, how: str, *, by: Actor, clock: Clock) -> UUID | None: ...


_registered: list[ProposalEnded] = []


def register(hook: ProposalEnded) -> None:
    if hook not in _registered:
        _registered.append(hook)


def proposal_ended(proposal: Proposal, how: str, *, by: Actor, clock: Clock) -> UUID | None:
    require_transaction()
    answers = [hook(proposal, how, by=by, clock=clock) for hook in _registered]
    return next((answer for answer in answers if answer is not None), None)


class QuestionMoved(Protocol):
    """Something was asked, or answered. It is called with the proposal locked; what it locks comes after proposals."""

    def __call__(self, question: Question, *, answered: bool, by: Actor, clock: Clock) -> None: ...


Editable = Callable[[Proposal], Sequence[str]]
"""The names of the arguments that a reviewer may change, by the code of today. Reads nothing."""

_on_question: list[QuestionMoved] = []
_editable: list[Editable] = []


def on_question(hook: QuestionMoved) -> None:
    if hook not in _on_question:
        _on_question.append(hook)


def question_moved(question: Question, *, answered: bool, by: Actor, clock: Clock) -> None:
    require_transaction()
    for hook in _on_question:
        hook(question, answered=answered, by=by, clock=clock)


def offer_editable(source: Editable) -> None:
    if source not in _editable:
        _editable.append(source)


def editable(proposal: Proposal) -> tuple[str, ...]:
    """None where nobody knows how to make another version of it."""
    return tuple(name for source in _editable for name in source(proposal))
