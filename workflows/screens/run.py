"""One run as a page: how it stands, its steps, where it came from, and its history."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.urls import reverse

from access.enums import Role
from access.models import Membership
from access.policies import can_role
from approvals.models import Proposal
from approvals.policies import SEES_PERSONAL
from audit.names import names_of, spoken
from audit.readers import may_read_history
from audit.selectors import Filters, events
from audit.tables import EventRow, event_rows
from common.display import visible
from common.states_ui import StateUi, state_ui
from workflows.actions.correcting import CORRECTORS
from workflows.actions.reading import READERS
from workflows.enums import RunKind, RunStatus, StepStatus
from workflows.models import Run, Step
from workflows.replays import is_replay
from workflows.screens.called import callback_line
from workflows.screens.steps import StepCard, document_href, step_cards
from workflows.screens.story import Story
from workflows.screens.words import SENTENCES, code_words, then, title_of, waits_for
from workflows.selectors import envelope, next_action, told_in_list
from workflows.tables import about, outcome_words

R = RunStatus
CANCELLERS: Final = (Role.OPERATOR, Role.OWNER, Role.ADMIN)
MOST_EVENTS: Final = 200
NEXT: Final = {
    "wait": "nothing; it goes on by itself",
    "provide_data": "provide the data that was asked for",
    "fetch_result": "nothing; the result is there",
    "submit_new": "submit a new request",
    "stop": "stop; nothing more comes of this run",
}


STAGES: Final = {
    "observe": "observe: nothing is sent",
    "suggest": "suggest: nothing is sent",
    "prepare": "prepare: nothing is sent",
    "approve": "approve: acts after a person's approval",
    "execute": "execute: acts by itself where the policy allows it",
}
ORIGINAL: Final = {
    RunKind.REPLAY.value: "Replay of", RunKind.UNDO.value: "Takes back what was done in",
    RunKind.REST.value: "Does the rest of",
}  # fmt: skip
NEEDS_A_PERSON: Final = {
    R.WAITING_FOR_APPROVAL: "a person decides",
    R.MANUAL_REPAIR: "a person asks anew for what is wanted, or cancels this run",
}
"""States in which *wait* is the requester's part only: somebody else has to act."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line beside the timeline."""

    name: str
    text: str
    exact: bool = False
    href: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunScreen:
    """Everything on the page of one run."""

    id: str
    title: str
    about: str
    workflow: str
    workflow_href: str
    status: str
    ui: StateUi
    says: str
    until: datetime | None
    then: str
    final: bool
    version: str
    here: str
    told: str
    outcome: str
    done: int
    steps: tuple[StepCard, ...]
    now: tuple[Fact, ...]
    source: tuple[Fact, ...]
    versions: tuple[Fact, ...]
    events: tuple[EventRow, ...]
    more_events: bool
    history_href: str
    story_href: str
    """Its whole story, for readers of the history; empty for others."""
    correct_href: str
    """Where this reader may correct the outcome; empty while the run is live, and for other roles."""
    cancel_href: str
    """Where this reader may cancel it; empty once it has ended, and for other roles."""
    hold_href: str
    """The freeze or open circuit that holds it; empty while nothing does."""
    replay_of: str
    """Of a replay: the beginning of its original's id, and where that stands; empty for other runs."""
    original_href: str
    packets: str
    """The address of the fragment with what stopped here; the repair desk lies above this app."""
    envelope: str


def run_screen(story: Story, membership: Membership, now: datetime) -> RunScreen:
    """The page of a run for this reader; events lead to the history only for those who may read it."""
    run, reads_history = story.run, may_read_history(membership)
    may_open, whole = can_role(membership, *READERS), can_role(membership, *SEES_PERSONAL)
    rows = events(run.tenant_id, Filters(run_id=run.pk))[: MOST_EVENTS + 1]
    shown = event_rows(rows, linked=reads_history)
    document = envelope(run)
    return RunScreen(
        id=str(run.pk), title=title_of(run.workflow), about=about(run, _target(story)), workflow=run.workflow,
        workflow_href=reverse("workflows:runs") + f"?workflow={run.workflow}", status=run.status,
        ui=state_ui("run", run.status), says=says(run), until=run.waiting_until,
        then=then(run.on_expiry) if run.waiting_until else "", final=run.status in R.final_states,
        version=story.version, here=reverse("workflows:run", args=[run.pk]),
        told="" if is_replay(run) else visible(run.user_message if whole else told_in_list(run)),
        outcome=outcome_words(run), done=sum(step.status in StepStatus.final_states for step in story.steps),
        steps=step_cards(story, now, may_open=may_open), now=now_facts(story, whole=whole),
        source=source_facts(story, may_open=may_open),
        versions=version_facts(document, run), events=tuple(shown[:MOST_EVENTS]),
        more_events=len(shown) > MOST_EVENTS,
        history_href=reverse("audit:history") + f"?run={run.pk}" if reads_history else "",
        story_href=reverse("explorer:run", args=[run.pk]) if reads_history else "",
        correct_href=_correct_href(run, membership), cancel_href=_cancel_href(run, membership),
        hold_href=_hold_href(story), packets=f"/repair/run/{run.pk}/",
        replay_of=str(run.original_id)[:8] if is_replay(run) else "",
        original_href=reverse("workflows:run", args=[run.original_id]) if is_replay(run) else "",
        envelope=visible(json.dumps(document, indent=1, ensure_ascii=True)).replace("↵", ""),
    )  # fmt: skip


