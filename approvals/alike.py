"""What is *alike*, for the queue that puts it together and for the list in which it is decided.

Proposals are alike when the same is asked of the same people by the same rule, and their pages show the same things,
which differ in amounts, names and texts only (`shape_of`). That is worked out once, when a proposal is made.

What is alike may be decided in one list where it is of low risk and small enough to be shown there whole: the list has
of each proposal the whole stored view document, only in other places, once for all what is the same in all of them and
in each row what differs. A proposal whose document does not fit in a row is not offered.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from approvals.models import Proposal
from approvals.viewmodels import MAIN, ViewDocument, ViewField
from common.digests import bulk_list_digest, tenant_hmac
from common.fields import EMPTY_LIST_TEXT, NONE_TEXT, BooleanType, ChoiceType, CurrencyType, MoneyType
from common.strictjson import canonicalize

LOW_RISK: Final = 1
MOST: Final = 50
"""So many proposals stand in one list."""
LONGEST: Final = 300
"""Characters of one value in a row."""
MOST_LINES: Final = 40


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that a view document shows: of which section, what it is called, and its text."""

    section: str
    label: str
    text: str
    data_class: str = "business"
    sub: tuple[str, ...] = ()
    type: str = ""
    fixed: str = ""
    """What of its value is the same in all that is alike."""

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What stands in the same place of two documents that are alike."""
        return (self.section, self.label, self.type, self.fixed)


def lines_of(view: ViewDocument) -> tuple[Line, ...]:
    """Everything of the document that a person is shown beside its sentence, in its order."""
    return tuple(_lines(view))


def _lines(view: ViewDocument) -> Iterator[Line]:
    for field in view.fields:
        fixed = _fixed(field)
        yield Line("field", field.label, field.text or "", field.data_class, field.sub, field.type, fixed)
    for change in view.changes:
        text = f"{change.record}: {change.before or 'nothing'} → {change.after}"
        yield Line("change", change.field, text, change.data_class)
    for row in view.bound:
        yield Line("bound", row.label, row.text, row.data_class)
    for row in view.unbound:
        yield Line("unbound", row.label, row.text, row.data_class)
    for number, piece in enumerate(view.evidence, start=1):
        said = "given by the proposer" if piece.asserted else piece.source
        yield Line(
            "evidence", f"Evidence {number}", f"{piece.title}, {said}, {piece.captured_at}, {piece.digest}"
        )


def fits(view: ViewDocument) -> bool:
    """Whether the whole document can stand in a row: nothing odd, nothing folded, nothing long."""
    lines = lines_of(view)
    plain = not view.warnings and not view.uninspectable and view.parts == (MAIN,)
    short = len(lines) <= MOST_LINES and len(view.consequence) <= 2 * LONGEST
    return plain and short and all(_is_short(line) for line in lines)


def _is_short(line: Line) -> bool:
    return all(len(text) <= LONGEST and "\n" not in text for text in (line.text, *line.sub))


def shape_of(proposal: Proposal, view: ViewDocument) -> str:
    """Equal for proposals that a person may look at as one kind; says nothing of their contents to who has no key.

    It is what their page asks and shows: operation, rule, risk, people and warnings, and each line of the document by
    its name, not by its value. What is chosen from a few words, and a currency, count by their value.
    """
    asked = {
        "workflow": proposal.workflow, "operation": proposal.operation, "version": proposal.operation_version,
        "mode": str(proposal.mode), "rule": proposal.policy.get("rule"), "of": proposal.policy.get("version"),
        "group": str(proposal.group_id or ""), "needed": proposal.needed, "risk": proposal.risk,
        "newer": proposal.supersedes_id is not None,
        "warnings": [proposal.warning_count, *view.to_acknowledge],
    }  # fmt: skip
    shows = [list(line.place) for line in lines_of(view)]
    return tenant_hmac(proposal.tenant_id, "shape", canonicalize({"asked": asked, "shows": shows}))


_CHOSEN: Final = frozenset({BooleanType.name, ChoiceType.name, CurrencyType.name})


def _fixed(field: ViewField) -> str:
    text = field.text or ""
    if text in (NONE_TEXT, EMPTY_LIST_TEXT) or field.type in _CHOSEN:
        return text
    if text and field.type == MoneyType.name and field.covers:
        return MoneyType().parse_both(text)[1]
    return ""


def same_in_all(views: Iterable[ViewDocument]) -> tuple[bool, ...]:
    """For each place of documents of one shape, whether the same stands there in all; in one alone nowhere."""
    table = [lines_of(view) for view in views]
    if len(table) < 2:
        return tuple(False for _ in (table[0] if table else ()))
    return tuple(len(set(column)) == 1 for column in zip(*table, strict=True))


@dataclass(frozen=True, slots=True)
class Listed:
    """One proposal as a list showed it: on which bytes, and the proof that they were shown."""

    proposal_id: str
    digest: str
    view_digest: str
    receipt: str

    @property
    def text(self) -> str:
        """For a hidden field."""
        return f"{self.proposal_id} {self.digest} {self.view_digest} {self.receipt}"


def listed_in(texts: Iterable[str]) -> tuple[Listed, ...]:
    """What a form hands back; what is no such text is left out, and then the list's digest differs."""
    parts = (text.split(" ") for text in texts)
    return tuple(Listed(*four) for four in parts if len(four) == 4)


def digest_of(items: Iterable[Listed]) -> str:
    """The digest of a list: of which proposals, on which bytes, in which order."""
    return bulk_list_digest([[item.proposal_id, item.digest, item.view_digest] for item in items])
