"""What a view document consists of. See approvals/viewdoc.py for how one is made and read back."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from common import digests
from common.display import Piece, pieces
from common.strictjson import Limits, canonicalize, parse, pointer

MAIN: Final = "main"
VERSION: Final = 2
NEW_IN_2: Final[dict[str, Any]] = {
    "fields": {"__all__": {"cuts"}},
    "evidence": {"__all__": {"fresh_until", "size"}},
    "lists": True,
    "effect_unknown": True,
}
"""What documents of version 1 do not have: they are stored, and shown, without it."""
PREVIEW_LINES: Final = 3
PREVIEW_CHARACTERS: Final = 240
_CUT_SIGN: Final = re.compile(r"⟦[^⟧]*$")
# A view is larger than its arguments: code points take eight characters, and labels stand beside every value.
_STORED: Final = Limits(max_bytes=16_000_000, max_nodes=400_000, max_string=1_000_000)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ViewField(_Part):
    """One material value.

    `path` says where it stands in the arguments; `covers` names arguments beside it that its text shows too
    (money shows its currency). `strong` is the half-open range of `text` to print bold. `instant` is for
    local times and distances, which the page adds as decoration.
    """

    path: tuple[str | int, ...]
    label: str
    type: str
    data_class: str
    text: str | None
    """The whole shown text; None where the type cannot be shown."""
    sub: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    strong: tuple[int, int] | None = None
    instant: str | None = None
    part: str = MAIN
    lines: int = 1
    characters: int = 0
    """Lines and characters of the value itself."""
    cuts: tuple[int, ...] = ()
    """Where the pages of a very long text end, in characters of `text`; empty where it is one page."""

    @property
    def id(self) -> str:
        """A name for links and HTML ids, such as `f-amount` and `f-items-0-sku`."""
        return "f-" + "-".join(str(step) for step in self.path)

    @property
    def pointer(self) -> str:
        """The JSON pointer of the value."""
        return pointer(self.path)

    @property
    def folded(self) -> bool:
        """Whether the text may stand only in a response that opens its part."""
        return self.part != MAIN

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that hold its text, each once: `main`, a part of its own, or one for each of its pages."""
        return tuple(part for part, _ in self.pages)

    @property
    def pages(self) -> tuple[tuple[str, str], ...]:
        """The parts of a folded field with their texts, which joined are `text`; one where it has no pages."""
        if not self.cuts:
            return ((self.part, self.text or ""),)
        starts = (0, *self.cuts[:-1])
        return tuple(
            (f"{self.part}.{number}", (self.text or "")[start:end])
            for number, (start, end) in enumerate(zip(starts, self.cuts, strict=True), start=1)
        )

    @property
    def preview(self) -> str:
        """The beginning of a folded text, for the page while its part is shut."""
        beginning = "\n".join((self.text or "").split("\n")[:PREVIEW_LINES])
        return _CUT_SIGN.sub("", beginning[:PREVIEW_CHARACTERS])

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The shown text cut for marking up; the texts of the pieces joined are `text`."""
        return pieces(self.text or "")

    @property
    def preview_pieces(self) -> tuple[Piece, ...]:
        """The same for `preview`."""
        return pieces(self.preview)

    @property
    def around_strong(self) -> tuple[str, str, str]:
        """The text before, in and after the range to print bold."""
        text = self.text or ""
        start, end = self.strong or (0, 0)
        return text[:start], text[start:end], text[end:]


class ViewList(_Part):
    """A long list, whose values stand in parts of their own: so many pages, each with a receipt of its own.

    `notes` sum up what a reader of single pages would not see: how many values, how many hosts, what is there twice.
    """

    path: tuple[str | int, ...]
    label: str
    count: int
    parts: tuple[str, ...]
    data_class: str
    notes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The name for links and HTML ids, as a field has one."""
        return "f-" + "-".join(str(step) for step in self.path)

    @property
    def pointer(self) -> str:
        """The JSON pointer of the list."""
        return pointer(self.path)


class ViewRow(_Part):
    """A label and a shown text: bound beside the arguments, or not part of what is signed."""

    label: str
    text: str
    data_class: str = "business"


