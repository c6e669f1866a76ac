"""The slip: the stored fields as this response carries them, with a receipt for each part whose text is in it.

What is long is folded: its text comes only in the answer that opens it, a page at a time, and what was opened before is
told by its receipts, which the page hands back in hidden fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from access.models import Membership
from approvals import receipts
from approvals.enums import ProposalStatus
from approvals.models import Proposal
from approvals.policies import SEES_PERSONAL
from approvals.viewmodels import MAIN, ViewDocument, ViewField, ViewList
from common.disclosure import Recipient, disclosed, hides

_HIDDEN_NOTES: Final = ("not shown to your role",)


@dataclass(frozen=True, slots=True)
class Reader:
    """Who looks, when by the server's clock, which folded parts stand open, and the receipts handed back so far."""

    membership: Membership
    now: datetime
    opened: frozenset[str] = frozenset()
    receipts: tuple[str, ...] = ()
    asked: str = ""
    """The part that this very request opens."""

    @property
    def user_id(self) -> UUID:
        return self.membership.user_id

    @property
    def sees_personal(self) -> bool:
        return any(self.membership.has_role(role) for role in SEES_PERSONAL)

    @property
    def recipient(self) -> Recipient:
        return Recipient(self.membership.tenant_id, self.sees_personal)


@dataclass(frozen=True, slots=True)
class Part:
    """What is folded as one thing, and the page of it that this response carries. ``field``: None for a list.

    ``key`` is the part that stands open, or while nothing does, the one to open first; ``missing`` counts the pages
    that this person was not shown yet.
    """

    key: str
    group: str
    field: ViewField | None
    folded: bool
    opened: bool
    says: str
    text: str
    receipt: str
    kept: tuple[str, ...] = ()
    page: int = 1
    pages: int = 1
    missing: int = 0
    next: str = ""
    before: str = ""

    @property
    def chunks(self) -> tuple[tuple[str, bool], ...]:
        """The text in runs of (text, heavy); the host of a link and of an address is heavy."""
        if self.field is None or self.text != self.field.text:
            return ((self.text, False),)
        before, strong, after = self.field.around_strong
        return tuple(run for run in ((before, False), (strong, True), (after, False)) if run[0])

    @property
    def numbered(self) -> bool:
        return self.field is not None and self.field.lines > 1

    @property
    def style(self) -> str:
        return "money" if self.field is not None and self.field.type.startswith("money") else ""


@dataclass(frozen=True, slots=True)
class SlipField:
    """One material field on the slip."""

    field: ViewField
    part: Part
    instant: datetime | None
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlipList:
    """A list too long for the page: what its values are together, and one page of them."""

    long: ViewList
    part: Part
    rows: tuple[SlipField, ...]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """One thing that keeps Approve closed, and where it stands."""

    label: str
    says: str
    href: str


@dataclass(frozen=True, slots=True)
class Slip:
    """The slip of one proposal for one reader. ``blocks`` are in the document's order."""

    proposal: Proposal
    view: ViewDocument
    now: datetime
    blocks: tuple[SlipField | SlipList, ...]
    shown: frozenset[str]
    """The parts that this person has been shown, with this response."""

    @property
    def is_open(self) -> bool:
        """Whether it waits for a decision at this moment, whatever the sweep has noticed so far."""
        return self.proposal.status == ProposalStatus.PENDING and self.now < self.proposal.decide_by

    @property
    def headline(self) -> str:
        return self.view.headline

    @property
    def fields(self) -> tuple[SlipField, ...]:
        return tuple(block for block in self.blocks if isinstance(block, SlipField))

    @property
    def values(self) -> int:
        """How many material values the document holds."""
        return len(self.view.fields)

    def block_of(self, part: str) -> SlipField | SlipList:
        """The block that a folded part belongs to; StopIteration for unknown parts."""
        return next(block for block in self.blocks if part in _parts_of(block))

    def left_parts(self) -> tuple[Left, ...]:
        """The folded things of which something was not shown yet."""
        return tuple(
            Left(_label_of(block), _not_opened(block.part), f"#{_id_of(block)}")
            for block in self.blocks
            if block.part.missing
        )

    @property
    def part_names(self) -> dict[str, str]:
        """What each folded part is called on the page."""
        return {part: _label_of(block) for block in self.blocks for part in _parts_of(block)}


def _label_of(block: SlipField | SlipList) -> str:
    return block.field.label if isinstance(block, SlipField) else block.long.label


def _id_of(block: SlipField | SlipList) -> str:
    return block.field.id if isinstance(block, SlipField) else block.long.id


def _parts_of(block: SlipField | SlipList) -> tuple[str, ...]:
    if isinstance(block, SlipList):
        return block.long.parts
    return block.field.parts if block.field.folded else ()


def _not_opened(part: Part) -> str:
    return "not opened" if part.pages == 1 else f"{part.missing:,} of {part.pages:,} pages not opened"


def slip_of(proposal: Proposal, view: ViewDocument, reader: Reader) -> Slip:
    """Every field of the stored document, with what this reader may see of it in this response."""
    kept = _kept(proposal, reader)
    lists = {part: long for long in view.lists for part in long.parts}
    blocks: list[SlipField | SlipList] = []
    for field in view.fields:
        long = lists.get(field.part)
        if long is None:
            blocks.append(_slip_field(proposal, view, field, reader, kept))
        elif field.part == long.parts[0] and (not blocks or getattr(blocks[-1], "long", None) is not long):
            blocks.append(_slip_list(proposal, view, long, reader, kept))
    carried = {block.part.key for block in blocks if block.part.opened}
    shown = frozenset({MAIN, *kept, *carried}) if reader.sees_personal else frozenset()
    return Slip(proposal, view, reader.now, tuple(_once(blocks)), shown)


