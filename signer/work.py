"""One look at each tenant's seals: sign what extends what was signed, and refuse everything else."""

import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from audit.checkpoints import BREAK, Checkpoint, public_key, sign
from common.crashpoints import crashpoint
from signer import SignerError
from signer.database import Database
from signer.folder import Folder, Refusal, Signed
from signer.history import DAMAGED, REMOVED, History, Refused, check_place, follow

EVERY_S: Final = 60.0
"""How often each tenant is looked at."""
EVENTS: Final = 1_000
"""So many new events are signed at once, before the time has come."""
WHOLE_S: Final = 3_600.0
"""How often the whole history is read again, and its root compared with the one that was signed."""
MAX_REASON: Final = 300
log = logging.getLogger("signer")


@dataclass
class _Looked:
    """When, by this process's own clock, and what of it the database knows already."""

    at: float = float("-inf")
    whole: float = float("-inf")
    told: set[str] = field(default_factory=set)


class Work:
    """The signer's work on one folder and one database connection."""

    def __init__(self, folder: Folder, database: Database, *, every_s: float = EVERY_S) -> None:
        self.folder, self.database, self.every_s = folder, database, every_s
        self.key = folder.key()
        self.public = public_key(self.key)
        self.looked: dict[UUID, _Looked] = {}
        database.add_key(self.public)

    def once(self) -> None:
        """Look at every tenant whose time has come."""
        ends = self.database.ends()
        for tenant in sorted({*ends, *self.folder.tenants()}):
            with self.folder.mine():
                self._by_itself(tenant, ends.get(tenant, 0))

    def _by_itself(self, tenant: UUID, end: int) -> None:
        """What is wrong with the files of one tenant stops the signing of that one, and of no other."""
        try:
            self._tenant(tenant, end)
        except SignerError as error:
            looked = self.looked.setdefault(tenant, _Looked())
            if str(error) not in looked.told:
                looked.told.add(str(error))
                log.error("%s is not signed any more: %s", tenant, error)  # noqa: TRY400 - a finding, no bug
            if tenant not in self.folder.refused():
                self.folder.refuse(tenant, DAMAGED, str(error))
                self._tell(tenant, None, looked)

    def _tenant(self, tenant: UUID, end: int) -> None:
        looked = self.looked.setdefault(tenant, _Looked())
        signed, now = self.folder.signed(tenant), time.monotonic()
        due = now - looked.at >= self.every_s
        if not due and end - (signed.history.size if signed else 0) < EVENTS:
            return
        self._tell(tenant, signed, looked)
        if self.folder.refusal(tenant) is None:
            whole = now - looked.whole >= WHOLE_S
            self._look(tenant, signed, looked, whole=whole)
            looked.whole = now if whole else looked.whole
        looked.at = now

    def _look(self, tenant: UUID, signed: Signed | None, looked: _Looked, *, whole: bool) -> None:
        try:
            self._check_kept(signed, looked)
            found = self._read(tenant, signed.history if signed else History(), whole=whole)
        except Refused as refused:
            self.folder.refuse(tenant, refused.cause, refused.detail)
            log.error("%s is not signed any more: %s", tenant, refused.detail)  # noqa: TRY400 - a finding, no bug
        else:
            if signed is None or found.size > signed.history.size:
                signed = self._sign(tenant, found)
        self._tell(tenant, signed, looked)

    def _check_kept(self, signed: Signed | None, looked: _Looked) -> None:
        """A row that this process has added is there as it was: nobody of the product may change it or take it out."""
        if signed and signed.note in looked.told and not self.database.has_checkpoint(signed.note):
            raise Refused(
                REMOVED, f"The checkpoint of event {signed.history.size:,} was removed from the database."
            )

    def _read(self, tenant: UUID, signed: History, *, whole: bool) -> History:
        with self.database.snapshot():
            if whole:
                return follow(History(), self.database.seals(tenant), signed)
            check_place(signed, self.database.place(tenant, signed.size))
            return follow(signed, self.database.seals(tenant, signed.size))

    def _sign(self, tenant: UUID, history: History, *more: str) -> Signed:
        checkpoint = Checkpoint(tenant, history.size, history.root, datetime.now(UTC), history.head, more)
        signed = Signed(history, sign(checkpoint, self.key))
        self.folder.keep(tenant, signed)
        crashpoint("CP17")
        return signed

    def _tell(self, tenant: UUID, signed: Signed | None, looked: _Looked) -> None:
        """What the folder holds and the database may lack: a process that was killed had no time to add it."""
        if signed and signed.note not in looked.told:
            self.folder.keep_checkpoint(tenant, signed)
            self.database.add_checkpoint(signed.note, self.public)
            looked.told = {signed.note}
        refusal = self.folder.refusal(tenant)
        if refusal and refusal.at not in looked.told:
            self.database.add_report(tenant, "refused", refusal)
            looked.told.add(refusal.at)

    def accept(self, tenant: UUID, reason: str, by: str) -> Signed:
        """A person takes the history as it is now: it is signed, and what was signed before stands beside it.

        Raises SignerError where nothing is refused, and Refused where the seals do not follow one another.
        """
        if len(reason) > MAX_REASON or not reason.strip() or not reason.isprintable():
            raise SignerError(f"Give the reason in one line of at most {MAX_REASON} characters.")
        with self.folder.mine():
            refusal = self.folder.refusal(tenant)
            if refusal is None:
                raise SignerError("Nothing is refused for this tenant.")
            signed = self._sign(tenant, *self._accepted(tenant, reason.strip()))
            self.folder.note_down(f"{tenant} accepted by {by}: {reason}")
            self.folder.sign_again(tenant)
            self.database.add_checkpoint(signed.note, self.public)
            told = Refusal(refusal.cause, f"{by}: {reason}", datetime.now(UTC).isoformat())
            self.database.add_report(tenant, "accepted", told)
        return signed

    def _accepted(self, tenant: UUID, reason: str) -> tuple[History, *tuple[str, ...]]:
        """The history as it is, and the line that states the break; none where it extends what was signed.

        Where the memory of what was signed is damaged, the newest checkpoint says how far it went, and that is a break.
        """
        found = self._read(tenant, History(), whole=True)
        try:
            before = self.folder.signed(tenant)
            if before is None:
                return (found,)
            size, root = before.history.size, before.history.root
            self._read(tenant, before.history, whole=True)
        except Refused:
            return found, f"{BREAK} {size} {root.hex()} {reason}"
        except SignerError:
            last = self.folder.last_checkpoint(tenant)
            return (found, f"{BREAK} {last.size} {last.root.hex()} {reason}") if last else (found,)
        return (found,)
