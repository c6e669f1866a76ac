"""Taking along what a list shows, as CSV or JSON lines: made first, then written down, and only then given out."""

import hashlib
import json
import re
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase

from audit.actions import record
from audit.actors import Actor
from audit.models import Event
from audit.names import names_of
from common.errors import Refused
from common.rates import Rate, check_rate
from common.spreadsheets import csv_line

EXPORTED: Final = "history.exported"
MOST: Final = 50_000
"""Lines of one file."""
IN_MEMORY: Final = 1 << 20
"""Bytes of a file that is not put on the disk."""
LIMIT: Final = f"A file has {MOST:,} lines at most"
OFTEN: Final = Rate(per_minute=6, burst=10)
TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
_BATCH: Final = 500
_LONGEST_FILTER: Final = 200

Line = Mapping[str, Any]


class TooMany(Refused):
    """These filters fit more than one file holds. Ask for less: a shorter time, one person, one kind."""

    code = "too_many_lines"
    http_status = 422


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which list, as what, and by which filters it was narrowed, in words."""

    tenant_id: UUID
    what: str
    form: str
    filters: Sequence[tuple[str, str]]


def take_along(
    wanted: Wanted, columns: Sequence[str], lines: Generator[Line], *, by: Actor
) -> HttpResponseBase:
    """The lines as a file, with the event that says who took what. Raises TooMany and RateLimited.

    It is made in a file: what cannot be read is an error instead of half a list, and nobody's slow line holds a
    snapshot open.
    """
    check_rate(f"lists:{wanted.tenant_id}", OFTEN)
    file: Any = tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="placet-list-")  # noqa: SIM115 - closed when sent
    try:
        with closing(lines):
            count, digest = _write(file, wanted.form, columns, lines)
        _record(wanted, by=by, count=count, digest=digest)
        size = file.tell()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return _sent(file, size, wanted)


def _sent(file: Any, size: int, wanted: Wanted) -> HttpResponseBase:
    """As it is read, closed behind its last byte; a small one at once."""
    name, kind = f"{re.sub(r'[^a-z-]', '', wanted.what)}.{wanted.form}", TYPES[wanted.form]
    if size > IN_MEMORY:
        return FileResponse(file, as_attachment=True, filename=name, content_type=kind)
    with file:
        content = file.read()
    return HttpResponse(
        content, content_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def _write(file: IO[bytes], form: str, columns: Sequence[str], lines: Iterable[Line]) -> tuple[int, str]:
    count, digest = 0, hashlib.sha256()
    header = [csv_line(columns)] if form == "csv" else []
    made = (csv_line(line[name] for name in columns) if form == "csv" else _json_line(line) for line in lines)
    for count, part in enumerate(chain(header, made), start=1 - len(header)):
        if count > MOST:
            raise TooMany(most=MOST)
        digest.update(part)
        file.write(part)
    return count, digest.hexdigest()


def _json_line(line: Line) -> bytes:
    return json.dumps(dict(line), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


@transaction.atomic(durable=True)
def _record(wanted: Wanted, *, by: Actor, count: int, digest: str) -> None:
    filters = {name: value[:_LONGEST_FILTER] for name, value in wanted.filters}
    record(
        by=by, kind=EXPORTED, tenant_id=wanted.tenant_id, subject_type="history", subject_id=wanted.tenant_id,
        digest=digest, body={"list": wanted.what, "as": wanted.form, "count": count, "filters": filters},
    )  # fmt: skip


# -- events -------------------------------------------------------------------------------------------------------

EVENT_COLUMNS: Final = (
    "seq", "at", "kind", "performed_by", "name", "on_behalf_of", "via", "through", "owner", "subject_type",
    "subject_id", "run_id", "from_state", "to_state", "reason", "digest", "request_id", "id", "body",
)  # fmt: skip


def event_lines(found: QuerySet[Event], form: str) -> Generator[Line]:
    """What the history shows of each event, newest first. An event holds ids, states, codes and digests, no content.

    Read by one statement, so that no line is missing or there twice; one line more than fits shows that it is too many.
    """
    with transaction.atomic():
        rows = found[: MOST + 1].iterator(chunk_size=_BATCH)
        while some := list(islice(rows, _BATCH)):
            names = names_of({event.performed_by for event in some})
            for event in some:
                yield _event_line(event, names, form)


def _event_line(event: Event, names: Mapping[str, str], form: str) -> Line:
    plain = {name: getattr(event, name) for name in EVENT_COLUMNS if name not in ("name", "body")}
    body = event.body if form == "jsonl" else json.dumps(event.body, ensure_ascii=True, sort_keys=True)
    texts = {name: str(plain[name]) if plain[name] else None for name in ("subject_id", "run_id", "id")}
    return {
        **plain, **texts, "at": event.at.isoformat(), "name": names.get(event.performed_by, ""), "body": body,
    }  # fmt: skip
