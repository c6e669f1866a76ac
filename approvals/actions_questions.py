"""Ask before deciding, and answer. Nothing is decided by it, and the clock goes on.

Words of people are sealed and part of no digest; the history keeps that something was asked, of whom and by whom.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from access.selectors import Standing, standings
from approvals import hooks
from approvals.actions import lock_proposal
from approvals.enums import Asked
from approvals.models import Answer, Proposal, Question
from approvals.models.questions import LONGEST_WORDS
from approvals.policies import check_can_decide, check_is_open
from approvals.recorded import note
from approvals.refusals import AlreadyAnswered, NotAskedOfYou
from approvals.selectors_questions import answer_to, colleagues, questions_of
from audit.actors import Actor, Via
from common.clock import Clock
from common.errors import InvalidInput, NotFound
from common.prepared import update
from common.tx import action


class UnknownQuestion(NotFound):
    """There is no such question about this proposal."""


class WordsMissing(InvalidInput):
    """Write something first: a question, or an answer, of at most 2,000 characters."""

    code = "words_missing"


class UnknownColleague(InvalidInput):
    """Ask the proposer, or a colleague of the list: somebody who is shown the whole proposal, and not you."""

    code = "unknown_colleague"


@dataclass(frozen=True, slots=True)
class Told:
    """A question or an answer, and whether it was there before: the same thing sent twice is one."""

    question: Question
    repeated: bool


@action
def ask(
    *, tenant_id: UUID, proposal_id: UUID, text: str, colleague: UUID | None, by: Actor, clock: Clock
) -> Told:
    """Ask the proposer, or a colleague. By whoever may decide on it, while it waits for a decision.

    Raises UnknownProposal, what `check_can_decide` and `check_is_open` raise, WordsMissing, UnknownColleague.
    """
    proposal = lock_proposal(tenant_id, proposal_id)
    now, text = clock(), text.strip()
    check_can_decide(proposal, by)
    check_is_open(proposal, now)
    _check_words(text)
    assert by.user_id is not None
    if colleague is not None and colleague not in {one.user_id for one in colleagues(tenant_id, by.user_id)}:
        raise UnknownColleague()
    for row in questions_of(proposal):
        if answer_to(row) is None and (row.asked_by_id, row.colleague_id, row.wording) == (
            by.user_id,
            colleague,
            text,
        ):
            return Told(row, repeated=True)
    question = Question(
        tenant_id=tenant_id, proposal=proposal, of=Asked.COLLEAGUE if colleague else Asked.PROPOSER,
        colleague_id=colleague, wording=text, asked_by_id=by.user_id, asked_at=now,
    )  # fmt: skip
    question.save(force_insert=True)
    asked_of = f"user:{colleague}" if colleague else "proposer"
    _moved(question, "proposal.question_asked", answered=False, by=by, clock=clock, asked_of=asked_of)
    return Told(question, repeated=False)


@action
def answer(
    *, tenant_id: UUID, proposal_id: UUID, question_id: UUID, text: str, by: Actor, clock: Clock
) -> Told:
    """Answer a question once. By the one it was asked of: the colleague, or the proposer's side, automation or person.

    Raises UnknownProposal, UnknownQuestion, NotAskedOfYou, AlreadyAnswered, WordsMissing, and for a proposal that does
    not wait any more what a late decision is told.
    """
    proposal = lock_proposal(tenant_id, proposal_id)
    now, text = clock(), text.strip()
    question = next((row for row in questions_of(proposal) if row.pk == question_id), None)
    if question is None:
        raise UnknownQuestion()
    check_may_answer(question, by)
    earlier = answer_to(question)
    if earlier is not None:
        if (earlier.performed_by, earlier.wording) == (by.performed_by, text):
            return Told(question, repeated=True)
        raise AlreadyAnswered(by=earlier.performed_by, at=earlier.at.isoformat())
    check_is_open(proposal, now)
    _check_words(text)
    _insert_answer(question, text, by=by, now=now)
    _moved(question, "proposal.question_answered", answered=True, by=by, clock=clock)
    return Told(question, repeated=False)


def check_may_answer(question: Question, by: Actor) -> None:
    """Raises NotAskedOfYou for everybody but the one it was asked of."""
    if question.of == Asked.PROPOSER and by.performed_by == question.proposal.proposed_by:
        return
    standing = _person(question.proposal, by)
    if standing is None or standing.accounts.isdisjoint(_asked_accounts(question)):
        raise NotAskedOfYou()


def _asked_accounts(question: Question) -> set[UUID]:
    """Of a question to the proposer: all who stand behind it, for where an automation cannot answer by itself."""
    return {question.colleague_id} if question.colleague_id else set(question.proposal.excluded_users)


def _person(proposal: Proposal, by: Actor) -> Standing | None:
    if by.via != Via.SESSION or by.user_id is None:
        return None
    return standings(proposal.tenant_id, [by.user_id], lock=False).get(by.user_id)


def _check_words(text: str) -> None:
    if not 0 < len(text) <= LONGEST_WORDS:
        raise WordsMissing()


def _insert_answer(question: Question, text: str, *, by: Actor, now: datetime) -> None:
    row = Answer(
        tenant_id=question.tenant_id, question=question, wording=text, user_id=by.user_id,
        performed_by=by.performed_by, via=by.via, at=now,
    )  # fmt: skip
    row.save(force_insert=True)


def _moved(
    question: Question, kind: str, *, answered: bool, by: Actor, clock: Clock, asked_of: str = ""
) -> None:
    """Who waits for news of the proposal, or of its run, hears of it; the words stay where they are."""
    proposal = question.proposal
    proposal.state_version += 1
    update(proposal, ["state_version"])
    body = {"question_id": str(question.pk)} | ({"of": asked_of} if asked_of else {})
    note(proposal, kind, by=by, body=body)
    hooks.question_moved(question, answered=answered, by=by, clock=clock)
