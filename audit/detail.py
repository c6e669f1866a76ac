"""One event in full: in words, as it is stored and hashed, and the proof of its place in the chain."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from audit.chain import GENESIS, Content, canonical_link, link_hash
from audit.models import Event, Seal
from audit.names import names_of, spoken
from audit.selectors import stored_content
from audit.tables import EventRow, event_row
from audit.through import Named, spoken_through, through_names, way
from common.desk_parts import Leader
from common.display import visible

VIA: Final = {
    "session": "in a signed-in session", "token": "with a token", "link": "by a link", "worker": "as a worker",
    "clock": "because its time had come", "rule": "by a policy rule", "command_line": "on the command line",
}  # fmt: skip
_ONE_OF_MANY: Final = ("session", "token")


@dataclass(frozen=True, slots=True)
class EventDetail:
    """What a reader sees of one event."""

    row: EventRow
    words: str
    facts: tuple[tuple[str, str], ...]
    stored: str
    through: Named | None
    """The token or endpoint through which it came, where it is known here."""
    hash: str
    proof: tuple[Leader, ...]


def event_detail(event: Event) -> EventDetail:
    """``event`` comes from `audit.selectors.events`, so it knows its place."""
    names = names_of({event.performed_by, event.on_behalf_of})
    ways = through_names(event.tenant_id, [event.through])
    row = event_row(event, names, ways)
    content, seal = stored_content(event.pk), Seal.objects.filter(event_id=event.pk).first()
    return EventDetail(
        row=row, words=_words(row, way(event.through, ways)), facts=_facts(event, names, ways),
        stored=_stored(content, seal), through=ways.get(event.through or ""), hash=seal.hash if seal else "",
        proof=tuple(_proof(content, seal)),
    )  # fmt: skip


def _words(row: EventRow, way: str) -> str:
    what = f"{row.thing}: {row.moved}" if row.moved else row.kind
    return f"{row.who[:1].upper()}{row.who[1:]}, {way or VIA.get(row.via, row.via)} · {what}."


def _facts(event: Event, names: Mapping[str, str], ways: Mapping[str, Named]) -> tuple[tuple[str, str], ...]:
    facts = [
        ("Performed by", visible(event.performed_by)),
        ("On behalf of", spoken(event.on_behalf_of, names) if event.on_behalf_of else "nobody else"),
        ("Came through", spoken_through(event.through, ways) or _not_noted(event)),
        ("Authority", event.owner),
        ("Reason", visible(event.reason) or "none given"),
        ("About", f"{visible(event.subject_type)} {event.subject_id}"),
        ("Request", visible(event.request_id)),
        ("Digest", visible(event.digest)),
        *(
            (visible(str(name)).replace("_", " ").capitalize(), _value(value))
            for name, value in event.body.items()
        ),
    ]
    return tuple((name, value) for name, value in facts if value)


def _not_noted(event: Event) -> str:
    """Which one it was is in no event of before; there it is not known, which is not the same as none."""
    return "not noted in events of that time" if event.through is None and event.via in _ONE_OF_MANY else ""


def _value(value: Any) -> str:
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=True))


def _stored(content: Content, seal: Seal | None) -> str:
    """The canonical bytes that are hashed; before the seal there is no number and no link in them yet."""
    seq, previous = (seal.seq, seal.previous) if seal else (0, GENESIS)
    return visible(canonical_link(seq, previous, content).decode())


def _proof(content: Content, seal: Seal | None) -> list[Leader]:
    if seal is None:
        return [Leader("Sealed", "within a few seconds", "wait", "clock")]
    fits = link_hash(seal.seq, seal.previous, content) == seal.hash
    before = Seal.objects.filter(tenant_id=seal.tenant_id, seq=seal.seq - 1).first()
    after = Seal.objects.filter(tenant_id=seal.tenant_id, seq=seal.seq + 1).first()
    follows = seal.previous == (before.hash if before else GENESIS) and (before is not None or seal.seq == 1)
    first = "Is the first event" if seal.seq == 1 else f"Follows event {seal.seq - 1:,}"
    lines = [_answer("Hash fits the stored event", holds=fits), _answer(first, holds=follows)]
    if after is None:
        return [*lines, Leader("Next event", "it is the newest", "mute", "clock")]
    return [*lines, _answer(f"Event {after.seq:,} follows it", holds=after.previous == seal.hash)]


def _answer(question: str, *, holds: bool) -> Leader:
    return Leader(question, "yes", "ok", "check") if holds else Leader(question, "no", "bad", "x")
