"""In which runs a word stands: for whoever has to erase what is kept about one person.

Contents are sealed, so the database cannot be asked: each is opened, newest first, and looked through until the time is
over. What was found is named by its run and the kind of place, never shown.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from common.content_errors import UNREAD_TEXTS, ContentErased
from common.content_keys import KeyUnknown, SealBroken
from common.deadline import Deadline
from common.sealed import SealedRow, prefetch_keys, sealed_models, sealed_names

LEAST: Final = 3
"""Characters of a word: shorter ones stand everywhere."""
_BATCH: Final = 200


@dataclass(slots=True)
class Mentions:
    """``places``: by run (or incident) the kinds of places. ``whole``: whether everything was looked through."""

    places: dict[UUID, set[str]] = field(default_factory=dict)
    whole: bool = True
    unreadable: int = 0
    """Values whose key is not here, or that are damaged: nobody can say what is in them."""


def mentions(tenant_id: UUID, word: str, until: Deadline) -> Mentions:
    """Everything sealed of the organisation in which the word stands, in whatever case."""
    found, forms = Mentions(), _forms(word)
    for model in sealed_models():
        for rows in _batches(model, tenant_id):
            for row in rows:
                _look(row, forms, found)
            if until.over():
                found.whole = False
                return found
    return found


def _forms(word: str) -> tuple[str, ...]:
    """As it is, and as it stands in JSON."""
    plain = word.strip().casefold()
    return tuple({plain, json.dumps(plain, ensure_ascii=False)[1:-1], json.dumps(plain)[1:-1]})


def _batches(model: type[SealedRow], tenant_id: UUID) -> Iterator[Sequence[Any]]:
    *way, _ = model.content_run.split(".")
    manager: Any = model._base_manager  # noqa: SLF001 - all rows
    rows = manager.filter(tenant_id=tenant_id).order_by("-pk")
    if way:
        rows = rows.select_related("__".join(way))
    last: UUID | None = None
    while True:
        some = list((rows if last is None else rows.filter(pk__lt=last))[:_BATCH])
        if not some:
            return
        prefetch_keys(some)
        yield some
        last = some[-1].pk


def _look(row: SealedRow, forms: Sequence[str], found: Mentions) -> None:
    for name in sealed_names(type(row)):
        try:
            text = _text(getattr(row, name)).casefold()
        except ContentErased:
            continue
        except (SealBroken, KeyUnknown):
            found.unreadable += 1
            continue
        if text not in UNREAD_TEXTS and any(form in text for form in forms):
            found.places.setdefault(_run_of(row), set()).add(str(row._meta.verbose_name))


def _text(value: Any) -> str:
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).decode(errors="replace")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value else ""


def _run_of(row: Any) -> UUID:
    for step in type(row).content_run.split("."):
        row = getattr(row, step)
    found: UUID = row
    return found
