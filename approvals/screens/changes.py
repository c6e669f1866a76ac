"""Before and after: what an action changes in records, and what a new version changes in fields."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from approvals.models import Proposal
from approvals.paging import host_of
from approvals.refusals import Uninspectable
from approvals.shown import view_of
from approvals.viewmodels import ViewDocument, ViewField
from approvals.viewrows import text_or_word
from common.content_errors import ContentErased
from common.disclosure import Recipient, disclosed, hides

UNKNOWN_AFTER: Final = frozenset({"", "unknown"})
_WORDS: Final = re.compile(r"↵\n|[·⇥]+|⟦[^⟧]*⟧|\s+|\w+|.", re.DOTALL)
_MOST_WORDS: Final = 4_000
_MOST_LINES: Final = 5_000
_SHOWN_LINES: Final = 60
_LONG_LINE: Final = 600
_MOST_ITEMS: Final = 12
_ENDS: Final = 80
NOT_THERE: Final = "not there"
GONE: Final = "gone"
ON_THE_SLIP: Final = "as on the slip"
_OUR_WORDS: Final = frozenset({NOT_THERE, GONE, ON_THE_SLIP})

Runs = tuple[tuple[str, bool], ...]
"""Text in runs of (text, changed)."""


@dataclass(frozen=True, slots=True)
class Change:
    """One field or one line of it, before and after. ``known`` is false where nobody can say what will stand there.

    The texts of the runs joined are ``before`` and ``after``, less what is the same in the middle of long lines.
    """

    record: str
    field: str
    before: str
    after: str
    known: bool = True
    marked: bool = False
    was: Runs = ()
    becomes: Runs = ()


def affected_rows(view: ViewDocument, to: Recipient) -> tuple[Change, ...]:
    """What the operation's code expects to change, as stored with the view."""
    return tuple(
        Change(
            record=row.record, field=row.field,
            before=disclosed(row.before, row.data_class, to), after=disclosed(row.after, row.data_class, to),
            known=row.after not in UNKNOWN_AFTER,
        )
        for row in view.changes
    )  # fmt: skip


def difference_rows(proposal: Proposal, view: ViewDocument, *, to: Recipient) -> tuple[Change, ...]:
    """What differs from the version that this one replaces: single values, then lists, then texts of many lines.

    Of texts the words that differ, of long ones line by line; of lists the values that are new or gone.
    """
    if proposal.supersedes is None:
        return ()
    try:
        earlier = view_of(proposal.supersedes)
    except (ContentErased, Uninspectable):
        return (_marked("All fields", "", "cannot be read any more", ON_THE_SLIP),)
    old, new = _singles(earlier), _singles(view)
    blocks = [
        list(_field_rows(old.get(at), new.get(at), to))
        for at in dict.fromkeys([*new, *old])
        if _text_of(old.get(at)) != _text_of(new.get(at))
    ]
    short = [row for rows in blocks if len(rows) == 1 for row in rows]
    long = [row for rows in blocks if len(rows) > 1 for row in rows]
    return (*short, *_list_rows(earlier, view, to), *long)


def difference_says(rows: Sequence[Change]) -> str:
    """Which fields differ, by name: an account among three hundred lines of a text is not to be looked for."""
    names = list(dict.fromkeys(row.record for row in rows))
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
    return f"{listed} {'differs' if len(names) == 1 else 'differ'}; fields that are not named are the same"


def _text_of(field: ViewField | None) -> str | None:
    return field.text if field else None


def _in_list(field: ViewField) -> bool:
    """Whether it is a value of a list of single values: compared by what is in it, not by its place."""
    return isinstance(field.path[-1], int)


def _singles(view: ViewDocument) -> dict[str, ViewField]:
    return {field.pointer: field for field in view.fields if not _in_list(field)}


def _field_rows(old: ViewField | None, new: ViewField | None, to: Recipient) -> Iterator[Change]:
    """One field of the difference; a long text in the lines that differ."""
    here = new or old
    assert here is not None
    before, after = _told(old, to), _told(new, to)
    if old is None or new is None or hides(here.data_class, to):
        yield _marked(here.label, "", _shortened(before), _shortened(after))
    elif max(old.lines, new.lines) > 1 or max(len(before), len(after)) > _LONG_LINE:
        yield from _line_rows(here.label, before, after)
    else:
        yield _by_words(here.label, "", before, after)


def _told(field: ViewField | None, to: Recipient) -> str:
    return NOT_THERE if field is None else disclosed(text_or_word(field), field.data_class, to)


def _shortened(text: str) -> str:
    """A whole text that is new or gone is read on the slip; here stands how large it is."""
    return text if len(text) <= _LONG_LINE else f"{text.count(chr(10)) + 1:,} lines, {len(text):,} characters"


