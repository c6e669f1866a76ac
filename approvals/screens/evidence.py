"""Evidence as it is shown: where each piece comes from, how old it is, and whether anybody fetched it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from approvals.models import Evidence, Proposal
from approvals.viewmodels import ViewDocument
from common import spans
from common.display import visible
from common.fields import DataClass

LATE_FROM: Final = 60
SHOWN_CHARACTERS: Final = 600
# Kinds that code wrote: their lines are exact values. All others are somebody's own words.
RECORDS: Final = frozenset({"record", "policy", "classification"})


@dataclass(frozen=True, slots=True)
class EvidencePiece:
    """One piece. ``used`` is how much of its time is used up, in percent; ``state`` names its freshness."""

    number: int
    title: str
    kind: str
    source: str
    ref: str
    content: str
    note: str
    captured_at: datetime
    fresh_until: datetime | None
    digest: str
    asserted: bool
    state: str
    used: int

    @property
    def quoted(self) -> bool:
        """Whether it is somebody's own words, and not a record: set in the voice of quotes."""
        return self.kind not in RECORDS

    @property
    def by_lines(self) -> bool:
        return "\n" in self.content


def evidence_pieces(
    proposal: Proposal, view: ViewDocument, *, sees_personal: bool, now: datetime
) -> tuple[EvidencePiece, ...]:
    """The pieces in order: titles and sources from the stored view, content and age from the rows."""
    rows = {row.digest: row for row in proposal.evidence.order_by("position")}
    shown = []
    for number, piece in enumerate(view.evidence, start=1):
        row = rows.get(piece.digest)
        captured = datetime.fromisoformat(piece.captured_at)
        until = row.fresh_until if row else None
        used = 100 - spans.share(captured, until, now) if until else 0
        content, note = content_of(row, sees_personal=sees_personal)
        shown.append(
            EvidencePiece(
                number=number,
                title=piece.title,
                kind=piece.kind,
                source=piece.source or "not named",
                ref=visible(row.ref) if row else "",
                content=content,
                note=note,
                captured_at=captured,
                fresh_until=until,
                digest=piece.digest,
                asserted=piece.asserted,
                state=freshness(until, now, used),
                used=used,
            )
        )
    return tuple(shown)


def freshness(until: datetime | None, now: datetime, used: int) -> str:
    if until is None:
        return "undated"
    if now >= until:
        return "past"
    return "late" if used >= LATE_FROM else "fresh"


def content_of(row: Evidence | None, *, sees_personal: bool) -> tuple[str, str]:
    """The beginning of a piece's content, and a note where that is not all of it."""
    if row is None or row.content is None:
        return "", "Its content was erased; the digest stays."
    if row.data_class == DataClass.SECRET:
        return "", "Secret: only its digest is shown."
    if row.data_class == DataClass.PERSONAL and not sees_personal:
        return "", "Personal: not shown to your role."
    try:
        text = bytes(row.content).decode()
    except UnicodeDecodeError:
        return "", f"Not a text, {len(row.content):,} bytes."
    cut = len(text) > SHOWN_CHARACTERS
    note = f"The first {SHOWN_CHARACTERS} of {len(text):,} characters." if cut else ""
    return visible(text[:SHOWN_CHARACTERS]), note


def evidence_says(pieces: tuple[EvidencePiece, ...]) -> str:
    """How many pieces, and what a reader should know about them first."""
    if not pieces:
        return "none"
    past = sum(piece.state == "past" for piece in pieces)
    asserted = sum(piece.asserted for piece in pieces)
    facts = [f"{len(pieces)} piece{'' if len(pieces) == 1 else 's'}, bound by hash"]
    facts += [f"{past} past {'its' if past == 1 else 'their'} limit"] if past else []
    facts += [f"{asserted} given by the proposer"] if asserted else []
    return " · ".join(facts)
