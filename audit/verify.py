"""Does the chain hold? Recomputed from the rows alone, streaming, without trusting a stored hash.

Finds an event that was changed, deleted, put in or moved, a seal that was changed or deleted, a head that does
not fit, and a chain that is not the one in the newest stored checkpoint. It cannot find a rewriting of everything from
some place on, head and checkpoints included: that needs a checkpoint kept elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import Final
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction

from audit.chain import GENESIS, SELECT_CONTENT, Content, content_of, link_hash
from audit.models import Checkpoint, Seal
from audit.replay import first_difference, first_misfit
from audit.tree import Frontier

log = structlog.get_logger("placet.audit")
CHUNK: Final = 2000
UNSEALED_FOR: Final = timedelta(seconds=60)
"""How much older than the last sealing an unsealed event may be: the longest transaction, with a margin."""


class Cause(StrEnum):
    """Why an event is the first that does not hold."""

    CHANGED = "changed"
    MISSING = "missing"
    REORDERED = "reordered"
    SEAL_MISSING = "seal_missing"
    HEAD = "head"
    NOT_SEALED = "not_sealed"
    NOT_AS_SIGNED = "not_as_signed"
    ROW = "row"
    UNREADABLE = "unreadable"


MEANING: Final = {
    Cause.CHANGED: "The event, or its seal, is not what was sealed.",
    Cause.MISSING: "There is a seal and no event.",
    Cause.REORDERED: "The seal does not follow the one before it.",
    Cause.SEAL_MISSING: "A place in the chain is empty.",
    Cause.HEAD: "The stored end of the chain is not its last seal.",
    Cause.NOT_SEALED: "The event has no place in the chain, and is older than what was sealed since.",
    Cause.NOT_AS_SIGNED: "The chain up to here is not the one that was signed.",
    Cause.ROW: "A row is not what its events say.",
    Cause.UNREADABLE: "Something in it has a form that the product never writes.",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found for one tenant; ``seq`` and ``event_id`` name the first event that does not hold."""

    tenant_id: UUID
    sealed: int
    head: str
    cause: Cause | None = None
    seq: int | None = None
    event_id: UUID | None = None
    detail: str = ""
    """Which row it is, in a sentence; empty where the chain itself does not hold."""

    @property
    def holds(self) -> bool:
        return self.cause is None

    @property
    def meaning(self) -> str:
        meaning = MEANING[self.cause] if self.cause else "The chain holds."
        return f"{meaning} {self.detail}" if self.detail else meaning


def verify_all() -> Iterator[Verdict]:
    """The verdict on every tenant that has events or a chain, the installation's own included."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id FROM audit_head UNION SELECT tenant_id FROM audit_seal"
            " UNION SELECT tenant_id FROM audit_event ORDER BY 1"
        )
        tenants = [row[0] for row in cursor.fetchall()]
    for tenant_id in tenants:
        yield verify_whole(tenant_id)


def verify_whole(tenant_id: UUID) -> Verdict:
    """The chain, and whether the tables say what its events say.

    What was put in to make the check fail is itself a finding, and about this tenant alone: the others are checked on.
    """
    verdict = Verdict(tenant_id, 0, "")
    try:
        verdict = verify(tenant_id)
        return _with_rows(verdict) if verdict.holds else verdict
    except (OperationalError, InterfaceError):
        raise  # the database is away, or has no time: that says nothing of the history
    except NEVER_WRITTEN as error:
        log.exception("audit_check_failed", tenant=str(tenant_id))
        says = f"It cannot be read to its end ({type(error).__name__}); the log has the place."
        return replace(verdict, cause=Cause.UNREADABLE, detail=says)


NEVER_WRITTEN: Final = (
    DatabaseError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, RecursionError,
)  # fmt: skip
"""What reading raises where a value has another form than the product gives it."""


def _with_rows(verdict: Verdict) -> Verdict:
    misfit = first_misfit(verdict.tenant_id)
    says = misfit.says if misfit else first_difference(verdict.tenant_id)
    return replace(verdict, cause=Cause.ROW, detail=says) if says else verdict


def verify(tenant_id: UUID, *, last: int | None = None) -> Verdict:
    """Recompute one tenant's chain in one snapshot: all of it, or its ``last`` so many links for a quick look."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        signed = _Signed.newest(tenant_id) if last is None else _Signed()
        return _follow(tenant_id, *_start(tenant_id, last), signed)


def _start(tenant_id: UUID, last: int | None) -> tuple[int, str]:
    """The link to begin after: none, or the stored one that lies ``last`` places before the end."""
    if last is None:
        return 0, GENESIS
    seals = Seal.objects.filter(tenant_id=tenant_id).order_by("-seq")
    return seals.values_list("seq", "hash")[last : last + 1].first() or (0, GENESIS)