def _once(blocks: list[SlipField | SlipList]) -> list[SlipField | SlipList]:
    """Values with parts of their own can stand between those of a list: its block comes where it begins."""
    seen: set[str] = set()
    return [block for block in blocks if not (_id_of(block) in seen or seen.add(_id_of(block)))]  # type: ignore[func-returns-value]


def _kept(proposal: Proposal, reader: Reader) -> Mapping[str, str]:
    """The receipts that were handed back and hold, by their part."""
    if not reader.receipts:
        return {}
    return receipts.by_part(
        reader.receipts, user_id=reader.user_id, proposal_id=proposal.pk, digest=proposal.digest,
        view_digest=proposal.view_digest, now=reader.now, decide_by=proposal.decide_by,
    )  # fmt: skip


def _slip_field(
    proposal: Proposal, view: ViewDocument, field: ViewField, reader: Reader, kept: Mapping[str, str]
) -> SlipField:
    """One field. Warnings that need no tick stand beside it."""
    return SlipField(
        field=field,
        part=_field_part(proposal, field, reader, kept),
        instant=datetime.fromisoformat(field.instant) if field.instant else None,
        flags=_mild(view, field.pointer),
    )


def _mild(view: ViewDocument, pointer: str) -> tuple[str, ...]:
    return tuple(w.sentence for w in view.warnings if w.pointer == pointer and not w.acknowledge)


def _field_part(proposal: Proposal, field: ViewField, reader: Reader, kept: Mapping[str, str]) -> Part:
    """What this response carries of a field: its whole text, a page of it with a receipt, or its beginning without."""
    if hides(field.data_class, reader.recipient):
        hidden = disclosed(field.text or "", field.data_class, reader.recipient)
        return Part(
            field.part, field.part, field, folded=False, opened=False, says="", text=hidden, receipt=""
        )
    if not field.folded:
        return Part(MAIN, MAIN, field, folded=False, opened=False, says="", text=field.text or "", receipt="")
    size = f"{field.lines:,} lines, " if field.lines > 1 else ""
    whole = f"{size}{field.characters:,} characters"
    texts = dict(field.pages)
    part = _paged(proposal, field.part, tuple(texts), whole, reader, kept)
    return _with(part, field, texts[part.key] if part.opened else field.preview)


def _with(part: Part, field: ViewField, text: str) -> Part:
    return Part(
        part.key, part.group, field, part.folded, part.opened, part.says, text, part.receipt, part.kept,
        part.page, part.pages, part.missing, part.next, part.before,
    )  # fmt: skip


def _slip_list(
    proposal: Proposal, view: ViewDocument, long: ViewList, reader: Reader, kept: Mapping[str, str]
) -> SlipList:
    whole = f"{long.count:,} values"
    part = _paged(proposal, long.id, long.parts, whole, reader, kept)
    held = [field for field in view.fields if field.part == part.key] if part.opened else []
    hidden = hides(long.data_class, reader.recipient)
    return SlipList(
        long=long,
        part=part,
        rows=tuple(_row(field, reader) for field in held),
        notes=_HIDDEN_NOTES if hidden else long.notes,
        flags=_mild(view, long.pointer),
    )


def _row(field: ViewField, reader: Reader) -> SlipField:
    """A value on a page of a list: as a field of the slip, without a part of its own."""
    text = disclosed(field.text or "", field.data_class, reader.recipient)
    part = Part(field.part, field.part, field, folded=False, opened=False, says="", text=text, receipt="")
    return SlipField(field, part, datetime.fromisoformat(field.instant) if field.instant else None, ())


def _paged(
    proposal: Proposal,
    group: str,
    keys: tuple[str, ...],
    whole: str,
    reader: Reader,
    kept: Mapping[str, str],
) -> Part:
    """The pages of one folded thing: which stands open, which were shown before, which comes next."""
    open_now = [key for key in keys if key in reader.opened]
    current = reader.asked if reader.asked in open_now else next(iter(open_now), "")
    shown = {key for key in keys if key in kept or key == current}
    missing = [key for key in keys if key not in shown]
    at = keys.index(current or (missing[0] if missing else keys[0]))
    several = len(keys) > 1
    return Part(
        key=keys[at],
        group=group,
        field=None,
        folded=not current,
        opened=bool(current),
        says=f"page {at + 1:,} of {len(keys):,} ({whole} in all)" if several else f"all of it: {whole}",
        text="",
        receipt=receipt_for(proposal, current, reader) if current else "",
        kept=tuple(kept[key] for key in keys if key in kept and key != current),
        page=at + 1,
        pages=len(keys),
        missing=len(missing),
        next=next((key for key in (*keys[at + 1 :], *keys[:at]) if key in missing), "")
        if current
        else keys[at],
        before=keys[at - 1] if current and at else "",
    )


def receipt_for(proposal: Proposal, part: str, reader: Reader) -> str:
    """The receipt of a part whose text stands in this response. A reader who is not shown all gets none."""
    if not reader.sees_personal:
        return ""
    return receipts.issue(
        user_id=reader.user_id, proposal_id=proposal.pk, digest=proposal.digest,
        view_digest=proposal.view_digest, part=part, at=reader.now,
    )  # fmt: skip
