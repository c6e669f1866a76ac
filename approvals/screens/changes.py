"""Before and after: what an action changes in records, and what a new version changes in fields."""

from dataclasses import dataclass
from typing import Final

from approvals.models import Proposal
from approvals.refusals import Uninspectable
from approvals.shown import view_of
from approvals.viewmodels import ViewDocument, ViewField
from approvals.viewrows import text_or_word

UNKNOWN_AFTER: Final = frozenset({"", "unknown"})
LONG: Final = 120


@dataclass(frozen=True, slots=True)
class Change:
    """One field, before and after. ``known`` is false where nobody can say what will stand there."""

    record: str
    field: str
    before: str
    after: str
    known: bool = True
    marked: bool = False


def affected_rows(view: ViewDocument) -> tuple[Change, ...]:
    """What the operation's code expects to change, as stored with the view."""
    return tuple(
        Change(row.record, row.field, row.before, row.after, known=row.after not in UNKNOWN_AFTER)
        for row in view.changes
    )


def difference_rows(proposal: Proposal, view: ViewDocument, *, hide_personal: bool) -> tuple[Change, ...]:
    """The material fields that differ from the version that this one replaces, in the slip's order."""
    if proposal.supersedes is None:
        return ()
    try:
        earlier = view_of(proposal.supersedes)
    except Uninspectable:
        return (Change("All fields", "", "cannot be read any more", "as on the slip", marked=True),)
    old = {field.pointer: field for field in earlier.fields}
    new = {field.pointer: field for field in view.fields}
    return tuple(
        changed_field(old.get(at), new.get(at), hide_personal)
        for at in dict.fromkeys([*new, *old])
        if text_of(old.get(at)) != text_of(new.get(at))
    )


def text_of(field: ViewField | None) -> str | None:
    return field.text if field else None


def changed_field(old: ViewField | None, new: ViewField | None, hide_personal: bool) -> Change:
    """One field of the difference; long texts are told by their size, since they are read on the slip."""
    label = (new or old).label  # type: ignore[union-attr]
    return Change(label, "", told(old, hide_personal), told(new, hide_personal), marked=True)


def told(field: ViewField | None, hide_personal: bool) -> str:
    if field is None:
        return "not there"
    if hide_personal and field.data_class == "personal":
        return "⟦personal, not shown to your role⟧"
    text = text_or_word(field)
    return text if len(text) <= LONG else f"{field.lines} lines, {field.characters:,} characters"
