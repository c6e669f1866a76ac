"""Who left a trace at a proposal and did not decide it. Reading writes nothing, so who only read is not known."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from access.models import User
from approvals.models import Decision, Proposal, Question
from audit.models import Event
from audit.names import person_id
from common.display import visible
from notify.models import Notice
from workflows.screens.words import code_words

KNOWN: Final = (
    "Opening a page writes nothing, so nobody knows who only read. Known is who was told of it, who took it to read, "
    "asked or was asked, was refused, or took a vote back; and what whoever decided was shown stands at each decision."
)
_DID: Final = {
    "proposal.held": "took it to read",
    "proposal.taken_over": "took it over to read",
    "proposal.released": "gave it back",
    "proposal.question_asked": "asked a question",
    "proposal.question_answered": "answered a question",
    "proposal.decision_refused": "tried to decide and was refused",
}


@dataclass(frozen=True, slots=True)
class Did:
    """One thing that somebody did, or that was done for them."""

    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Trace:
    """One person at one version, without a vote that stands."""

    name: str
    version: int
    href: str
    did: tuple[Did, ...]


Found = dict[tuple[UUID, UUID], list[Did]]


def traces_of(
    events: Iterable[Event], proposals: Sequence[Proposal], votes: Sequence[Decision]
) -> tuple[Trace, ...]:
    """By version and person, in the order in which they first left a trace."""
    versions = {row.pk: row for row in proposals}
    found: Found = defaultdict(list)
    _of_events(found, events, versions)
    _of_questions(found, versions)
    _of_notices(found, versions)
    for vote in votes:
        if vote.user_id and vote.replaced_at:
            found[vote.proposal_id, vote.user_id].append(Did("took a vote back", vote.replaced_at))
    decided = {(vote.proposal_id, vote.user_id) for vote in votes if vote.replaced_at is None}
    left = {key: sorted(did, key=lambda one: one.at) for key, did in found.items() if key not in decided}
    names = User.objects.in_bulk({user for _, user in left})
    return tuple(
        Trace(
            name=visible(str(names[user])), version=versions[pk].version, href=f"#v-{pk}", did=tuple(did)
        )
        for (pk, user), did in sorted(left.items(), key=lambda one: one[1][0].at) if user in names
    )  # fmt: skip


def _of_events(found: Found, events: Iterable[Event], versions: Mapping[UUID, Proposal]) -> None:
    for event in events:
        user = person_id(event.performed_by)
        if event.kind in _DID and user is not None and event.subject_id in versions:
            why = f": {code_words(visible(event.reason))}" if event.kind.endswith("_refused") else ""
            found[event.subject_id, user].append(Did(f"{_DID[event.kind]}{why}", event.at))


def _of_questions(found: Found, versions: Mapping[UUID, Proposal]) -> None:
    asked = Question.objects.filter(proposal_id__in=versions, colleague__isnull=False)
    for proposal, user, at in asked.values_list("proposal_id", "colleague_id", "asked_at"):
        assert user is not None  # by the filter
        found[proposal, user].append(Did("was asked a question", at))


def _of_notices(found: Found, versions: Mapping[UUID, Proposal]) -> None:
    """Notices that are still kept: whom it was put before, and who marked that as read."""
    told = Notice.objects.filter(message__subject_type="proposal", message__subject_id__in=versions)
    rows = told.values_list("message__subject_id", "user_id", "created_at", "read_at")
    for proposal, user, at, read_at in rows:
        found[proposal, user].append(Did("was told of it", at))
        if read_at is not None:
            found[proposal, user].append(Did("opened that notice, or marked it as read", read_at))
