"""What a question means for the run: whoever asked for the run sees it in the envelope, and hears of it.

Called by `approvals` inside the asking transaction, proposal locked; the run is locked after it, as everywhere.
"""

from approvals.enums import Asked
from approvals.models import Question
from audit.actors import Actor
from common import prepared
from common.clock import Clock
from workflows.actions.outbox import note_question
from workflows.actions.settle import lock_run


def question_moved(question: Question, *, answered: bool, by: Actor, clock: Clock) -> None:
    """A question to the proposer, or its answer, is a new version of the run; the first is told. Others stay inside."""
    if question.of != Asked.PROPOSER:
        return
    run = lock_run(question.tenant_id, question.proposal.run_id)
    run.state_version += 1
    prepared.update(run, ["state_version"])
    if not answered:
        note_question(run, clock())
