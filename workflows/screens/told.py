"""The story of a run: every event in the order of the chain, told in sentences, with what people had before them.

Its parts hang on events: the stored document at the event that made a version, the vote at the event of a decision, the
request and its answer at the event of its sending.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q
from django.urls import reverse

from access.models import Membership
from access.policies import can_role
from approvals.models import Decision, Proposal
from approvals.policies import SEES_PERSONAL
from approvals.screens.proposal import readable_view
from audit.models import Event
from audit.names import names_of
from audit.selectors import events as events_of
from audit.tables import kind_ui
from audit.through import Named, through_names
from common import spans
from common.disclosure import Recipient
from common.sealed import prefetch_keys
from common.states_ui import StateUi, state_ui
from workflows.actions.reading import READERS
from workflows.enums import RunKind
from workflows.models import Command, Run
from workflows.screens.run import Fact, now_facts, source_facts, version_facts
from workflows.screens.steps import document_href
from workflows.screens.story import Story, story_of
from workflows.screens.told_document import Before, Vote, before_of, vote_of
from workflows.screens.told_traces import KNOWN, Trace, traces_of
from workflows.screens.told_words import is_minor, sentence
from workflows.screens.tries import Try, attempt_card, lookup_card
from workflows.screens.words import code_words, step_words, title_of
from workflows.selectors import envelope
from workflows.tables import about, outcome_words

MOST: Final = 2_000
"""Events told on one page; a run has some dozens."""
THE_RUN: Final = "The run"
_MOST_FOLLOWED: Final = 50


@dataclass(frozen=True, slots=True)
class Line:
    """One event as a sentence, with what hangs on it."""

    id: UUID
    seq: int | None
    at: datetime
    iso: str
    ui: StateUi
    text: str
    kind: str
    digest: str
    minor: bool
    href: str
    before: Before | None = None
    vote: Vote | None = None
    tried: Try | None = None
    sent: tuple[tuple[str, str], ...] = ()
    answer_href: str = ""


@dataclass(slots=True)
class Chapter:
    """What happened in a row about one version of one step, or about the run itself."""

    title: str
    again: bool
    lines: list[Line] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Told:
    """The whole page."""

    id: str
    title: str
    about: str
    ui: StateUi
    outcome: str
    now: tuple[Fact, ...]
    source: tuple[Fact, ...]
    versions: tuple[Fact, ...]
    chapters: tuple[Chapter, ...]
    count: int
    more: bool
    people: tuple[str, ...]
    traces: tuple[Trace, ...]
    known: str
    run_href: str
    list_href: str
    compare_href: str
    original_href: str
    followed: tuple[Fact, ...]
    """Its replays, compensations and remainders, each with its own story."""


def told(run: Run, membership: Membership, now: datetime) -> Told:
    """The story of a run for a reader of the history."""
    story, to = story_of(run), Recipient(run.tenant_id, can_role(membership, *SEES_PERSONAL))
    proposals = [row for rows in story.proposals.values() for row in rows]
    found = _events(story, proposals)
    votes = _votes(proposals)
    prefetch_keys([*proposals, *votes])
    teller = _Teller(story, proposals, votes, to, now, may_open=can_role(membership, *READERS))
    whole, here = to.personal, reverse("workflows:run", args=[run.pk])
    newest = max(proposals, key=lambda row: (row.created_at, row.pk), default=None)
    return Told(
        id=str(run.pk), title=title_of(run.workflow), about=about(run, newest.target if newest else ""),
        ui=state_ui("run", run.status), outcome=outcome_words(run), now=now_facts(story, whole=whole),
        source=source_facts(story, may_open=teller.may_open), versions=version_facts(envelope(run), run),
        chapters=tuple(teller.chapters(found[:MOST])), count=min(len(found), MOST), more=len(found) > MOST,
        people=_who_let_it_through(proposals, votes), traces=traces_of(found, proposals, votes), known=KNOWN,
        run_href=here, list_href=reverse("audit:history") + f"?run={run.pk}",
        compare_href=f"/repair/run/{run.pk}/compare/",
        original_href=reverse("explorer:run", args=[run.original_id]) if run.original_id else "",
        followed=tuple(_followed(run)),
    )  # fmt: skip


def _followed(run: Run) -> Iterator[Fact]:
    """What came of it in runs of their own: the yes to those stands in their stories."""
    rows = Run.objects.filter(tenant_id=run.tenant_id, original_id=run.pk).order_by("created_at", "pk")[
        :_MOST_FOLLOWED
    ]
    for row in rows:
        state = outcome_words(row) or code_words(row.status)
        href = reverse("explorer:run", args=[row.pk])
        yield Fact(RunKind(row.kind).label, f"{str(row.pk)[:8]}, {state}", href=href)


def _events(story: Story, proposals: Sequence[Proposal]) -> list[Event]:
    """In the order of the chain; what is not sealed yet comes last. Some events name only what they are about."""
    attempts = [one.pk for some in story.attempts.values() for one in some]
    things = [row.pk for row in proposals] + [row.pk for row in story.commands.values()] + attempts
    mine = events_of(story.run.tenant_id).filter(Q(run_id=story.run.pk) | Q(subject_id__in=things))
    return list(mine.order_by(F("seq").asc(nulls_last=True), "at", "id")[: MOST + 1])


def _votes(proposals: Sequence[Proposal]) -> list[Decision]:
    """All that were given, replaced ones too."""
    known = {row.pk: row for row in proposals}
    votes = list(
        Decision.objects.filter(proposal_id__in=known)
        .select_related("user", "group", "in_stead_of")
        .order_by("at", "pk")
    )
    for vote in votes:
        vote.proposal = known[vote.proposal_id]
    return votes


def _who_let_it_through(proposals: Sequence[Proposal], votes: Sequence[Decision]) -> tuple[str, ...]:
    """The first answer an investigator wants: whose yes each approval rests on."""
    standing = defaultdict(list)
    for vote in votes:
        if vote.kind == "approve" and vote.replaced_at is None:
            standing[vote.proposal_id].append(vote_of(vote, (), words=False))
    return tuple(
        f"{step_words(row.step)}, version {row.version}: "
        + ", and ".join(f"{vote.text} {vote.capacity}, {spans.utc_text(vote.at)}" for vote in standing[row.pk])
        for row in proposals if row.execute_by is not None and standing[row.pk]
    )  # fmt: skip


class _Teller:
    """Puts events into chapters, and hangs on each what belongs to it."""

    def __init__(
        self, story: Story, proposals: Sequence[Proposal], votes: Sequence[Decision], to: Recipient, now: datetime,
        *, may_open: bool,
    ) -> None:  # fmt: skip
        self.story, self.to, self.now, self.may_open = story, to, now, may_open
        self.proposals = {row.pk: row for row in proposals}
        self.votes = {str(vote.pk): vote for vote in votes}
        self.commands = {row.pk: row for row in story.commands.values()}
        self.steps = {step.pk: step for step in story.steps}
        self._counts: dict[tuple[UUID, str], int] = defaultdict(int)

    def chapters(self, found: Sequence[Event]) -> Iterator[Chapter]:
        """A new one where the next event is about another version of another step; the run's own moves stay inside."""
        names = names_of(_actors(found))
        ways = through_names(self.story.run.tenant_id, {event.through for event in found})
        current, seen = Chapter(THE_RUN, again=False), {THE_RUN}
        for event in found:
            title = self._place(event, current.title) or current.title
            if title != current.title:
                if current.lines:
                    yield current
                current = Chapter(title, again=title in seen)
                seen.add(title)
            current.lines.append(self._line(event, names, ways))
        if current.lines:
            yield current

    def _place(self, event: Event, current: str) -> str:
        """The chapter that it belongs to; empty where it fits into any."""
        proposal = self._proposal(event)
        if proposal is not None:
            return f"{step_words(proposal.step)}, version {proposal.version}"
        step = self.steps.get(event.subject_id)
        title = step_words(step.key) if step is not None else ""
        return "" if current.startswith(f"{title}, version ") else title

    def _proposal(self, event: Event) -> Proposal | None:
        command = self.commands.get(event.subject_id)
        return self.proposals.get(command.proposal_id if command else event.subject_id)

    def _line(self, event: Event, names: Mapping[str, str], ways: Mapping[str, Named]) -> Line:
        proposal, command = self._proposal(event), self.commands.get(event.subject_id)
        hangs: dict[str, Any] = {}
        if event.kind == "proposal.made" and proposal is not None:
            hangs["before"] = before_of(proposal, self.to)
        elif event.kind == "proposal.vote" and proposal is not None:
            hangs["vote"] = self._vote(event, proposal)
        elif command is not None:
            hangs |= self._order(event, command)
        return Line(
            id=event.pk, seq=event.seq, at=event.at, iso=_iso(event.at),  # type: ignore[attr-defined]
            ui=kind_ui(event.kind), text=sentence(event, names, ways), kind=event.kind, digest=event.digest,
            minor=is_minor(event), href=reverse("audit:event", args=[event.pk]), **hangs,
        )  # fmt: skip

    def _vote(self, event: Event, proposal: Proposal) -> Vote | None:
        vote = self.votes.get(str(event.body.get("decision_id")))
        return vote_of(vote, readable_view(proposal).parts, words=self.to.personal) if vote else None

    def _order(self, event: Event, command: Command) -> dict[str, Any]:
        """At the sending of a request what was sent and what came back; at a look-up what was found."""
        number = self._counts[command.pk, event.kind]
        self._counts[command.pk, event.kind] += 1
        if event.kind == "command.sent":
            made = [one for one in self.story.attempts.get(command.pk, ()) if one.sent_at is not None]
            answer = document_href(command.run_id, made[number].answer_ref) if number < len(made) else ""
            card = attempt_card(made[number], self.now) if number < len(made) else None
            return {"tried": card, "sent": _sent(command), "answer_href": answer if self.may_open else ""}
        looked = self.story.lookups.get(command.pk, ())
        if event.kind == "command.looked_up" and number < len(looked):
            return {"tried": lookup_card(looked[number], number + 1)}
        return {}


def _sent(command: Command) -> tuple[tuple[str, str], ...]:
    return (
        ("Operation", f"{command.operation}, version {command.operation_version}"), ("To", command.provider),
        ("Target", command.target), ("Idempotency key", command.idempotency_key),
        ("Content", "the bytes of the contract above, and nothing else"),
    )  # fmt: skip


def _actors(found: Sequence[Event]) -> set[str]:
    actors = {event.performed_by for event in found} | {event.on_behalf_of for event in found}
    return actors | {str(event.body["from"]) for event in found if event.body.get("from")}


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