class ViewChange(_Part):
    """A field of a record that the action is expected to change."""

    record: str
    field: str
    before: str
    after: str
    data_class: str = "business"


class ViewEvidence(_Part):
    """A piece of evidence, by its digest. `asserted`: the proposer says so, and nobody has fetched it."""

    kind: str
    title: str
    source: str
    captured_at: str
    digest: str
    asserted: bool = False
    fresh_until: str = ""
    """Until when it may be relied on; empty where nobody set a limit."""
    size: int = 0
    """Bytes of the content; 0 where it was not noted."""


class ViewWarning(_Part):
    """Something odd. A decision lists the `id` under `acknowledged` where `acknowledge` is true."""

    code: str
    label: str
    sentence: str
    acknowledge: bool
    pointer: str = ""
    """The JSON pointer of the field; empty where the warning is about the whole."""

    @property
    def id(self) -> str:
        """The code, and the field where there is one: `bidi_control:/message`."""
        return f"{self.code}:{self.pointer}" if self.pointer else self.code


class ViewDocument(_Part):
    """What the reviewer sees. Immutable; `to_bytes` is what is stored, and `digest` is taken over it."""

    v: int = VERSION
    operation: str
    operation_version: int
    contract_digest: str
    headline: str
    """The short form, for the queue and the decision bar, such as "Refund EUR 12.50"."""
    consequence: str
    """One plain sentence made by code: what happens on approval."""
    fields: tuple[ViewField, ...]
    bound: tuple[ViewRow, ...] = ()
    unbound: tuple[ViewRow, ...] = ()
    changes: tuple[ViewChange, ...] = ()
    evidence: tuple[ViewEvidence, ...] = ()
    warnings: tuple[ViewWarning, ...] = ()
    uninspectable: bool = False
    """True where something bound cannot be shown faithfully. Such a proposal must not be approved."""
    lists: tuple[ViewList, ...] = ()
    """The lists that are too long for the page; their fields name the parts."""
    effect_unknown: str = ""
    """Why nobody can say what will stand in the records afterwards; empty where `changes` says it."""

    def to_bytes(self) -> bytes:
        """The canonical bytes (RFC 8785). What equals its default is left out, so a default never changes."""
        if self.v == 1:
            return canonicalize(self.model_dump(mode="json", exclude=NEW_IN_2))
        return canonicalize({**self.model_dump(mode="json", exclude_defaults=True), "v": self.v})

    @classmethod
    def from_bytes(cls, stored: bytes) -> ViewDocument:
        """A stored document; JsonRefused or pydantic's ValidationError for anything else."""
        return cls.model_validate(parse(stored, _STORED))

    @property
    def digest(self) -> str:
        """The view digest, which a decision names beside the contract's."""
        return digests.view_digest(self.to_bytes())

    @property
    def parts(self) -> tuple[str, ...]:
        """The ids of all parts; a decision needs a receipt for each."""
        return tuple(dict.fromkeys([MAIN, *(part for field in self.fields for part in field.parts)]))

    @property
    def to_acknowledge(self) -> tuple[str, ...]:
        """The ids of the warnings that must be acknowledged before approving, each once."""
        return tuple(dict.fromkeys(warning.id for warning in self.warnings if warning.acknowledge))

    @property
    def consequence_runs(self) -> tuple[tuple[str, bool], ...]:
        """The consequence in runs of (text, strong): the values that stand in it are the strong ones."""
        values = sorted({f.text for f in self.fields if f.text and not f.folded}, key=len, reverse=True)
        pattern = "|".join(rf"(?<!\w){re.escape(value)}(?!\w)" for value in values)
        if not pattern:
            return ((self.consequence, False),)
        runs = re.split(f"({pattern})", self.consequence)
        return tuple((run, index % 2 == 1) for index, run in enumerate(runs) if run)

    def fields_of_part(self, part: str) -> tuple[ViewField, ...]:
        """The fields whose texts a folded part holds: one, or those of a page of a list; none for unknown parts."""
        return tuple(field for field in self.fields if field.folded and part in field.parts)

    def list_of_part(self, part: str) -> ViewList | None:
        """The long list that a part is a page of."""
        return next((long for long in self.lists if part in long.parts), None)
