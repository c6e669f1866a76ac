"""What was asked about a proposal before it is decided, and what was answered: words of people, in their own voice."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.actions_questions import check_may_answer
from approvals.forms import ANSWER, Typed
from approvals.models import Answer, Question
from approvals.refusals import NotAskedOfYou
from approvals.screens.proposal import OWN_WORDS, ProposalScreen
from approvals.selectors_questions import answer_to, questions_of
from audit.actors import Actor
from audit.names import names_of, spoken
from common.display import visible


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question with its answer, or with the field where this reader writes it."""

    id: str
    asked_by: str
    asked_of: str
    asked_at: datetime
    text: str
    answer: str = ""
    answered_by: str = ""
    answered_at: datetime | None = None
    field: str = ""
    """The name of the field; empty where this reader is not asked, or it is over."""
    typed: str = ""


def exchanges(screen: ProposalScreen, by: Actor, typed: Typed | None = None) -> tuple[Exchange, ...]:
    """Those of this version, oldest first. Who asked, was asked or answered reads the words, whatever their role."""
    rows = questions_of(screen.proposal)
    names = _names(rows)
    return tuple(_exchange(row, screen, by, names, typed or Typed()) for row in rows)


def _names(rows: Sequence[Question]) -> dict[str, str]:
    if not rows:
        return {}
    answers = [answer for row in rows if (answer := answer_to(row)) is not None]
    return names_of({rows[0].proposal.proposed_by, *(answer.performed_by for answer in answers)})


def _exchange(
    row: Question, screen: ProposalScreen, by: Actor, names: dict[str, str], typed: Typed
) -> Exchange:
    answer, asked = answer_to(row), _is_asked(row, by)
    own = asked or by.user_id == row.asked_by_id or (answer is not None and answer.user_id == by.user_id)
    words = screen.recipient.personal or own
    open_ = answer is None and screen.is_open and asked
    return Exchange(
        id=str(row.pk),
        asked_by="You" if row.asked_by_id == by.user_id else visible(str(row.asked_by)),
        asked_of=_asked_of(row, by, names),
        asked_at=row.asked_at,
        text=visible(row.wording) if words else OWN_WORDS,
        field=f"{row.pk}{ANSWER}" if open_ else "",
        typed=typed.answer_to(str(row.pk)),
        **_answered(answer, by, names, words=words),
    )


def _answered(answer: Answer | None, by: Actor, names: dict[str, str], *, words: bool) -> dict[str, Any]:
    if answer is None:
        return {}
    mine = answer.performed_by == by.performed_by
    return {
        "answer": visible(answer.wording) if words else OWN_WORDS,
        "answered_by": "You" if mine else spoken(answer.performed_by, names), "answered_at": answer.at,
    }  # fmt: skip


def _asked_of(row: Question, by: Actor, names: dict[str, str]) -> str:
    if row.colleague is None:
        return f"the proposer, {spoken(row.proposal.proposed_by, names)}"
    return "you" if row.colleague_id == by.user_id else visible(str(row.colleague))


def _is_asked(row: Question, by: Actor) -> bool:
    try:
        check_may_answer(row, by)
    except NotAskedOfYou:
        return False
    return True
