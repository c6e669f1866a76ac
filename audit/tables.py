"""Events as rows of a table: formatting only."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.urls import reverse

from audit.models import Event
from audit.names import names_of, spoken
from audit.through import Named, called, through_names
from common.display import visible
from common.states_ui import STATES, StateUi

# Kinds that are no state of a thing. Kinds that are one take their icon from the table of states.
KINDS: Final[Mapping[str, StateUi]] = {
    "agent": StateUi("mute", "key", "Automation"),
    "attempt": StateUi("mute", "send", "Attempt"),
    "chain.broken": StateUi("bad", "link-off", "The chain does not hold"),
    "chain.exported": StateUi("mute", "down", "Taken along"),
    "chain.refused": StateUi("bad", "link-off", "The signer refuses it"),
    "chain.accepted": StateUi("wait", "users", "Accepted by a person"),
    "chain.verified": StateUi("ok", "sealed", "The chain holds"),
    "command.attested": StateUi("act", "users", "A person's word"),
    "command.attestation_refused": StateUi("mute", "lock", "Word refused"),
    "command.look_up_asked": StateUi("mute", "search", "Look-up asked for"),
    "command.looked_up": StateUi("mute", "search", "Looked up"),
    "agent.denied": StateUi("bad", "lock", "Denied"),
    "break_glass": StateUi("wait", "warn", "Break-glass"),
    "document": StateUi("mute", "eye", "Document"),
    "duty": StateUi("mute", "users", "Duty"),
    "hold.drained": StateUi("held", "snow", "Drained"),
    "group": StateUi("mute", "users", "Group"),
    "incident.content_erased": StateUi("mute", "ban", "Erased"),
    "legal_hold": StateUi("held", "lock", "Legal hold"),
    "history.exported": StateUi("mute", "down", "Taken along"),
    "incident": StateUi("act", "flag", "Incident"),
    "membership": StateUi("mute", "users", "Membership"),
    "packet.opened": StateUi("wait", "wrench", "Opened"),
    "packet.exported": StateUi("mute", "down", "Taken along"),
    "packet.raised_again": StateUi("wait", "flag", "Raised again"),
    "packet.awaiting_second": StateUi("wait", "users", "Awaiting a second person"),
    "packet.chosen": StateUi("act", "wrench", "Chosen"),
    "packet.choice_refused": StateUi("mute", "lock", "Choice refused"),
    "proposal.carried_over": StateUi("mute", "layers", "Carried over"),
    "proposal.decision_refused": StateUi("mute", "lock", "Decision refused"),
    "proposal.made": StateUi("mute", "inbox", "Made"),
    "proposal.signed": StateUi("act", "key", "Signed"),
    "proposal.vote": StateUi("act", "check", "Vote"),
    "run.cancel_requested": StateUi("wait", "ban", "Cancel requested"),
    "run.content_erased": StateUi("mute", "ban", "Erased"),
    "run.content_held": StateUi("held", "lock", "Legal hold"),
    "run.data_supplied": StateUi("act", "to", "Data supplied"),
    "run.duplicate_prevented": StateUi("mute", "layers", "Duplicate prevented"),
    "run.outcome_corrected": StateUi("wait", "pencil", "Outcome corrected"),
    "run.rest_proposed": StateUi("act", "layers", "Rest proposed"),
    "run.undo_proposed": StateUi("act", "undo", "Undo proposed"),
    "session": StateUi("mute", "key", "Session"),
    "step.asked_again": StateUi("wait", "retry", "Asked again"),
    "step.late_result_dropped": StateUi("mute", "undo", "Late result dropped"),
    "tenant": StateUi("mute", "layers", "Tenant"),
    "token": StateUi("mute", "key", "Token"),
    "token.ends_soon": StateUi("wait", "clock", "Ends soon"),
    "user": StateUi("mute", "users", "Person"),
}
UNKNOWN_KIND: Final = StateUi("mute", "ledger", "Event")


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event. ``href`` is empty for readers who have no history page."""

    id: UUID
    at: datetime
    time: str
    kind: str
    ui: StateUi
    who: str
    actor: str
    """As it is stored, for a filter."""
    via: str
    through: str
    """As it is stored, for a filter; empty where it says no more than ``via``."""
    way: str
    thing: str
    moved: str
    run_id: UUID | None
    digest: str
    seq: int | None
    href: str

    @property
    def kind_pieces(self) -> list[str]:
        """The kind, cut where a narrow column may break it."""
        return re.findall(r"[^._]+[._]*|[._]+", self.kind)

    @property
    def who_pieces(self) -> list[str]:
        """The actor, cut after the colon of a code such as ``api:intake``."""
        return re.findall(r"[^:]+:*|:+", self.who)


def kind_ui(kind: str) -> StateUi:
    """How a kind of event is shown: as the state it led to, else by its own name, else by its thing."""
    thing, _, state = kind.partition(".")
    known = STATES.get(thing, {}).get(state)
    return known or KINDS.get(kind) or KINDS.get(thing) or UNKNOWN_KIND


def event_rows(events: Iterable[Event], *, linked: bool = True) -> list[EventRow]:
    """The rows of a page of `audit.selectors.events`; one query for all names."""
    found = list(events)
    names = names_of({event.performed_by for event in found})
    ways = through_names(found[0].tenant_id, {event.through for event in found}) if found and linked else {}
    return [event_row(event, names, ways, linked=linked) for event in found]


def event_row(
    event: Event, names: Mapping[str, str], ways: Mapping[str, Named], *, linked: bool = True
) -> EventRow:
    return EventRow(
        id=event.pk, at=event.at, time=f"{event.at:%H:%M:%S}.{event.at.microsecond // 1000:03d}",
        kind=visible(event.kind), ui=kind_ui(event.kind), who=spoken(event.performed_by, names),
        actor=event.performed_by, via=event.via,
        through=event.through or "", way=called(event.through, ways), thing=visible(event.subject_type),
        moved=moved(event), run_id=event.run_id, digest=event.digest,
        seq=event.seq, href=reverse("audit:event", args=[event.pk]) if linked else "",  # type: ignore[attr-defined]
    )  # fmt: skip


def moved(event: Event) -> str:
    """From which state to which, in words; empty for an event that moved nothing."""
    after = state_word(event.subject_type, event.to_state)
    if not after:
        return ""
    before = state_word(event.subject_type, event.from_state)
    return f"{before} → {after}" if before and before != after else after


def state_word(thing: str, state: str) -> str:
    known = STATES.get(thing, {}).get(state)
    return known.word if known else visible(state).replace("_", " ")
