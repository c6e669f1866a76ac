"""What is known and what is not, as sentences made by code from states, codes and business names only."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from approvals.screens.people import WORDS as DECIDED
from common.display import visible
from repair.models import RepairPacket
from repair.packet.case import Case
from repair.tables import cause_words
from workflows import registry
from workflows.enums import AttemptStatus, CommandStatus, Effect, RunKind
from workflows.models import Attempt, Command, Lookup
from workflows.registry import UnknownOperation
from workflows.screens.steps import vote_line
from workflows.screens.tries import detail_words, seconds
from workflows.screens.words import code_words, step_words, title_of

C = CommandStatus
# What a vote was on, after who gave it and which.
EXACTLY: Final = {
    "approve": " exactly this",
    "reject": " exactly this",
    "request_changes": " to exactly this",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that is known, or that is not."""

    text: str
    code: str = ""
    digest: str = ""
    at: datetime | None = None


def sentence(packet: RepairPacket, command: Command | None, late: str = "") -> str:
    """The state of things, made by code from states and business names only. ``late``: the reference of an effect that
    only a late answer tells of.
    """
    if command is None:
        where = f"{title_of(packet.run.workflow)} stopped at the step “{step_words(packet.step)}”"
        return f"{where}: {cause_words(packet.cause).lower()}."
    action = f"“{operation_title(command)}” on {visible(command.target)}"
    times = {0: "was never sent", 1: "was sent once"}.get(command.tries, f"was sent {command.tries} times")
    if command.effect == Effect.UNKNOWN:
        return f"{action} {times}. Nobody knows yet whether it happened."
    if command.status == C.HELD:
        return f"{action} is approved and held back. It {times}."
    return f"{action} {times}. {_HAPPENED[command.effect, bool(late)]}"


_HAPPENED: Final[Mapping[tuple[str, bool], str]] = {
    (Effect.NONE, False): "Nothing happened by it.",
    (Effect.NONE, True): "It was settled as not happened, and a late answer says that it happened.",
    (Effect.HAPPENED, False): "It happened.",
    (Effect.HAPPENED, True): "It happened, and by a late answer once more.",
    (Effect.PARTIAL, False): "It happened in part.",
    (Effect.PARTIAL, True): "It happened in part, and by a late answer once more.",
}


def operation_title(command: Command) -> str:
    try:
        return registry.operation(command.operation, command.operation_version).title
    except UnknownOperation:
        return command.operation


def known(case: Case, *, names: bool) -> list[Point]:
    """What is certain: votes, boundaries, look-ups, the end. ``names``: of colleagues, in place of their accounts."""
    points, command = _votes(case, names=names), case.command
    if command is None:
        return [
            *points,
            Point(visible(case.packet.summary)),
            Point("No order to a provider belongs to this stop."),
            *after_points(case),
        ]
    attempts = case.story.attempts.get(command.pk, ())
    points += [point for attempt in attempts for point in attempt_points(attempt, command)]
    if command.first_sent_at is None:
        points.append(Point("Nothing has left this system for it."))
    points += [lookup_point(lookup) for lookup in case.story.lookups.get(command.pk, ())]
    if command.status in C.final_states:
        points.append(Point(f"It ended as {C(command.status).label.lower()}.", at=command.ended_at))
    if not case.same_key:
        points.append(Point("No other order was ever made for the same business key."))
    return points + after_points(case)


def after_points(case: Case) -> list[Point]:
    """What people proposed after an effect, and where that stands."""
    points = []
    for run in case.after:
        steps = ", ".join(step_words(step.key) for step in run.steps.all())
        stands = code_words(run.outcome) if run.outcome else code_words(run.status)
        points.append(
            Point(f"{RunKind(run.kind).label} ({steps}) was proposed: {stands}.", at=run.created_at)
        )
    return points


def _votes(case: Case, *, names: bool) -> list[Point]:
    points = []
    for vote in case.story.votes.get(case.proposal.pk, ()) if case.proposal else ():
        line = vote_line(vote)
        said = f", saying “{line.said}”" if line.said else ""
        who = line.text if names else f"{visible(vote.performed_by)} {DECIDED[vote.kind][2]}"
        text = f"{who}{EXACTLY[vote.kind]}{said}, on view"
        points.append(Point(text, digest=line.view_digest, at=line.at))
    return points


def attempt_points(attempt: Attempt, command: Command) -> list[Point]:
    """The boundaries that are certain."""
    if attempt.sent_at is None:
        why = f": {visible(attempt.detail)}" if attempt.detail else ""
        return [Point(f"Attempt {attempt.number} was claimed and not sent{why}.", at=attempt.claimed_at)]
    points = [Point("It left this system with key", code=command.idempotency_key, at=attempt.sent_at)]
    if attempt.status == AttemptStatus.NO_ANSWER and attempt.ended_at:
        points.append(Point(_no_answer(attempt), at=attempt.ended_at))
    elif attempt.status == AttemptStatus.ANSWERED:
        status = f" with HTTP {attempt.http_status}" if attempt.http_status else ""
        meaning = code_words(attempt.outcome)
        points.append(Point(f"The provider answered{status}, which means {meaning}.", at=attempt.ended_at))
    elif attempt.status == AttemptStatus.RELEASED:
        points.append(Point("Nothing of it reached the provider.", at=attempt.ended_at))
    return points


def _no_answer(attempt: Attempt) -> str:
    """An answer that took too long, or a connection that broke: the worker stored either itself."""
    assert attempt.sent_at is not None
    assert attempt.ended_at is not None
    waited, detail = seconds(attempt.sent_at, attempt.ended_at), visible(attempt.detail)
    if detail and "timeout" not in detail.lower():
        return f"No complete answer: after {waited} the connection ended ({detail}). The worker stored that itself."
    return f"No complete answer came within {waited}; the worker stored that itself."


def lookup_point(lookup: Lookup) -> Point:
    told = detail_words(lookup.detail)
    found = {
        "happened": "A look-up found that it happened.",
        "not_found": "A look-up found nothing, after the settle time."
        if lookup.settled else "A look-up found nothing, before the settle time was over: it proves nothing.",
        "no_answer": f"A look-up told nothing: {told}." if told else "A look-up got no answer.",
    }  # fmt: skip
    return Point(found[lookup.finding], at=lookup.asked_at)


def not_known(case: Case) -> list[Point]:
    """What nobody can say. Empty where nothing is in doubt."""
    command = case.command
    if command is None or command.effect != Effect.UNKNOWN:
        return []
    points = [
        Point("Whether the provider carried it out."),
        Point("Whether it did so in full, or with other values."),
    ]
    if command.tries > 1:
        points.append(Point("Which of the requests took effect, if one did."))
    lookups = case.story.lookups.get(command.pk, ())
    if not lookups:
        points.append(Point("What the provider says about its key: it has not been asked yet."))
    elif lookups[-1].finding == "no_answer":
        told = detail_words(lookups[-1].detail) or "it did not answer"
        points.append(Point(f"What the provider says about its key: {told}."))
    return points
