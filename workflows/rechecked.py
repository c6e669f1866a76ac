"""Do runs, commands and tries still say what was recorded of them? For the daily check (`audit.replay`)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django.db import connection

from audit.bound import ROW, row_digest, utc_text
from audit.models import Event
from audit.replay import batch_by_batch
from workflows.bound import COMMAND, LATER, RUN, of_command, of_run
from workflows.models import Attempt, Command, Run

AT_ONCE: Final = 500
ENDS: Final = ("effect", "settled_by", "provider_reference", "tries")
"""What each event about a command says of its row."""


def differences(tenant_id: UUID) -> Iterator[str]:
    """A sentence for each row that is not what it was, in the order of ids."""
    yield from batch_by_batch(tenant_id, _differ_runs)
    yield from batch_by_batch(tenant_id, _differ)


def _differ_runs(tenant_id: UUID, after: UUID) -> tuple[UUID | None, list[str]]:
    """Of the next runs: who asked for them, for whom, of what, and who may not decide about it."""
    found = Run.objects.filter(tenant_id=tenant_id, pk__gt=after).order_by("pk")
    rows = list(found.values("id", *RUN, *LATER)[:AT_ONCE])
    made = _made(tenant_id, [row["id"] for row in rows], "run.queued")
    says = [
        f"The run {row['id']} is not as it was asked for."
        for row in rows if made.get(row["id"], "") not in ("", row_digest(of_run(row)))
    ]  # fmt: skip
    return (rows[-1]["id"] if rows else None), says


def _differ(tenant_id: UUID, after: UUID) -> tuple[UUID | None, list[str]]:
    """Of the next commands: the last of them, None where there are no more; and what differs."""
    rows = _batch(tenant_id, after)
    ids = [row["id"] for row in rows]
    made, last = _made(tenant_id, ids, "command.ready"), _last(tenant_id, ids)
    sent, tried = _sent(tenant_id, ids), _tried(ids)
    found = []
    for row in rows:
        ident = row["id"]
        if made.get(ident, "") not in ("", row_digest(of_command(row))):
            found.append(f"The command {ident} is not as it was given.")
        if ident in last and last[ident] != [row[name] for name in ENDS]:
            found.append(f"The command {ident} ended otherwise than the history says.")
        if not _fit(sent.get(ident, Counter()), tried.get(ident, Counter())):
            found.append(f"The requests of the command {ident} are not those that the history tells of.")
    return (ids[-1] if ids else None), found


def _batch(tenant_id: UUID, after: UUID) -> list[dict[str, Any]]:
    found = Command.objects.filter(tenant_id=tenant_id, pk__gt=after).order_by("pk")
    return list(found.values("id", *COMMAND, *ENDS)[:AT_ONCE])


def _made(tenant_id: UUID, ids: Sequence[UUID], kind: str) -> dict[UUID, str]:
    """What the first event of each knows of it."""
    found = Event.objects.filter(tenant_id=tenant_id, subject_id__in=ids, kind=kind, from_state="")
    return {subject: body.get(ROW, "") for subject, body in found.values_list("subject_id", "body")}


_LAST: Final = """
    SELECT c.id, e.body ->> 'effect', e.body ->> 'settled_by', e.body ->> 'provider_reference',
        (e.body ->> 'tries')::integer
    FROM unnest(%s::uuid[]) AS c(id) JOIN LATERAL (
        SELECT v.body FROM audit_event v LEFT JOIN audit_seal s ON s.event_id = v.id
        WHERE v.tenant_id = %s AND v.subject_id = c.id AND v.subject_type = 'command' AND v.to_state <> ''
        ORDER BY s.seq DESC NULLS FIRST, v.written DESC NULLS LAST, v.at DESC, v.id DESC LIMIT 1) e
        ON e.body ->> 'effect' IS NOT NULL
"""


def _last(tenant_id: UUID, ids: Sequence[UUID]) -> dict[UUID, list[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_LAST, [list(ids), tenant_id])
        return {ident: list(ends) for ident, *ends in cursor.fetchall()}


def _sent(tenant_id: UUID, ids: Sequence[UUID]) -> dict[UUID, Counter[str]]:
    """How often each was sent, by the time that is recorded; of before that was recorded, under no time."""
    found: dict[UUID, Counter[str]] = {}
    events = Event.objects.filter(tenant_id=tenant_id, subject_id__in=ids, kind="command.sent")
    for subject, body in events.values_list("subject_id", "body"):
        found.setdefault(subject, Counter())[body.get("sent_at", "")] += 1
    return found


def _tried(ids: Sequence[UUID]) -> dict[UUID, Counter[str]]:
    found: dict[UUID, Counter[str]] = {}
    rows = Attempt.objects.filter(command_id__in=ids, sent_at__isnull=False)
    for command, at in rows.values_list("command_id", "sent_at"):
        if at is not None:
            found.setdefault(command, Counter())[utc_text(at)] += 1
    return found


def _fit(sent: Counter[str], tried: Counter[str]) -> bool:
    """As many as recorded, and at the times that are recorded."""
    timed = Counter({at: number for at, number in sent.items() if at})
    return sent.total() == tried.total() and not timed - tried
