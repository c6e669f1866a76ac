"""The one upward call of this app: whoever made the proposal hears, in the same transaction, that it ended.

``approvals`` knows nothing of workflows; they register here when the apps are loaded.
"""

from typing import Protocol
from uuid import UUID

from approvals.models import Proposal
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