def _line_rows(label: str, before: str, after: str) -> Iterator[Change]:
    """The lines that differ, each pair by its words; of many the first ones, and how many more there are."""
    old, new = before.split("\n"), after.split("\n")
    if len(old) + len(new) > _MOST_LINES:
        yield _marked(label, "too long to compare here", _shortened(before), _shortened(after))
        return
    told = 0
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for at in range(max(j - i, m - k)):
            told += 1
            if told <= _SHOWN_LINES:
                yield _line(label, old[i:j], new[k:m], i, k, at)
    if told > _SHOWN_LINES:
        yield _unmarked(label, f"{told - _SHOWN_LINES:,} more lines differ", ON_THE_SLIP)


def _line(label: str, old: Sequence[str], new: Sequence[str], i: int, k: int, at: int) -> Change:
    """One line of the difference. ``i`` and ``k``: where the two blocks begin; ``at``: the line in them."""
    there, here = at < len(old), at < len(new)
    place = f"line {k + at + 1:,}" if here else f"line {i + at + 1:,} before"
    if there and here:
        return _by_words(label, place, old[at], new[at])
    return _marked(
        label, place, _shortened(old[at]) if there else NOT_THERE, _shortened(new[at]) if here else GONE
    )


def _marked(record: str, field: str, before: str, after: str) -> Change:
    was, becomes = ((text, text not in _OUR_WORDS) for text in (before, after))
    return Change(record, field, before, after, marked=True, was=(was,), becomes=(becomes,))


def _unmarked(record: str, before: str, after: str) -> Change:
    """A row of ours about the field as a whole."""
    return Change(record, "", before, after, marked=True, was=((before, False),), becomes=((after, False),))


def _by_words(record: str, field: str, before: str, after: str) -> Change:
    """Only the words that differ are marked; a sign that stands for a hidden character counts as a word."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if len(old) + len(new) > _MOST_WORDS:
        return _marked(record, field, _shortened(before), _shortened(after))
    was: list[tuple[str, bool]] = []
    becomes: list[tuple[str, bool]] = []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        differs = tag != "equal"
        was += [(_around("".join(old[i:j]), differs), differs)] if j > i else []
        becomes += [(_around("".join(new[k:m]), differs), differs)] if m > k else []
    return Change(record, field, before, after, marked=True, was=tuple(was), becomes=tuple(becomes))


def _around(text: str, differs: bool) -> str:
    """What is the same in a long line is left out, but for its ends: the difference is what must not be missed."""
    if differs or len(text) <= 4 * _ENDS:
        return text
    return f"{text[:_ENDS]}⟦{len(text) - 2 * _ENDS:,} characters that are the same⟧{text[-_ENDS:]}"


def _list_rows(earlier: ViewDocument, view: ViewDocument, to: Recipient) -> Iterator[Change]:
    """For each list of single values, what was added and what was taken away, wherever it stands; then the order."""
    old, new = _lists(earlier.fields), _lists(view.fields)
    for at in dict.fromkeys([*new, *old]):
        before, after = old.get(at, []), new.get(at, [])
        if [field.text for field in before] == [field.text for field in after]:
            continue
        label = re.sub(r" [0-9,]+ of [0-9,]+$", "", (after or before)[0].label)
        gone, added = _missing(before, after), _missing(after, before)
        for field in _strange_first(added)[:_MOST_ITEMS]:
            yield _marked(label, "added", NOT_THERE, _told(field, to))
        for field in _strange_first(gone)[:_MOST_ITEMS]:
            yield _marked(label, "taken away", _told(field, to), GONE)
        if max(len(added), len(gone)) > _MOST_ITEMS:
            yield _unmarked(label, f"{len(gone):,} taken away in all", f"{len(added):,} added in all")
        if not gone and not added:
            yield _unmarked(label, "the same values in another order", ON_THE_SLIP)


def _strange_first(fields: Sequence[ViewField]) -> list[ViewField]:
    """Those whose host is named least come first: one stranger among a thousand is the one to see."""
    named = Counter(host_of(field) for field in fields)
    return sorted(fields, key=lambda field: named[host_of(field)])


def _lists(fields: Iterable[ViewField]) -> dict[tuple[str | int, ...], list[ViewField]]:
    found: dict[tuple[str | int, ...], list[ViewField]] = {}
    for field in fields:
        if _in_list(field):
            found.setdefault(field.path[:-1], []).append(field)
    return found


def _missing(of: Sequence[ViewField], beside: Sequence[ViewField]) -> list[ViewField]:
    """The values of one list that the other has not, or not as often."""
    left: dict[str | None, int] = {}
    for field in beside:
        left[field.text] = left.get(field.text, 0) + 1
    missing = []
    for field in of:
        if left.get(field.text, 0):
            left[field.text] -= 1
        else:
            missing.append(field)
    return missing
