"""Whether the chain holds, as the history page says it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from audit.checks import LastCheck, last_check
from audit.names import names_of, spoken
from audit.selectors import ChainState, chain_state
from audit.verify import Verdict, verify
from common import spans
from common.states_ui import Tone

NEWEST: Final = 200
"""How many links are recomputed each time the page is opened; a whole chain is checked daily, and on request."""


@dataclass(frozen=True, slots=True)
class ChainPanel:
    """One answer, and the sentences behind it."""

    tone: Tone
    icon: str
    title: str
    sentences: tuple[str, ...]
    total: int


def chain_panel(tenant_id: UUID, now: datetime) -> ChainPanel:
    state, last, newest = chain_state(tenant_id), last_check(tenant_id), verify(tenant_id, last=NEWEST)
    names = names_of([last.performed_by]) if last else {}
    tone, icon, title = _answer(state, last, newest)
    sentences = (_sealed(state), *_newest(newest, state), _checked(last, now, names))
    return ChainPanel(tone, icon, title, sentences, state.sealed + state.unsealed)


def _answer(state: ChainState, last: LastCheck | None, newest: Verdict) -> tuple[Tone, str, str]:
    if not newest.holds:
        place = f" at event {newest.seq:,}" if newest.seq is not None else ""
        return "bad", "link-off", f"The chain does not hold{place}"
    if last is not None and not last.holds:
        return "bad", "link-off", "The chain did not hold when it was last checked"
    if not state.sealed:
        return "mute", "clock", "Nothing is sealed yet"
    return "ok", "sealed", f"The chain holds up to event {state.sealed:,}"


def _sealed(state: ChainState) -> str:
    waiting = {0: "none waits", 1: "1 waits"}.get(state.unsealed, f"{state.unsealed:,} wait")
    if state.sealed_at is None:
        return f"No event is sealed, {waiting} for the first seal."
    at = spans.utc_text(state.sealed_at)
    return f"{state.sealed:,} events are numbered and chained, the last at {at}; {waiting} for the next seal."


def _newest(newest: Verdict, state: ChainState) -> tuple[str, ...]:
    if not newest.holds:
        return (newest.meaning,)
    count = min(NEWEST, state.sealed)
    return (f"The newest {count:,} were recomputed just now.",) if count else ()


def _checked(last: LastCheck | None, now: datetime, names: Mapping[str, str]) -> str:
    if last is None:
        return "The whole chain has not been checked on the record yet; that happens daily by itself."
    found = "it held." if last.holds else f"it did not hold. {last.meaning}"
    when = f"{spans.utc_text(last.at)} ({spans.distance(last.at, now)})"
    who = spoken(last.performed_by, names)
    return f"The whole chain was last checked at {when} by {who}, {last.sealed:,} events: {found}"
