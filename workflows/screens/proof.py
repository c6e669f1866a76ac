"""The proof of a freeze in words: what the history says was sent after the drain, and how far that is chained."""

from datetime import datetime
from typing import Final

from audit.checks import LastCheck
from common import spans
from common.states_ui import Tone
from workflows.enums import HoldReason
from workflows.models import Hold
from workflows.selectors_holds import SentProof

OF_A_CIRCUIT: Final = (
    "An open circuit lets one call through from time to time, to see whether the provider works again. Everything "
    "else within it waits."
)
NOT_DRAINED: Final = (
    "The freeze is in force. Somebody who was about to send has not ended yet; as soon as they have, the instant is "
    "noted here, and from then on nothing was newly sent."
)


def proof_lines(
    hold: Hold, proof: SentProof | None, checked: LastCheck | None, now: datetime
) -> tuple[Tone, str, tuple[str, ...]]:
    """Tone, title and sentences."""
    if hold.reason == HoldReason.CIRCUIT:
        return "mute", "No promise, unlike a freeze", (OF_A_CIRCUIT,)
    if proof is None:
        return "wait", "Not drained yet", (NOT_DRAINED,)
    return (
        _tone(proof),
        _title(proof),
        (_bounds(proof), _places(proof), _recomputed(proof), _checked(checked, now)),
    )


def _tone(proof: SentProof) -> Tone:
    return "ok" if proof.holds else "bad"


def _title(proof: SentProof) -> str:
    if not proof.verdict.holds:
        return "The history does not hold, so it proves nothing"
    return f"{proof.newly_sent:,} newly sent between the drain and {'the lift' if proof.is_over else 'now'}"


def _bounds(proof: SentProof) -> str:
    end = (
        f"{spans.utc_text(proof.until)}, the lift" if proof.is_over else f"{spans.utc_text(proof.until)}, now"
    )
    must = (
        ""
        if not proof.newly_sent
        else " It must be 0: look at them in the history, and keep everything frozen."
    )
    return (
        f"Events command.sent in the history, for commands within the scope, from {spans.utc_text(proof.since)}, "
        f"the drain, to {end}: {proof.newly_sent:,}.{must}"
    )


def _places(proof: SentProof) -> str:
    sealed = f"The history is numbered and chained up to event {proof.sealed:,}"
    if proof.first_seq is None:
        return f"{sealed}."
    last = f", the lift is event {proof.last_seq:,}" if proof.last_seq is not None else ""
    return f"{sealed}; the drain is event {proof.first_seq:,}{last}. What is not sealed yet is counted too."


def _recomputed(proof: SentProof) -> str:
    if not proof.verdict.holds:
        return proof.verdict.meaning
    since_drain = proof.first_seq is not None and proof.links > proof.sealed - proof.first_seq
    which = (
        f"All {proof.links:,} links since the drain" if since_drain else f"The newest {proof.links:,} links"
    )
    return f"{which} were recomputed just now, and hold." if proof.links else "Nothing is sealed yet."


def _checked(checked: LastCheck | None, now: datetime) -> str:
    if checked is None:
        return "The whole chain has not been checked on the record yet; that happens daily by itself."
    found = "it held." if checked.holds else f"it did not hold. {checked.meaning}"
    return f"The whole chain was last checked {spans.distance(checked.at, now)}, {checked.sealed:,} events: {found}"
