"""The runbook of a workflow: a text file that its author keeps beside its code, shown as plain text and never as HTML.

``runbooks/NAME.md`` in the folder of the workflow's module. Of Markdown it may have headings, paragraphs, lists and
indented code; nothing else means anything, so that no link and no picture comes out of it. A heading of the third level
that names causes (``### command_unknown, command_key_reused``) is the step for packets with these causes.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from common.display import visible
from repair.tables import cause_words
from workflows import registry

FOLDER: Final = "runbooks"
_HERE: Final = Path(__file__).resolve().parent.parent / FOLDER
_HEADING: Final = re.compile(r"(#{1,3}) +(.+)")
_ITEM: Final = re.compile(r"(?:[-*]|\d+\.) +(.+)")
LARGEST: Final = 100_000
"""Bytes of a runbook that are read."""


@dataclass(frozen=True, slots=True)
class Block:
    """``kind``: ``text``, ``item`` or ``code``."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands under it, up to the next one."""

    level: int
    title: str
    blocks: tuple[Block, ...]

    @property
    def causes(self) -> tuple[str, ...]:
        """The causes that the heading names; none for an ordinary one."""
        return tuple(word.strip() for word in self.title.split(",")) if self.level == 3 else ()

    @property
    def words(self) -> str:
        """The heading as people read it: causes in words, with their codes."""
        return "; ".join(f"{cause_words(cause)} ({cause})" for cause in self.causes) or self.title

    @property
    def id(self) -> str:
        return "s-" + re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True, slots=True)
class RunbookStep:
    """What to do about one cause. ``own``: written for this workflow, and not for every one."""

    title: str
    lines: tuple[str, ...]
    own: bool
    id: str = ""


def runbook_of(workflow: str) -> tuple[Section, ...]:
    """The sections of a workflow's runbook; none where its author wrote none, or it is no longer installed."""
    flow = registry.installed(workflow)
    if flow is None:
        return ()
    return _read(Path(inspect.getfile(flow)).resolve().parent / FOLDER / f"{flow.name}.md")


def step_for(workflow: str, cause: str, code: str = "") -> RunbookStep | None:
    """The workflow's own step for a cause, else what holds for every workflow. Of an order that was given up, or is in
    doubt, the code says more than the cause.
    """
    closer = [f"command_{code}", code] if code and cause in ("command_dead", "command_unknown") else []
    for wanted in (*closer, cause):
        for sections, own in ((runbook_of(workflow), True), (_read(_HERE / "any.md"), False)):
            found = next((section for section in sections if wanted in section.causes), None)
            if found is not None:
                lines = tuple(block.text for block in found.blocks)
                return RunbookStep(found.title, lines, own, found.id)
    return None


@lru_cache(maxsize=64)
def _read(path: Path) -> tuple[Section, ...]:
    """A file of the installed code: it changes with a release only."""
    try:
        text = path.read_bytes()[:LARGEST].decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(parsed(text))


def parsed(text: str) -> Iterator[Section]:
    """The sections of a text; what stands before the first heading belongs to one without a title."""
    level, title, lines = 1, "", []  # type: tuple[int, str, list[str]]
    for line in text.splitlines():
        found = _HEADING.fullmatch(line.rstrip())
        if found is None:
            lines.append(line)
            continue
        if title or any(map(str.strip, lines)):
            yield Section(level, title, tuple(_blocks(lines)))
        level, title, lines = len(found[1]), visible(found[2]), []
    if title or lines:
        yield Section(level, title, tuple(_blocks(lines)))


def _blocks(lines: list[str]) -> Iterator[Block]:
    """Paragraphs and items; a line that goes on belongs to the one before it."""
    kind, words = "", []  # type: tuple[str, list[str]]
    for line in [*lines, ""]:
        begins, text = _kind(line, kind)
        if words and begins:
            yield Block(kind, visible(" ".join(words).replace("`", "")))
            kind, words = "", []
        if text:
            kind = begins or kind or "text"
            words.append(text)


def _kind(line: str, before: str) -> tuple[str, str]:
    """(which kind of block begins here, or nothing where the line goes on; its text)."""
    if not line.strip():
        return "text", ""
    item = _ITEM.fullmatch(line.strip())
    if item is not None and not line.startswith("    "):
        return "item", item[1]
    if line.startswith("    ") and before != "item":
        return "code", line.strip()
    return "", line.strip()
