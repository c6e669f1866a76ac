"""Checkpoints: one signed text that names a tenant's whole history up to one event.

The text is a C2SP checkpoint in a C2SP signed note (https://c2sp.org/tlog-checkpoint, https://c2sp.org/signed-note)::

    placet/<tenant>                 whose history
    1204                            how many events, from the first on
    <root>                          RFC 6962 root over them, base64
    time 2026-11-30T19:15:00Z       when it was signed, by the signer's clock
    head <hash>                     link hash of the last of them, hexadecimal

    — placet/signer <key hash and Ed25519 signature, base64>

Further lines may follow ``head``, each ``<word> <text>``; who reads a checkpoint skips words it does not know.
``break`` is one: a person accepted there that the history no longer extends what was signed before.
Nothing here knows of Django or of the database.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SIGNER: Final = "placet/signer"
BREAK: Final = "break"
_ED25519: Final = b"\x01"
_ORIGIN: Final = "placet/"
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_NAME: Final = re.compile(r"[^\s+]+\Z")
_SIZE: Final = re.compile(r"(0|[1-9][0-9]{0,17})\Z")
_HEAD: Final = re.compile(r"[0-9a-f]{64}\Z")


class NoCheckpoint(ValueError):
    """This text is no checkpoint of a history."""


class NotSigned(ValueError):
    """The key that was asked for has not signed this text."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Who signs: the name and 32 bytes of an Ed25519 key."""

    name: str
    raw: bytes

    @property
    def hash(self) -> bytes:
        """The four bytes by which a signature names its key."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.raw).digest()[:4]

    @property
    def vkey(self) -> str:
        """The key as one line, in the form of C2SP's signed note."""
        return f"{self.name}+{self.hash.hex()}+{base64.b64encode(_ED25519 + self.raw).decode()}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is signed. ``time`` is UTC to the second; ``more`` are further lines, without line ends."""

    tenant: UUID
    size: int
    root: bytes
    time: datetime
    head: str
    more: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        root = base64.b64encode(self.root).decode()
        lines = [
            f"{_ORIGIN}{self.tenant}", str(self.size), root, f"time {self.time.astimezone(UTC):{_TIME}}",
            f"head {self.head}", *self.more,
        ]  # fmt: skip
        return "".join(f"{line}\n" for line in lines)

    @property
    def breaks(self) -> str:
        """Why a person accepted that this history does not extend the one signed before; mostly empty."""
        return next((line.partition(" ")[2] for line in self.more if line.startswith(f"{BREAK} ")), "")


def file_name(tenant: UUID, size: int) -> str:
    return f"{tenant}-{size:012}.checkpoint"


def public_key(key: Ed25519PrivateKey, name: str = SIGNER) -> PublicKey:
    return PublicKey(name, key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def parse_vkey(line: str) -> PublicKey:
    """The key in ``<name>+<8 hex>+<base64>``. Raises ValueError where name, hash and key do not belong together."""
    name, _, rest = line.strip().partition("+")
    stated, _, encoded = rest.partition("+")
    raw = _decode(encoded)
    key = PublicKey(name, raw[1:])
    if len(raw) != 33 or raw[:1] != _ED25519 or not _NAME.match(name) or key.hash.hex() != stated:
        raise ValueError("This is no key of a signer.")
    return key


def sign(checkpoint: Checkpoint, key: Ed25519PrivateKey, name: str = SIGNER) -> str:
    """The whole note: the text, an empty line, and the signature."""
    text = checkpoint.text
    if parse(text).more != checkpoint.more:  # nothing is signed that nobody reads as it was meant
        raise NoCheckpoint(NoCheckpoint.__doc__)
    blob = public_key(key, name).hash + key.sign(text.encode())
    return f"{text}\n— {name} {base64.b64encode(blob).decode()}\n"


def parse(text: str) -> Checkpoint:
    """The checkpoint in a note's text, or in a whole note. Signatures are not looked at."""
    body = _body_of(text)
    lines = body.split("\n")[:-1]
    if len(lines) < 5 or any(not line.isprintable() or not line for line in lines):
        raise NoCheckpoint(NoCheckpoint.__doc__)
    origin, size, root, time, head, *more = lines
    try:
        found = Checkpoint(
            UUID(origin.removeprefix(_ORIGIN)), int(size), _decode(root),
            datetime.strptime(time, f"time {_TIME}").replace(tzinfo=UTC), head.removeprefix("head "), tuple(more),
        )  # fmt: skip
    except ValueError as error:
        raise NoCheckpoint(NoCheckpoint.__doc__) from error
    if found.text != body or not _SIZE.match(size) or not _HEAD.match(found.head) or len(found.root) != 32:
        raise NoCheckpoint(NoCheckpoint.__doc__)
    return found


def opened(note: str, key: PublicKey) -> Checkpoint:
    """The checkpoint of a note that ``key`` has signed. Raises NotSigned, and NoCheckpoint."""
    verify_note(note, key)
    return parse(note)


def verify_note(note: str, key: PublicKey) -> str:
    """The text of a signed note, if ``key`` has signed it; else NotSigned. Signatures by others do not matter."""
    text = _body_of(note)
    for line in note[len(text) + 1 :].splitlines():
        dash, _, rest = line.partition(" ")
        name, _, encoded = rest.partition(" ")
        if dash == "—" and name == key.name and _fits(text, encoded, key):
            return text
    raise NotSigned(NotSigned.__doc__)


def _fits(text: str, encoded: str, key: PublicKey) -> bool:
    try:
        blob = _decode(encoded)
        if blob[:4] != key.hash:
            return False
        Ed25519PublicKey.from_public_bytes(key.raw).verify(blob[4:], text.encode())
    except (ValueError, InvalidSignature):
        return False
    return True


def _body_of(note: str) -> str:
    """Up to the last empty line, its own line end included; a text alone is its own body."""
    text, blank, _ = note.rpartition("\n\n")
    return f"{text}\n" if blank else note


def _decode(encoded: str) -> bytes:
    """Standard base64 in its one form: what encodes back to something else is refused."""
    try:
        found = base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise ValueError("This is not base64.") from error
    if base64.b64encode(found).decode() != encoded:
        raise ValueError("This is not base64.")
    return found