class _Signed:
    """The newest stored checkpoint, against which the links are counted; one of no events says nothing."""

    def __init__(self, size: int = 0, root: str = "") -> None:
        self.size, self.root, self.seen = size, root, Frontier()

    @classmethod
    def newest(cls, tenant_id: UUID) -> "_Signed":
        rows = Checkpoint.objects.filter(tenant_id=tenant_id).order_by("-recorded_at")
        return cls(*(rows.values_list("size", "root").first() or ()))

    def see(self, link_hash: str) -> None:
        if self.seen.size < self.size:
            self.seen.append(bytes.fromhex(link_hash))

    @property
    def fits(self) -> bool:
        return not self.size or (self.seen.size == self.size and self.seen.root().hex() == self.root)


def _follow(tenant_id: UUID, seq: int, previous: str, signed: _Signed) -> Verdict:
    for link in _links(tenant_id, seq):
        broken = _judge(tenant_id, seq, previous, link)
        if broken is not None:
            return broken
        seq, previous = link.seq, link.hash
        signed.see(link.hash)
    if not signed.fits:
        return Verdict(tenant_id, seq, previous, Cause.NOT_AS_SIGNED, signed.size)
    return _judge_end(tenant_id, seq, previous)


@dataclass(frozen=True, slots=True)
class _Link:
    """A seal as it is stored, and its event where there is one."""

    seq: int
    previous: str
    hash: str
    event_id: UUID
    event: Content | None

    def fits(self, seq: int, previous: str) -> bool:
        return self.event is not None and link_hash(seq, previous, self.event) == self.hash


def _judge(tenant_id: UUID, seq: int, previous: str, link: _Link) -> Verdict | None:
    """Compare one link with the one before it and with its event; None when it holds."""
    here = partial(Verdict, tenant_id, seq, previous, seq=seq + 1)
    if link.seq != seq + 1:
        return here(cause=Cause.SEAL_MISSING)
    if link.event is None:
        return here(cause=Cause.MISSING, event_id=link.event_id)
    if link.previous != previous:
        if link.fits(link.seq, link.previous):  # sound in itself: the one before it was changed with its seal
            return Verdict(tenant_id, seq - 1, previous, Cause.CHANGED, seq)
        return here(cause=Cause.REORDERED, event_id=link.event_id)
    if link.fits(link.seq, previous):
        return None
    cause = Cause.REORDERED if _belongs_here(tenant_id, previous, link) else Cause.CHANGED
    return here(cause=cause, event_id=link.event_id)


def _belongs_here(tenant_id: UUID, previous: str, link: _Link) -> bool:
    """Whether one of the next events is the one that was sealed at this place."""
    following = islice(_links(tenant_id, link.seq), CHUNK)
    return any(
        other.event is not None and link_hash(link.seq, previous, other.event) == link.hash
        for other in following
    )


def _judge_end(tenant_id: UUID, seq: int, last: str) -> Verdict:
    with connection.cursor() as cursor:
        cursor.execute("SELECT seq, hash, at FROM audit_head WHERE tenant_id = %s", [tenant_id])
        head = cursor.fetchone()
        if (head[:2] if head else (0, GENESIS)) != (seq, last):
            return Verdict(tenant_id, seq, last, Cause.HEAD, seq)
        if head is None:
            return Verdict(tenant_id, 0, last)
        cursor.execute(_LEFT_BEHIND, [tenant_id, head[2] - UNSEALED_FOR])
        left = cursor.fetchone()
    if left:
        return Verdict(tenant_id, seq, last, Cause.NOT_SEALED, None, left[0])
    return Verdict(tenant_id, seq, last)


_LEFT_BEHIND: Final = """
    SELECT e.id FROM audit_event e LEFT JOIN audit_watermark w
        ON w.cluster = (SELECT system_identifier FROM pg_control_system())
    WHERE e.tenant_id = %s
        -- Passed over, or of a transaction that has not begun. Times say something only where there is no mark yet:
        -- after a clock stepped back, what was written a moment ago is older than the last seal.
        AND (e.xid < w.sealed_below OR e.xid >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            OR (w.sealed_below IS NULL AND e.at < %s))
        AND NOT EXISTS (SELECT FROM audit_seal s WHERE s.event_id = e.id)
    ORDER BY e.at, e.id LIMIT 1
"""
_LINKS: Final = f"""
    SELECT s.seq, s.previous, s.hash, s.event_id, {SELECT_CONTENT}
    FROM audit_seal s LEFT JOIN audit_event e ON e.id = s.event_id
    WHERE s.tenant_id = %s AND s.seq > %s ORDER BY s.seq
"""  # noqa: S608


def _links(tenant_id: UUID, after: int) -> Iterator[_Link]:
    """The links behind a place, in order, through a cursor on the server."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(_LINKS, [tenant_id, after])
        while rows := cursor.fetchmany(CHUNK):
            for seq, previous, stored, event_id, *event in rows:
                yield _Link(seq, previous, stored, event_id, content_of(event))
