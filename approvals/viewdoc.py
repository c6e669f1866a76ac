"""The view document: exactly what a reviewer is shown, rendered once and stored with its proposal.

Every material argument is a row of plain, zone-free text that can be read back (`parse_back`); a document
that does not give the bound arguments again is marked uninspectable. Rows come in parts: short ones are in
`main`; a long value is a part of its own, and its text is not in the page until the reviewer opens it.
Pure: no database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from approvals.viewmodels import (
    MAIN,
    ViewChange,
    ViewDocument,
    ViewEvidence,
    ViewField,
    ViewRow,
    ViewWarning,
)
from approvals.viewrows import material_rows, volatile_rows
from common.display import visible
from common.fields import Arguments
from common.fields.parsers import parse_shown
from common.strictjson import JsonValue, canonicalize

__all__ = [
    "MAIN",
    "ViewChange",
    "ViewDocument",
    "ViewEvidence",
    "ViewField",
    "ViewRow",
    "ViewWarning",
    "build_view",
    "parse_back",
]

ASSERTED = "Asserted by the proposer, not checked"
_CANNOT_SHOW = ViewWarning(
    code="uninspectable",
    label="The whole proposal",
    sentence="Something that would be bound cannot be shown faithfully, so this cannot be approved.",
    acknowledge=False,
)


def build_view(
    *,
    operation: str,
    operation_version: int,
    contract_digest: str,
    headline: str,
    consequence: str,
    schema: type[Arguments],
    arguments: Mapping[str, Any],
    volatile: Mapping[str, Any] | None = None,
    bound: Sequence[tuple[str, str]] = (),
    asserted: Sequence[str] = (),
    changes: Sequence[ViewChange] = (),
    evidence: Sequence[ViewEvidence] = (),
    warnings: Sequence[ViewWarning] = (),
    effect_unknown: str = "",
) -> ViewDocument:
    """Render the view of one action from its normalized material `arguments`.

    `asserted` is what the proposer says and nobody can check; it is shown beside what is not signed.
    Texts from outside need no preparation: whatever hides or deceives in them is made visible here.
    """
    material = material_rows(schema, arguments)
    document = ViewDocument(
        operation=operation,
        operation_version=operation_version,
        contract_digest=contract_digest,
        headline=visible(headline),
        consequence=visible(consequence),
        fields=material.fields,
        bound=tuple(ViewRow(label=visible(label), text=visible(text)) for label, text in bound),
        unbound=(*volatile_rows(schema, arguments, volatile or {}), *_asserted_rows(asserted)),
        changes=tuple(_shown_change(change) for change in changes),
        evidence=tuple(_shown_evidence(piece) for piece in evidence),
        warnings=(*material.warnings, *(_shown_warning(w) for w in warnings)),
        lists=material.lists,
        effect_unknown=visible(effect_unknown),
    )
    return document if _reads_back(document, arguments) else _uninspectable(document)


def _uninspectable(document: ViewDocument) -> ViewDocument:
    return document.model_copy(update={"uninspectable": True, "warnings": (_CANNOT_SHOW, *document.warnings)})


def _asserted_rows(asserted: Sequence[str]) -> list[ViewRow]:
    return [ViewRow(label=ASSERTED, text=visible(text)) for text in asserted]


def _shown_change(change: ViewChange) -> ViewChange:
    return ViewChange(**{name: visible(text) for name, text in change.model_dump().items()})


def _shown_evidence(piece: ViewEvidence) -> ViewEvidence:
    texts = ("kind", "title", "source", "captured_at", "digest")
    outside = {name: visible(getattr(piece, name)) for name in texts}
    return piece.model_copy(update=outside)


def _shown_warning(warning: ViewWarning) -> ViewWarning:
    return warning.model_copy(update={"label": visible(warning.label), "sentence": visible(warning.sentence)})


def _reads_back(document: ViewDocument, arguments: Mapping[str, Any]) -> bool:
    try:
        return canonicalize(parse_back(document)) == canonicalize(dict(arguments))
    except (ValueError, KeyError, IndexError):
        return False


def parse_back(document: ViewDocument) -> dict[str, JsonValue]:
    """The material arguments that the shown texts name; ValueError where a text names none."""
    found: dict[str, JsonValue] = {}
    for field in document.fields:
        if field.text is None:
            raise ValueError(f"{field.pointer} is not shown.")
        value, covered = parse_shown(field.type, field.text, field.covers)
        _put(found, field.path, value)
        for name, beside in covered.items():
            _put(found, (*_owner(field.path), name), beside)
    return found


def _owner(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The path of the object that a value belongs to; a list's items belong to the object with the list."""
    names = [index for index, step in enumerate(path) if isinstance(step, str)]
    return path[: names[-1]]


def _put(tree: Any, path: tuple[str | int, ...], value: JsonValue) -> None:
    """Set a value in nested objects and lists, making what is missing; the items of a list come in order.

    ValueError where one text contradicts another, such as two amounts of different currencies.
    """
    for step, following in pairwise(path):
        tree = _child(tree, step, [] if isinstance(following, int) else {})
    if _child(tree, path[-1], value) != value:
        raise ValueError("Two shown texts contradict each other.")


def _child(tree: Any, step: str | int, new: Any) -> Any:
    """The member or item at a step, made of `new` where there is none yet."""
    if isinstance(step, str):
        return tree.setdefault(step, new)
    if step == len(tree):
        tree.append(new)
    return tree[step]
