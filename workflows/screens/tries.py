"""The tries of a command and the look-ups about it, with the time of every boundary that was crossed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from common.display import visible
from common.states_ui import StateUi, Tone, state_ui
from workflows.enums import AttemptStatus
from workflows.models import Attempt, Lookup

FINDINGS: Final = {
    "happened": StateUi("ok", "check-circle", "Found: it happened"),
    "not_found": StateUi("wait", "clock", "Found nothing"),
    "no_answer": StateUi("unknown", "unknown", "No answer"),
}

NO_LOOKUP: Final = ("status 501", "this provider has no look-up")


@dataclass(frozen=True, slots=True)
class Bound:
    """A boundary with its time, or (``at`` empty) the stretch between two of them."""

    word: str
    tone: Tone
    icon: str = ""
    at: str = ""
    iso: str = ""


@dataclass(frozen=True, slots=True)
class Try:
    """One request, or one look-up, as a card."""

    title: str
    kind: str
    ui: StateUi
    worker: str
    bounds: tuple[Bound, ...]
    notes: tuple[str, ...]
    began: datetime


def tries_of(attempts: Sequence[Attempt], lookups: Sequence[Lookup], now: datetime) -> tuple[Try, ...]:
    """Attempts and look-ups of one command in the order in which they began."""
    shown = [attempt_card(attempt, now) for attempt in attempts]
    shown += [lookup_card(lookup, number) for number, lookup in enumerate(lookups, start=1)]
    return tuple(sorted(shown, key=lambda card: card.began))


def attempt_card(attempt: Attempt, now: datetime) -> Try:
    return Try(
        title=f"Attempt {attempt.number}", kind="original" if attempt.number == 1 else "again",
        ui=state_ui("attempt", attempt.status), worker=visible(attempt.worker), bounds=attempt_bounds(attempt, now),
        notes=attempt_notes(attempt), began=attempt.claimed_at,
    )  # fmt: skip


def attempt_bounds(attempt: Attempt, now: datetime) -> tuple[Bound, ...]:
    """Claimed, sent, ended; an end that did not come is shown as the silence it is."""
    bounds = [event("Claimed", "pin", "ok", attempt.claimed_at)]
    last = attempt.claimed_at
    if attempt.sent_at is not None:
        bounds += [gap(last, attempt.sent_at), event("Sent", "send", "ok", attempt.sent_at)]
        last = attempt.sent_at
    if attempt.ended_at is None:
        waiting = f"{seconds(last, now)} so far"
        return (*bounds, Bound(waiting, "act"))
    silent = attempt.status == AttemptStatus.NO_ANSWER
    ui = state_ui("attempt", attempt.status)
    stretch = (
        Bound(f"{seconds(last, attempt.ended_at)}, silent", "unknown")
        if silent
        else gap(last, attempt.ended_at)
    )
    return (*bounds, stretch, event(ui.word, ui.icon, ui.tone, attempt.ended_at))


def attempt_notes(attempt: Attempt) -> tuple[str, ...]:
    notes = []
    if attempt.outcome:
        status = f", HTTP {attempt.http_status}" if attempt.http_status else ""
        detail = f": {visible(attempt.detail)}" if attempt.detail else ""
        notes.append(f"Classified as {attempt.outcome.replace('_', ' ')}{status}{detail}.")
    if attempt.late_evidence is not None:
        meaning = str(attempt.late_evidence.get("meaning", "")).replace("_", " ")
        notes.append(
            f"A late answer came after its lease was over: {visible(meaning)}. It moved nothing by itself."
        )
    return tuple(notes)


def lookup_card(lookup: Lookup, number: int) -> Try:
    ui = FINDINGS[lookup.finding]
    bounds = (
        event("Asked", "search", "ok", lookup.asked_at), gap(lookup.asked_at, lookup.ended_at),
        event(ui.word, ui.icon, ui.tone, lookup.ended_at),
    )  # fmt: skip
    return Try(
        title=f"Look-up {number}", kind="sends nothing", ui=ui, worker=visible(lookup.worker), bounds=bounds,
        notes=lookup_notes(lookup), began=lookup.asked_at,
    )  # fmt: skip


def lookup_notes(lookup: Lookup) -> tuple[str, ...]:
    notes = []
    if lookup.finding == "not_found":
        notes.append(
            "Asked after the settle time, so it is an answer." if lookup.settled
            else "Asked before the settle time was over, so it proves nothing."
        )  # fmt: skip
    if lookup.provider_reference:
        notes.append(f"Provider's reference: {visible(lookup.provider_reference)}.")
    if lookup.detail:
        told = detail_words(lookup.detail)
        notes.append(f"{told[:1].upper()}{told[1:]}.")
    return tuple(notes)


def detail_words(detail: str) -> str:
    """Why a look-up told nothing, as a sentence's part: a provider without a look-up answers 501."""
    if detail in NO_LOOKUP:
        return "the provider cannot look this up"
    return visible(detail)


def event(word: str, icon: str, tone: Tone, at: datetime) -> Bound:
    utc = at.astimezone(UTC)
    return Bound(word, tone, icon, f"{utc:%H:%M:%S}.{utc.microsecond // 1000:03d}", utc.isoformat())


def gap(start: datetime, end: datetime) -> Bound:
    return Bound(seconds(start, end), "mute")


def seconds(start: datetime, end: datetime) -> str:
    """A stretch as a worker's log has it: ``11 ms``, ``10.000 s``, ``4 min 10 s``."""
    length = max(0.0, (end - start).total_seconds())
    if length < 1:
        return f"{length * 1000:.0f} ms"
    if length < 60:
        return f"{length:.3f} s"
    if length < 3600:
        return f"{int(length // 60)} min {int(length % 60)} s"
    return f"{int(length // 3600)} h {int(length % 3600 // 60):02d} min"
