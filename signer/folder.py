"""The signer's folder: the key, what was signed last for each tenant, every checkpoint, and what is refused.

::

    key.pem                          the private key, mode 0600
    signer.pub                       the public key, one line, to be given away
    tenants/<tenant>.json            what was signed last: this is what a later history must extend
    checkpoints/<tenant>/*.checkpoint   all that was signed
    refused/<tenant>.json            why nothing is signed for this tenant
    journal.log                      refusals and acceptances, one a line

Every file is written whole or not at all, and is on the disk before anything depends on it.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from audit.checkpoints import Checkpoint, file_name, parse, public_key
from audit.tree import Frontier
from signer import SignerError
from signer.history import History

_LOCK_WITHIN_S = 60.0
_PUT_BACK = "Put it back from a backup of the signer's folder, or accept the history as it is."


@dataclass(frozen=True, slots=True)
class Signed:
    """What was signed last for a tenant: the history, and the note over it."""

    history: History
    note: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing is signed for a tenant, and since when."""

    cause: str
    detail: str
    at: str


class Folder:
    """One signer's folder, private to its account."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _refuse_open(path)
            for name in ("tenants", "checkpoints", "refused"):
                (path / name).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise SignerError(f"The signer's folder {path} cannot be used: {error.strerror}.") from error

    @contextlib.contextmanager
    def mine(self) -> Iterator[None]:
        """Inside, no other process of this folder signs or accepts anything."""
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(handle, self.path)
            yield
        finally:
            os.close(handle)

    def key(self) -> Ed25519PrivateKey:
        """The key; made when there is none. One that others could read is not used."""
        path = self.path / "key.pem"
        if not path.exists():
            _make_key(path)
        _refuse_open(path)
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise SignerError(f"{path} holds no Ed25519 key.")
        _write(self.path / "signer.pub", public_key(key).vkey + "\n")
        return key

    # --- what was signed ----------------------------------------------------------------------
    def tenants(self) -> list[UUID]:
        return _tenants_in(self.path / "tenants")

    def signed(self, tenant: UUID) -> Signed | None:
        """Raises SignerError where that cannot be known any more: it is not the same as nothing."""
        path = self.path / "tenants" / f"{tenant}.json"
        stored = _read(path)
        if stored is None:
            if any((self.path / "checkpoints" / str(tenant)).glob("*.checkpoint")):
                raise SignerError(f"{path} is gone, and checkpoints were signed. {_PUT_BACK}")
            return None
        try:
            history, note = History(Frontier.from_json(stored["frontier"]), stored["head"]), stored["note"]
            said = parse(note)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SignerError(f"{path} is damaged. {_PUT_BACK}") from error
        if (said.tenant, said.size, said.root, said.head) != (
            tenant,
            history.size,
            history.root,
            history.head,
        ):
            raise SignerError(f"{path} is not what was signed. {_PUT_BACK}")
        return Signed(history, note)

    def last_checkpoint(self, tenant: UUID) -> Checkpoint | None:
        """The newest that was signed, by its own word; for when the memory beside it is damaged."""
        found = []
        for path in (self.path / "checkpoints" / str(tenant)).glob("*.checkpoint"):
            with contextlib.suppress(ValueError):
                found.append(parse(path.read_text()))
        return max(found, key=lambda one: (one.time, one.size), default=None)

    def keep(self, tenant: UUID, signed: Signed) -> None:
        """On the disk first what a later history must extend, then the checkpoint that people take along."""
        stored = {
            "frontier": signed.history.frontier.as_json(), "head": signed.history.head, "note": signed.note,
        }  # fmt: skip
        _write(self.path / "tenants" / f"{tenant}.json", json.dumps(stored, indent=1) + "\n")
        self.keep_checkpoint(tenant, signed)

    def keep_checkpoint(self, tenant: UUID, signed: Signed) -> None:
        """Adds the file if it is not there yet; one that is there is never overwritten by another."""
        folder = self.path / "checkpoints" / str(tenant)
        folder.mkdir(mode=0o700, exist_ok=True)
        plain = folder / file_name(tenant, signed.history.size)
        for path in (plain, *(plain.with_stem(f"{plain.stem}-{number}") for number in range(2, 1000))):
            if not path.exists():
                return _write(path, signed.note)
            if path.read_text() == signed.note:
                return None
        raise SignerError(f"{folder} has a thousand checkpoints of one size.")

    # --- what is refused ----------------------------------------------------------------------
    def refused(self) -> list[UUID]:
        return _tenants_in(self.path / "refused")

    def refusal(self, tenant: UUID) -> Refusal | None:
        stored = _read(self.path / "refused" / f"{tenant}.json")
        try:
            return None if stored is None else Refusal(**stored)
        except TypeError as error:
            raise SignerError(
                f"{self.path / 'refused' / f'{tenant}.json'} is damaged. {_PUT_BACK}"
            ) from error

    def refuse(self, tenant: UUID, cause: str, detail: str) -> Refusal:
        refusal = Refusal(cause, detail, _now())
        stored = {"cause": refusal.cause, "detail": refusal.detail, "at": refusal.at}
        _write(self.path / "refused" / f"{tenant}.json", json.dumps(stored) + "\n")
        self.note_down(f"{tenant} refused {cause}: {detail}")
        return refusal

    def sign_again(self, tenant: UUID) -> None:
        (self.path / "refused" / f"{tenant}.json").unlink(missing_ok=True)

    def note_down(self, line: str) -> None:
        with open(
            os.open(self.path / "journal.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a"
        ) as file:
            file.write(f"{_now()} {line}\n")


def _tenants_in(folder: Path) -> list[UUID]:
    """Those that files are named after; what somebody else put there concerns nobody."""
    found = []
    for path in folder.glob("*.json"):
        with contextlib.suppress(ValueError):
            found.append(UUID(path.stem))
    return sorted(found)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _lock(handle: int, path: Path) -> None:
    end = time.monotonic() + _LOCK_WITHIN_S
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise SignerError(f"Another process has been using {path} for a minute. Try again.") from None
            time.sleep(0.05)


def _refuse_open(path: Path) -> None:
    if path.stat().st_mode & 0o077:
        raise SignerError(f"Others can read {path}: only the signer's account may (chmod go= {path}).")


def _make_key(path: Path) -> None:
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    fresh = path.with_name(f".new-{path.name}.{os.getpid()}")
    _write(fresh, pem.decode())
    with contextlib.suppress(FileExistsError):
        os.link(fresh, path)  # whoever was first: a key that has signed is not replaced
    fresh.unlink()


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise SignerError(f"{path} is damaged. {_PUT_BACK}") from error


def _write(path: Path, text: str) -> None:
    """Whole or not at all, with mode 0600, and on the disk when this returns."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
