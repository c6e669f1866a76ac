"""Evidence as it is shown: where each piece comes from, how old it is, and whether anybody fetched it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Func, IntegerField
from django.urls import reverse

from approvals.models import Evidence, Proposal
from approvals.viewmodels import ViewDocument
from common import spans
from common.content_keys import SealBroken
from common.digests import evidence_digest, same
from common.disclosure import Recipient, may_see
from common.display import visible
from common.fields import DataClass
from common.sealed import readable

DAMAGED: Final = "Its content is damaged, or is not what was bound to this proposal: it cannot be shown."
LATE_FROM: Final = 60
SHOWN_CHARACTERS: Final = 600
PAGE_CHARACTERS: Final = 8_000
INLINE_BYTES: Final = 16_384
"""Content beyond this is not read for the page of the proposal."""
_OCTETS: Final = Func("content", function="octet_length", output_field=IntegerField())
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
    limit: str = ""
    """How long it may be relied on, counted from when it was captured; empty without a limit."""
    more: str = ""
    """Where the whole of it is read, a page at a time; empty where all of it stands here."""

    @property
    def quoted(self) -> bool:
        """Whether it is somebody's own words, and not a record: set in the voice of quotes."""
        return self.kind not in RECORDS

    @property
    def by_lines(self) -> bool:
        return "\n" in self.content


@dataclass(frozen=True, slots=True)
class EvidencePage:
    """A page of a piece of evidence, with the way to the pages beside it and back to the proposal."""

    number: int
    title: str
    source: str
    digest: str
    quoted: bool
    text: str
    size: int
    page: int
    pages: int
    before: str
    next: str
    back: str


def evidence_pieces(
    proposal: Proposal, view: ViewDocument, *, sees_personal: bool, now: datetime
) -> tuple[EvidencePiece, ...]:
    """The pieces in order: titles and sources from the stored view, content and age from the rows."""
    rows = {row.digest: row for row in _rows_of(proposal)}
    shown = []
    for number, piece in enumerate(view.evidence, start=1):
        row = rows.get(piece.digest)
        captured = datetime.fromisoformat(piece.captured_at)
        until = row.fresh_until if row else None
        used = 100 - spans.share(captured, until, now) if until else 0
        content, note = content_of(row, sees_personal=sees_personal)
        whole = (
            bool(row) and (_is_large(row) or note.startswith("The first")) and may_read(row, sees_personal)
        )
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
                limit=spans.span((until - captured).total_seconds()) if until else "",
                more=_address(proposal, number) if whole else "",
            )
        )
    return tuple(shown)


def _rows_of(proposal: Proposal) -> list[Evidence]:
    """The rows, with the content of small pieces alone: one of five megabytes is read where somebody asks for it."""
    rows = list(proposal.evidence.order_by("position").defer("content").annotate(stored_bytes=_OCTETS))
    small = [row.pk for row in rows if not _is_large(row)]
    contents = {row.pk: row for row in proposal.evidence.filter(pk__in=small)} if small else {}
    return [contents.get(row.pk, row) for row in rows]


def _address(proposal: Proposal, number: int) -> str:
    return f"{reverse('approvals:evidence', args=[proposal.pk])}?piece={number}"


def _stored_bytes(row: Evidence | None) -> int:
    """As it lies in the database, sealed; 0 for a row whose content was read."""
    return getattr(row, "stored_bytes", None) or 0


def _is_large(row: Evidence | None) -> bool:
    return _stored_bytes(row) > INLINE_BYTES


def may_read(row: Evidence | None, sees_personal: bool) -> bool:
    return row is not None and may_see(row.data_class, Recipient(row.tenant_id, sees_personal))


def evidence_page(
    proposal: Proposal, view: ViewDocument, number: int, page: int, *, sees_personal: bool
) -> EvidencePage | None:
    """One page of one piece as it is stored; None where there is no such piece or page, or not for this reader."""
    if not 1 <= number <= len(view.evidence):
        return None
    piece = view.evidence[number - 1]
    row = proposal.evidence.filter(digest=piece.digest).first()
    content = readable(row, "content") if row is not None and may_read(row, sees_personal) else None
    if row is None or content is None:
        return None
    intact = same(evidence_digest(bytes(row.salt), bytes(content)), row.digest)
    text = content.decode(errors="replace") if intact else DAMAGED
    pages = max(1, -(-len(text) // PAGE_CHARACTERS))
    if not 1 <= page <= pages:
        return None
    start = (page - 1) * PAGE_CHARACTERS
    here = _address(proposal, number)
    return EvidencePage(
        number=number, title=piece.title, source=piece.source or "not named", digest=piece.digest,
        quoted=piece.kind not in RECORDS, text=visible(text[start : start + PAGE_CHARACTERS]),
        size=len(content), page=page, pages=pages,
        before=f"{here}&page={page - 1}" if page > 1 else "", next=f"{here}&page={page + 1}" if page < pages else "",
        back=f"{reverse('approvals:proposal', args=[proposal.pk])}#e{number}",
    )  # fmt: skip


def freshness(until: datetime | None, now: datetime, used: int) -> str:
    if until is None:
        return "undated"
    if now >= until:
        return "past"
    return "late" if used >= LATE_FROM else "fresh"


def content_of(row: Evidence | None, *, sees_personal: bool) -> tuple[str, str]:
    """The beginning of a piece's content, and a note where that is not all of it."""
    if row is not None and not may_see(row.data_class, Recipient(row.tenant_id, sees_personal)):
        if row.data_class == DataClass.SECRET:
            return "", "Secret: only its digest is shown."
        return "", "Personal: not shown to your role."
    if row is not None and _is_large(row):
        return "", f"{_stored_bytes(row):,} bytes: it is read in pages."
    try:
        content = row.content if row is not None else None
    except SealBroken:
        return "", DAMAGED
    if row is None or content is None:
        return "", "Its content was erased; the digest stays."
    if not same(evidence_digest(bytes(row.salt), bytes(content)), row.digest):
        return "", DAMAGED
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "", f"Not a text, {len(content):,} bytes."
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
