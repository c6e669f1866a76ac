"""What is signed and kept outside, as the history page says it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from audit.proof import Anchored, Proof, proof
from common import spans
from common.states_ui import Tone


@dataclass(frozen=True, slots=True)
class ProofPanel:
    """One answer, and the sentences behind it. ``sends``: whether there is something, and somebody, to send to."""

    tone: Tone
    icon: str
    title: str
    sentences: tuple[str, ...]
    sends: bool


def proof_panel(tenant_id: UUID, now: datetime) -> ProofPanel:
    found = proof(tenant_id)
    tone, icon, title = _answer(found, now)
    sends = found.newest is not None and found.anchored.receivers > 0
    return ProofPanel(tone, icon, title, (*_signed(found, now), *_outside(found.anchored, now)), sends)


def _answer(found: Proof, now: datetime) -> tuple[Tone, str, str]:
    if found.refusal is not None:
        return "bad", "link-off", "The signer refuses this history"
    if found.anchored.overdue(now):
        return "bad", "warn", "No checkpoint reached anybody for two days"
    if found.behind(now):
        return "wait", "warn", "The signer is not at work"
    if found.newest is None:
        return "mute", "clock", "Nothing is signed yet"
    if not found.anchored.receivers:
        return "wait", "sealed", f"Signed up to event {found.newest.size:,}, and kept by nobody else"
    return "ok", "sealed", f"Signed up to event {found.newest.size:,}"


def _signed(found: Proof, now: datetime) -> tuple[str, ...]:
    says = []
    if found.refusal is not None:
        says.append(f"{found.refusal.detail} Refused since {_when(found.refusal.at, now)}.")
    if found.newest is not None:
        size, at = found.newest.size, _when(found.newest.signed_at, now)
        says.append(f"The last checkpoint is of {size:,} events, signed at {at}.")
    if found.unsigned_since is not None and found.behind(now):
        says.append(f"The oldest event that is not signed was sealed at {_when(found.unsigned_since, now)}.")
    return tuple(says)


def _outside(sent: Anchored, now: datetime) -> tuple[str, ...]:
    if not sent.receivers:
        return ("Nobody outside is sent checkpoints; admins register who is, under People, Notices.",)
    if sent.taken_at is None or sent.signed_at is None:
        last = "None was taken yet."
    else:
        taken, at = _when(sent.taken_at, now), spans.utc_text(sent.signed_at)
        last = f"The last one outside is of {sent.size:,} events, signed at {at} and taken at {taken}."
    many = "1 receiver is" if sent.receivers == 1 else f"{sent.receivers} receivers are"
    problem = f"The newest did not reach everybody: {sent.problem}." if sent.problem else ""
    return tuple(part for part in (f"{many} sent one each day.", last, problem) if part)


def _when(at: datetime, now: datetime) -> str:
    return f"{spans.utc_text(at)} ({spans.distance(at, now)})"