def _correct_href(run: Run, membership: Membership) -> str:
    may = run.status in R.final_states and can_role(membership, *CORRECTORS)
    return reverse("workflows:outcome", args=[run.pk]) if may else ""


def _cancel_href(run: Run, membership: Membership) -> str:
    may = (
        run.status not in R.final_states and not run.cancel_requested_at and can_role(membership, *CANCELLERS)
    )
    return reverse("workflows:cancel", args=[run.pk]) if may else ""


def _hold_href(story: Story) -> str:
    held = next((command for command in story.commands.values() if command.hold_id), None)
    return reverse("workflows:hold", args=[held.hold_id]) if held else ""


def _target(story: Story) -> str:
    newest: list[Proposal] = sorted(
        (row for rows in story.proposals.values() for row in rows), key=lambda row: (row.created_at, row.pk)
    )
    return newest[-1].target if newest else ""


def _current(story: Story) -> Step | None:
    return next((step for step in story.steps if step.status not in StepStatus.final_states), None)


def says(run: Run) -> str:
    """One sentence about the state; a wish to cancel that cannot take effect yet is part of it."""
    sentence = SENTENCES[RunStatus(run.status)]
    if run.cancel_requested_at and run.status not in R.final_states:
        return f"{sentence} It was asked to stop, and does as soon as it is settled what has happened."
    return sentence


def own_words(words: str, whole: bool) -> str:
    return visible(words) if whole or not words else "in somebody's own words, not shown to your role"


def now_facts(story: Story, *, whole: bool) -> tuple[Fact, ...]:
    """``whole``: with what people wrote in their own words, for roles that are shown personal data."""
    run, facts = story.run, []
    if run.status not in R.final_states:
        held = next((command.hold_reason for command in story.commands.values() if command.hold_reason), "")
        facts.append(Fact("Waits for", waits_for(run, _current(story), held)))
    if run.waiting_until:
        facts += [Fact("Until", "", at=run.waiting_until), Fact("Then", then(run.on_expiry))]
    if run.outcome:
        facts.append(Fact("Outcome", outcome_words(run)))
    if run.correction_reason:
        facts.append(Fact("Corrected because", own_words(run.correction_reason, whole)))
    if run.failure_code:
        facts.append(Fact("Case", code_words(run.failure_code)))
    facts.append(Fact("Next action", NEEDS_A_PERSON.get(R(run.status)) or NEXT[next_action(run)]))
    if run.cancel_requested_at:
        facts += [Fact("Cancel asked", own_words(run.cancel_reason, whole), at=run.cancel_requested_at)]
    facts.append(Fact("Stage of the workflow", STAGES.get(run.stage, run.stage)))
    facts += [Fact("Arrived", "", at=run.created_at), Fact("Started", "", at=run.started_at)]
    facts += [Fact("Ended", "", at=run.finished_at)] if run.finished_at else []
    called = callback_line(run)
    facts += [Fact("Called back", called)] if called else []
    return tuple(facts)


def source_facts(story: Story, *, may_open: bool) -> tuple[Fact, ...]:
    """Where it came from, for whom, and how often the same event came again."""
    run = story.run
    names = names_of({run.requested_by, run.on_behalf_of})
    duplicates = sum(source.duplicates for source in story.sources)
    facts = [
        Fact("System", visible(run.source_system)),
        Fact("Event", visible(run.source_event_id), exact=True),
    ]
    if run.source_record:
        number = "" if run.source_sequence is None else f", number {run.source_sequence}"
        facts.append(Fact("Record", f"{visible(run.source_record)}{number}", exact=True))
    facts.append(Fact("Asked by", spoken(run.requested_by, names)))
    if run.on_behalf_of:
        facts.append(Fact("On behalf of", spoken(run.on_behalf_of, names)))
    facts.append(Fact("Duplicates prevented", str(duplicates)))
    facts.append(
        Fact(
            "Input", "protected, by reference", href=document_href(run.pk, run.input_ref) if may_open else ""
        )
    )
    if run.original_id:
        facts.append(
            Fact(
                ORIGINAL[run.kind],
                str(run.original_id)[:8],
                href=reverse("workflows:run", args=[run.original_id]),
            )
        )
    return tuple(facts)


def version_facts(document: dict[str, object], run: Run) -> tuple[Fact, ...]:
    """What code, policy and model it ran under."""
    facts = [Fact("Workflow", f"{run.workflow}, version {run.workflow_version}")]
    versions = document["versions"]
    assert isinstance(versions, dict)
    known = [name for name in ("policy", "model", "prompt") if versions.get(name) is not None]
    facts += [Fact(name.capitalize(), visible(str(versions[name]))) for name in known]
    facts += [Fact(name, f"version {number}") for name, number in dict(versions["operations"]).items()]
    if run.confidence is not None:
        facts.append(Fact("Confidence", f"{run.confidence.normalize():f}"))
    return tuple(facts)
