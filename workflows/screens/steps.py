"""The timeline of a run: each step with what was proposed, who decided, and what a worker did about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.urls import reverse

from approvals.enums import ProposalStatus
from approvals.models import Decision, Proposal
from approvals.screens.people import WORDS as DECIDED
from common import spans
from common.display import visible
from common.states_ui import StateUi, state_ui
from workflows.enums import CommandStatus, Effect, HoldReason, SettledBy, StepStatus, VoidReason
from workflows.models import Command, Step
from workflows.screens.story import Story
from workflows.screens.tries import Try, seconds, tries_of
from workflows.screens.words import KINDS, asked_of, code_words, question_of, step_state, step_words, then

C = CommandStatus


@dataclass(frozen=True, slots=True)
class VoteLine:
    tone: str
    icon: str
    text: str
    view_digest: str
    at: datetime
    said: str = ""


@dataclass(frozen=True, slots=True)
class ProposalCard:
    """One version of what was asked."""

    href: str
    id: UUID
    version: int
    status: str
    mode: str
    target: str
    operation: str
    rule: str
    digest: str
    decide_by: datetime
    is_open: bool
    why: str
    votes: tuple[VoteLine, ...]


@dataclass(frozen=True, slots=True)
class CommandCard:
    """One order to the provider, with its tries."""

    id: UUID
    status: str
    effect: str
    operation: str
    key: str
    sentence: str
    reference: str
    result_href: str
    tries: tuple[Try, ...]


@dataclass(frozen=True, slots=True)
class StepCard:
    """One logical action."""

    key: str
    title: str
    kind: str
    ui: StateUi
    state: tuple[str, str]
    took: str
    attempts: int
    lines: tuple[str, ...]
    until: datetime | None
    then: str
    result_href: str
    kept_hrefs: tuple[str, ...]
    receipt_href: str
    proposals: tuple[ProposalCard, ...]
    commands: tuple[CommandCard, ...]


def step_cards(story: Story, now: datetime, *, may_open: bool) -> tuple[StepCard, ...]:
    """``may_open``: whether this reader may open protected documents; who may not is led to none."""
    return tuple(step_card(story, step, now, may_open=may_open) for step in story.steps)


def step_card(story: Story, step: Step, now: datetime, *, may_open: bool) -> StepCard:
    commands = story.commands_of(step)
    proposals = story.proposals.get(step.key, ())
    unknown = any(command.status == C.UNKNOWN for command in commands)
    held = any(command.status == C.HELD for command in commands)
    thing, state = step_state(step, unknown=unknown, held=held)
    waiting = step.status == StepStatus.WAITING
    return StepCard(
        key=step.key, title=step_words(step.key), kind=KINDS.get(step.kind, step.kind),  # type: ignore[call-overload]
        ui=state_ui(thing, state), state=(thing, state), took=took(step, now), attempts=step.attempt,
        lines=lines_of(step), until=step.waiting_until if waiting else None,
        then=then(step.on_expiry) if waiting else "",
        result_href=document_href(step.run_id, step.result_ref) if may_open else "",
        kept_hrefs=tuple(document_href(step.run_id, ref) for ref in kept(step)) if may_open else (),
        receipt_href=receipt_href(step, proposals), proposals=tuple(proposal_card(story, row) for row in proposals),
        commands=tuple(command_card(story, command, now, may_open=may_open) for command in commands),
    )  # fmt: skip


def took(step: Step, now: datetime) -> str:
    """How long it took, or for how long it has been open."""
    if step.started_at is None:
        return ""
    if step.finished_at is not None:
        return seconds(step.started_at, step.finished_at)
    return f"open for {spans.span((now - step.started_at).total_seconds())}"


def lines_of(step: Step) -> tuple[str, ...]:
    """Codes and counts of a step, as sentences; never content."""
    lines = []
    if step.status == StepStatus.WAITING:
        lines.append(f"Waits for {asked_of(step)}.")
        lines += [f"It was asked: {question_of(step)}"] if question_of(step) else []
    if step.failure_code:
        lines.append(f"Ended as: {code_words(visible(step.failure_code))}.")
    if step.confidence is not None:
        lines.append(f"Confidence {step.confidence.normalize():f}.")
    if step.usage.get("input_tokens"):
        lines.append(f"{step.usage['input_tokens']:,} tokens in, {step.usage.get('output_tokens', 0):,} out.")
    if step.lost_leases:
        lines.append(f"{step.lost_leases} lost with their worker before anything was stored.")
    notes = [visible(str(note)) for note in step.notes if not str(note).startswith("kept:")]
    return (*lines, *(["Noted: " + ", ".join(notes) + "."] if notes else []))


def kept(step: Step) -> list[UUID]:
    """What was refused and is kept as it was: the ids of the documents."""
    return [UUID(str(note).removeprefix("kept:")) for note in step.notes if str(note).startswith("kept:")]


def document_href(run_id: UUID, ref: UUID | None) -> str:
    return reverse("workflows:document", args=[run_id, ref]) if ref else ""


def receipt_href(step: Step, proposals: Sequence[Proposal]) -> str:
    """There is a receipt as soon as something was decided."""
    if not proposals or proposals[-1].status == ProposalStatus.PENDING:
        return ""
    return reverse("workflows:receipt", args=[step.run_id, step.key])


def proposal_card(story: Story, proposal: Proposal) -> ProposalCard:
    policy = proposal.policy
    return ProposalCard(
        href=reverse("approvals:proposal", args=[proposal.pk]), id=proposal.pk, version=proposal.version,
        status=proposal.status, mode=proposal.mode, target=visible(proposal.target),
        operation=f"{proposal.operation}, version {proposal.operation_version}",
        rule=f"{visible(str(policy.get('rule', '')))}, version {policy.get('version', '')}", digest=proposal.digest,
        decide_by=proposal.decide_by, is_open=proposal.status == ProposalStatus.PENDING,
        why=code_words(visible(proposal.end_reason)) if proposal.ended_at else "",
        votes=tuple(vote_line(vote) for vote in story.votes.get(proposal.pk, ())),
    )  # fmt: skip


def vote_line(vote: Decision) -> VoteLine:
    tone, icon, word = DECIDED[vote.kind]
    who = visible(str(vote.user)) if vote.user else f"Rule {visible(vote.rule)}, version {vote.rule_version}"
    # Their own words stand on the proposal's page, for the roles that are shown personal data.
    said = code_words(vote.reason_code)
    return VoteLine(tone, icon, f"{who} {word}", vote.view_digest, vote.at, said)


def command_card(story: Story, command: Command, now: datetime, *, may_open: bool) -> CommandCard:
    return CommandCard(
        id=command.pk, status=command.status, effect=command.effect,
        operation=f"{command.operation}, version {command.operation_version}", key=command.idempotency_key,
        sentence=command_sentence(command), reference=visible(command.provider_reference),
        result_href=document_href(command.run_id, command.result_ref) if may_open else "",
        tries=tries_of(story.attempts.get(command.pk, ()), story.lookups.get(command.pk, ()), now),
    )  # fmt: skip


def command_sentence(command: Command) -> str:
    """Where the order stands, in one sentence. What is not known is called unknown."""
    if command.status in C.final_states:
        settled = f" Settled by: {SettledBy(command.settled_by).label.lower()}." if command.settled_by else ""
        return f"{_how_it_ended(command)}{settled}"
    code = f" ({code_words(visible(command.failure_code))})" if command.failure_code else ""
    hold = HoldReason(command.hold_reason).label.lower() if command.hold_reason else ""
    return {
        C.READY: "Waits for a worker.",
        C.CLAIMED: "A worker has it and checks everything once more before it sends.",
        C.SENT: "It was sent; its answer is awaited.",
        C.RETRY_WAIT: f"The last try changed nothing{code}; it is tried again.",
        C.HELD: f"Held: {hold}. Nothing is lost and nothing is sent.",
        C.UNKNOWN: f"Nobody knows yet whether it happened{code}. It is looked up and never sent again blindly.",
    }[C(command.status)]


def _how_it_ended(command: Command) -> str:
    code = f" ({code_words(visible(command.failure_code))})" if command.failure_code else ""
    match command.status:
        case C.CONFIRMED:
            return f"It happened {'in part' if command.effect == Effect.PARTIAL else 'once'}."
        case C.VOID:
            return f"Never sent: {VoidReason(command.void_reason).label.lower()}. Nothing happened."
        case C.CANCELLED:
            return "Cancelled."
    return f"{C(command.status).label}{code}. Nothing happened."
