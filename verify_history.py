#!/usr/bin/env python3
"""Does an exported history hold? One file for auditors: Python 3.11, `cryptography`, no server, no network.

    verify_history.py BUNDLE --checkpoints DIR --pubkey FILE [--receipt FILE ...] [--passkeys FILE]
                      [--signed OPERATION ...]

BUNDLE is what *Export* gave, a zip file or the same as a folder. DIR holds checkpoints from your own mail or store, as
files or as saved mails; FILE the signer's public key, from there too (and the one of receipts, where you have any).
What came along with a bundle is believed only as far as that key has signed it. With --passkeys, signatures of
approvals count only by the keys that the people themselves have given you; with --signed, no approval of that operation
counts without one, whatever its contract says. The formats are in docs/audit.md.

Exit status 0: all of it is proven. 1: something does not hold, and the first such place is named. 2: nothing speaks
against it, but the evidence is not complete, or cannot be read; what is missing is named.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import email
import email.policy
import hashlib
import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PROVEN, BROKEN, INCOMPLETE = 0, 1, 2
FORMAT: Final = "placet.bundle.v1"
EVENT: Final = b"placet.event.v1\n"
CONTENT: Final = b"placet.event-content.v1\n"
CONTRACT: Final = b"placet.contract.v1\n"
VIEW: Final = b"placet.view.v1\n"
ROW: Final = b"placet.row.v1\n"
KEY: Final = b"placet.key.v1"
RECEIPT: Final = b"placet.history-receipt.v1\n"
APPROVAL: Final = b"placet.approval.v1\n"
GENESIS: Final = "0" * 64
MEMBERS: Final = frozenset({
    "at", "body", "v", "seq", "previous", "id", "tenant", "kind", "subject", "run", "from", "to", "performed_by",
    "on_behalf_of", "via", "owner", "reason", "request_id", "digest",
})  # fmt: skip
THROUGH: Final = "through"
FILES: Final = (
    "manifest.json", "events.jsonl", "proofs.jsonl", "unsealed.jsonl", "contracts.jsonl", "views.jsonl",
    "tables.jsonl", "keys.txt",
)  # fmt: skip
LONGEST_EVENT, LONGEST_LINE, LONGEST_FILE, MOST_MEMBERS = 1_000_000, 16_000_000, 4_000_000, 200_000
LONGEST_NOTE, LONGEST_KEY, LONGEST_NAME = 64_000, 4_096, 100
"""Of a checkpoint that came along, of a passkey's public key, and of what a row is called by."""
CLOCKS_DIFFER: Final = timedelta(seconds=2)
"""The signer's clock and the database's; a bundle made in that time may be older than what was signed then."""
WHILE_IT_IS_DONE: Final = timedelta(seconds=60)
"""From the instant at which an action decides to the one at which its event is stamped: the longest transaction."""
LARGEST_WHOLE: Final = 2**53 - 1


class NotHeld(Exception):
    """Something that does not hold: what it is in a word that stays, in a sentence, and where."""

    def __init__(
        self, what: str, says: str, *, seq: int | None = None, event: str = "", where: str = ""
    ) -> None:
        super().__init__(says)
        self.what, self.says, self.seq, self.event, self.where = what, says, seq, event, where


class Unreadable(Exception):
    """The evidence cannot be read, so that nothing can be said."""


# --- JSON in its one spelling (RFC 8785) -----------------------------------------------------------------------------


class _Special(ValueError):
    """There is something in it for which the quick way is not sure."""


def _special(_: str) -> NoReturn:
    raise _Special


def _whole(digits: str) -> int:
    if len(digits) > 16 or abs(int(digits)) > LARGEST_WHOLE:
        raise _Special
    return int(digits)


_quick_read = json.JSONDecoder(parse_float=_special, parse_constant=_special, parse_int=_whole).decode
_quick_write = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False
).encode
_beyond_16_bits = re.compile(rb"[\xf0-\xff]").search


def canonical_document(raw: bytes) -> Any:
    """The value of a document that has exactly its canonical bytes. Raises ValueError, with the reason."""
    if _beyond_16_bits(raw) is None:
        try:
            value = _quick_read(raw.decode())
            if _quick_write(value).encode() == raw:
                return value
        except (ValueError, RecursionError):
            pass  # the careful way says what it is
    return _careful(raw)


def _careful(raw: bytes) -> Any:
    try:
        value = read_json(raw)
        same = canonical(value) == raw
    except UnicodeEncodeError:
        raise ValueError("it holds half a character") from None
    if not same:
        raise ValueError("it is not in the one spelling that is hashed (RFC 8785)")
    return value


def read_json(raw: bytes) -> Any:
    """Strict JSON. Raises ValueError, with the reason in words."""
    try:
        return json.loads(
            raw.decode(), object_pairs_hook=_object, parse_constant=_no_number, parse_int=_integer
        )
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error.msg} at character {error.pos})") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _integer(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > LARGEST_WHOLE:
        raise ValueError("it has an integer that is too large")
    return int(digits)


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a value that `read_json` gave."""
    try:
        return _spelled(value).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _spelled(value: Any) -> str:
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{_quick_write(name)}:{_spelled(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_spelled, value)) + "]"
    return _number(value) if isinstance(value, float) else _quick_write(value)


def _number(value: float) -> str:
    """As ECMAScript writes a double."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)
    if len(text) <= point <= 21:
        shown = text.ljust(point, "0")
    elif 0 < point <= 21:
        shown = f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        shown = f"0.{'0' * -point}{text}"
    else:
        shown = f"{text[0]}{'.' + text[1:] if len(text) > 1 else ''}e{point - 1:+d}"
    return f"-{shown}" if sign else shown


# --- the tree (RFC 6962) ---------------------------------------------------------------------------------------------


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class Tree:
    """The roots of its complete subtrees, the largest first: enough to go on, and for the root."""

    def __init__(self) -> None:
        self.size, self._peaks = 0, list[bytes]()

    def append(self, entry: bytes) -> None:
        fresh, size = _sha256(b"\x00" + entry), self.size
        while size & 1:
            fresh, size = _sha256(b"\x01" + self._peaks.pop() + fresh), size >> 1
        self._peaks.append(fresh)
        self.size += 1

    def root(self) -> bytes:
        if not self._peaks:
            return _sha256(b"")
        found = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            found = _sha256(b"\x01" + peak + found)
        return found


def root_by_proof(entry: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that an inclusion proof leads to (RFC 9162, 2.1.3.2); None where its length does not fit."""
    if not 0 <= index < size:
        return None
    here, last, found = index, size - 1, _sha256(b"\x00" + entry)
    for step in path:
        if last == 0:
            return None
        if here & 1 or here == last:
            found = _sha256(b"\x01" + step + found)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            found = _sha256(b"\x01" + found + step)
        here, last = here >> 1, last >> 1
    return found if last == 0 else None


# --- keys and checkpoints (C2SP signed note, tlog-checkpoint) --------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """The signer's keys by name and hash, and those of receipts by their id."""

    signers: dict[tuple[str, bytes], bytes]
    receipts: dict[str, bytes]


def read_keys(texts: Sequence[bytes]) -> Keys:
    """Of files with `placet/signer+…` lines; for receipts base64 of 32 bytes, or the answer of /api/v1/receipts/keys.

    Raises Unreadable where no signer's key is among them.
    """
    signers: dict[tuple[str, bytes], bytes] = {}
    receipts: dict[str, bytes] = {}
    for text in texts:
        for word in text.decode(errors="replace").replace('"', " ").replace(",", " ").split():
            name, _, rest = word.partition("+")
            raw = unbase64(rest.partition("+")[2]) if rest else None
            if (
                raw is not None
                and len(raw) == 33
                and raw[0] == 1
                and _key_hash(name, raw[1:]).hex() == rest[:8]
            ):
                signers[name, _key_hash(name, raw[1:])] = raw[1:]
            elif (plain := unbase64(word)) is not None and len(plain) == 32:
                receipts[hashlib.sha256(plain).hexdigest()[:16]] = plain
    if not signers:
        raise Unreadable("The file of --pubkey holds no key of a signer: a line placet/signer+<hash>+<key>.")
    return Keys(signers, receipts)


def _key_hash(name: str, key: bytes) -> bytes:
    return _sha256(name.encode(errors="replace") + b"\n\x01" + key)[:4]


def unbase64(text: Any) -> bytes | None:
    """Standard base64 in its one form; None for anything else."""
    try:
        found = base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except (binascii.Error, ValueError):
        return None
    return found if found is not None and base64.b64encode(found).decode() == text else None


def signed_by(key: bytes, signature: bytes, data: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True)
class Checkpoint:
    """A history of ``size`` events with this ``root``, said by the signer at ``time``. ``source``: which file."""

    tenant: str
    size: int
    root: bytes
    time: str
    head: str
    source: str
    outside: bool
    breaks: str = ""


_NOTE: Final = re.compile(
    r"(placet/(?P<tenant>[0-9a-f-]{36})\n(?P<size>0|[1-9][0-9]{0,17})\n(?P<root>[A-Za-z0-9+/]{43}=)\n"
    r"time (?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\nhead (?P<head>[0-9a-f]{64})\n(?P<more>(?:[^\n]+\n){0,20}))\n"
    r"(?P<signatures>(?:— [^\n]+(?:\n|\Z))+)"
)


def checkpoints_in(text: str, keys: Keys, source: str, *, outside: bool) -> list[Checkpoint]:
    """The checkpoints in a text that one of the keys has signed."""
    found = []
    for note in _NOTE.finditer(text.replace("\r\n", "\n")):
        if _is_signed(note[1], note["signatures"], keys):
            breaks = re.search(r"^break (.*)$", note["more"], re.MULTILINE)
            found.append(Checkpoint(
                note["tenant"], int(note["size"]), base64.b64decode(note["root"]), note["time"], note["head"], source,
                outside, breaks[1] if breaks else "",
            ))  # fmt: skip
    return found


def _is_signed(text: str, lines: str, keys: Keys) -> bool:
    for line in lines.splitlines():
        name, _, encoded = line.removeprefix("— ").partition(" ")
        blob = unbase64(encoded.strip()) or b""
        key = keys.signers.get((name, blob[:4]))
        if key is not None and signed_by(key, blob[4:], text.encode()):
            return True
    return False


def outside_checkpoints(folder: Path, keys: Keys) -> tuple[list[Checkpoint], list[str]]:
    """Those in files and mails of a folder, and the names of files in which none is that the key has signed."""
    found: list[Checkpoint] = []
    ignored: list[str] = []
    try:
        here = list(folder.iterdir())
        # And in the folders there: the signer keeps those of each tenant in one of their own.
        there = [path for one in here if one.is_dir() for path in one.iterdir()]
        paths = sorted(path for path in here + there if path.is_file() and not path.name.startswith("."))
        for path in paths:
            with path.open("rb") as file:
                raw = file.read(LONGEST_FILE)
            signed = [
                one for text in _texts(raw) for one in checkpoints_in(text, keys, path.name, outside=True)
            ]
            found += {(one.size, one.root, one.time): one for one in signed}.values()
            ignored += [] if signed else [path.name]
    except OSError as error:
        raise Unreadable(f"The folder of checkpoints cannot be read: {error.strerror}.") from None
    return found, ignored


def _texts(raw: bytes) -> Iterator[str]:
    """The text itself, the texts in a saved JSON document, and what a saved mail says and has attached."""
    yield raw.decode(errors="replace")
    if raw.lstrip().startswith(b"{"):
        yield from _strings(raw)
    if b"\nContent-T" in raw or raw.startswith(b"Content-T"):
        with suppress(Exception):  # it is no mail, whatever it looks like
            yield from list(_parts(raw))


def _parts(raw: bytes) -> Iterator[str]:
    for part in email.message_from_bytes(raw, policy=email.policy.default).walk():
        if not part.is_multipart():
            body = part.get_payload(decode=True)
            yield body.decode(errors="replace") if isinstance(body, bytes) else ""


def _strings(raw: bytes) -> Iterator[str]:
    try:
        todo: list[Any] = [read_json(raw)]
    except ValueError:
        return
    while todo:
        value = todo.pop()
        todo += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if isinstance(value, str):
            yield value


# --- signatures of passkeys (WebAuthn, COSE) -------------------------------------------------------------------------


def read_cbor(raw: bytes, depth: int = 0) -> tuple[Any, bytes]:
    """The first item of CBOR (RFC 8949) and the rest: what a COSE key is made of, no more. Raises ValueError."""
    if not raw or depth > 4:
        raise ValueError("it is no CBOR")
    kind, count, rest = raw[0] >> 5, raw[0] & 31, raw[1:]
    if count > 27 or kind > 5:
        raise ValueError("it has CBOR of another kind")
    if count > 23:
        size = 1 << (count - 24)
        count, rest = int.from_bytes(rest[:size], "big"), rest[size:]
    if kind < 2:
        return (count if kind == 0 else -1 - count), rest
    if kind < 4:
        if count > len(rest):
            raise ValueError("its CBOR ends too early")
        return (rest[:count] if kind == 2 else rest[:count].decode()), rest[count:]
    found: list[Any] = []
    for _ in range(min(count, 64) * (2 if kind == 5 else 1)):
        item, rest = read_cbor(rest, depth + 1)
        found.append(item)
    return (found if kind == 4 else dict(zip(found[::2], found[1::2], strict=True))), rest


_CURVES: Final = {
    -7: (1, ec.SECP256R1(), hashes.SHA256()), -35: (2, ec.SECP384R1(), hashes.SHA384()),
    -36: (3, ec.SECP521R1(), hashes.SHA512()),
}  # fmt: skip


def signed_by_cose(key: bytes, signature: bytes, data: bytes) -> bool | None:
    """Whether this COSE key (ES256/384/512, EdDSA, RS256, PS256) signed the data; None for another kind of key."""
    if len(key) > LONGEST_KEY:
        return None  # reading one, and reckoning with it, would take as long as somebody likes
    try:
        said, rest = read_cbor(key)
        if rest or not isinstance(said, dict):
            return None
        kind, algorithm = said.get(1), said.get(3)
        if (kind, algorithm, said.get(-1)) == (1, -8, 6):
            return signed_by(said[-2], signature, data)
        if kind == 2 and algorithm in _CURVES and said.get(-1) == _CURVES[algorithm][0]:
            _, curve, digest = _CURVES[algorithm]
            x, y = int.from_bytes(said[-2], "big"), int.from_bytes(said[-3], "big")
            ec.EllipticCurvePublicNumbers(x, y, curve).public_key().verify(signature, data, ec.ECDSA(digest))
            return True
        if kind == 3 and algorithm in (-257, -37):
            exponent, modulus = int.from_bytes(said[-2], "big"), int.from_bytes(said[-1], "big")
            sha = hashes.SHA256()
            pad = padding.PKCS1v15() if algorithm == -257 else padding.PSS(padding.MGF1(sha), sha.digest_size)
            rsa.RSAPublicNumbers(exponent, modulus).public_key().verify(signature, data, pad, sha)
            return True
    except InvalidSignature:
        return False
    except (ValueError, KeyError, TypeError, UnsupportedAlgorithm):
        return None
    return None


SIGNED_PARTS: Final = ("credential_id", "public_key", "authenticator_data", "client_data", "signature")


def passkey_problem(said: dict[str, Any]) -> str:
    """Why this is no signature of a passkey over its document, given by a person that it had recognised; or nothing."""
    document = said.get("document")
    parts = [unbase64(said.get(name)) for name in SIGNED_PARTS[1:]]
    if not isinstance(document, dict) or any(part is None for part in parts):
        return "a part of it is missing"
    key, data, client, signature = (part or b"" for part in parts)
    try:
        answer, host = read_json(client), str(document.get("rp_id"))
        challenge = base64.urlsafe_b64encode(_sha256(APPROVAL + canonical(document))).decode().rstrip("=")
    except (ValueError, UnicodeEncodeError):
        return "what the browser said cannot be read"
    if not isinstance(answer, dict) or answer.get("type") != "webauthn.get" or answer.get("crossOrigin"):
        return "it is not the answer of a passkey to this site"
    if answer.get("challenge") != challenge:
        return "it was given for something else than this decision"
    if not _is_at(host, answer.get("origin")) or data[:32] != _sha256(host.encode()):
        return "it was given to another site"
    if len(data) < 37 or data[32] & 5 != 5:
        return "the passkey had not recognised its person"
    held = signed_by_cose(key, signature, data + _sha256(client))
    return "" if held else "its key did not sign this" if held is False else "its key is of no known kind"


def _is_at(host: str, origin: Any) -> bool:
    found = re.fullmatch(r"(https?)://([a-z0-9.-]+)(:\d{1,5})?", origin) if isinstance(origin, str) else None
    here = found is not None and (found[2] == host or found[2].endswith(f".{host}"))
    return here and found is not None and (found[1] == "https" or found[2].rpartition(".")[2] == "localhost")


def read_passkeys(path: Path) -> dict[str, set[str]]:
    """Which keys people gave to whoever checks: in each line a person's id (``user:…``) and the SHA-256 of a key."""
    found: dict[str, set[str]] = {}
    for line in _small(path).decode(errors="replace").splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or not re.fullmatch(r"user:[0-9a-f-]{36}", words[0]) \
                or not re.fullmatch(r"[0-9a-f]{64}", words[1]):  # fmt: skip
            raise Unreadable(f"{path.name} holds a line that is not a person's id and the SHA-256 of a key.")
        found.setdefault(words[0], set()).add(words[1])
    return found


# --- the bundle ------------------------------------------------------------------------------------------------------


class Bundle:
    """A zip file, or the same as a folder. Nothing is unpacked: members of known names are read line by line."""

    def __init__(self, path: Path) -> None:
        self._zip = None if path.is_dir() else zipfile.ZipFile(path)
        self._path, self._reading = path, list[IO[bytes]]()
        inside = path.rglob("*") if self._zip is None else ()
        files = [str(one.relative_to(path)) for one in inside if one.is_file()]
        names = self._zip.namelist() if self._zip else files
        self.names = [name for name in names if not name.endswith("/")]

    def check_names(self) -> None:
        """Raises NotHeld for a member that no export makes."""
        if len(self.names) > MOST_MEMBERS:
            raise Unreadable("The bundle has more members than any export makes.")
        members = self._zip.infolist() if self._zip else ()
        if any(one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for one in members):
            raise Unreadable(
                "The bundle cannot be read: no export compresses like this. Pack it anew, with deflate."
            )
        strange = sorted(name for name in self.names if not _is_known(name))
        if strange:
            raise NotHeld("member", f"The bundle has a member that no export makes: {shown(strange[0])}.")
        if len(set(self.names)) != len(self.names):
            raise NotHeld("member", "A member of the bundle is there twice.")

    def close(self) -> None:
        """With whatever is still being read."""
        for file in self._reading:
            file.close()
        if self._zip:
            self._zip.close()

    def has(self, name: str) -> bool:
        return name in self.names

    def whole(self, name: str, longest: int = LONGEST_FILE) -> bytes:
        """A small member. Raises Unreadable where it is missing or too large."""
        with self._open(name) as file:
            found = file.read(longest + 1)
        if len(found) > longest:
            raise Unreadable(f"{name} is larger than any export makes it.")
        return found

    def lines(self, name: str, longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes]]:
        """The lines of a member by their number, without line ends. Raises NotHeld for one that is too long."""
        with self._open(name) as file:
            number = 0
            while line := file.readline(longest + 1):
                number += 1
                if len(line) > longest or not line.endswith(b"\n"):
                    what = "is longer than any export makes it" if len(line) > longest else "has no end"
                    raise NotHeld("line", f"Line {number} of {name} {what}.", where=f"{name}:{number}")
                yield number, line[:-1]

    def documents(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The objects of a member, each with its place; none where the member is missing."""
        if not self.has(name):
            return
        for number, line in self.lines(name):
            where = f"{name}:{number}"
            try:
                value = read_json(line)
            except ValueError as error:
                raise NotHeld(
                    "line", f"Line {number} of {name} cannot be taken: {error}.", where=where
                ) from None
            if not isinstance(value, dict):
                raise NotHeld("line", f"Line {number} of {name} is no object.", where=where)
            yield where, value

    def _open(self, name: str) -> IO[bytes]:
        if not self.has(name):
            raise Unreadable(f"The bundle has no {name}.")
        file = self._zip.open(name) if self._zip else (self._path / name).open("rb")
        self._reading.append(file)
        return file


def _is_known(name: str) -> bool:
    return (
        name in FILES or re.fullmatch(r"checkpoints/[0-9a-f-]{36}-[0-9]{12,18}\.checkpoint", name) is not None
    )


def shown(text: object) -> str:
    """Text from outside, for the terminal: without what could move its cursor, and not too long."""
    if str(text).isprintable() and str(text).isascii():
        return str(text)[:200]
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(text)[:200])
    return plain.encode(errors="backslashreplace").decode()


@dataclass(frozen=True)
class Manifest:
    """What the bundle says of itself; only a claim."""

    tenant: str
    name: str
    made_at: str
    made: datetime
    kind: str
    run: str
    first: int
    last: int
    events: int | None


def manifest_of(bundle: Bundle) -> Manifest:
    try:
        said = read_json(bundle.whole("manifest.json"))
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise Unreadable(f"This is no bundle of the format {FORMAT}.")
        scope, count = said["scope"], said.get("counts", {}).get("events")
        found = Manifest(
            str(said["tenant"]), str(said.get("tenant_name", "")), str(said["made_at"]), instant(said["made_at"]),
            str(scope["kind"]), str(scope.get("run_id", "")), _place(said.get("first_seq")),
            _place(said.get("last_seq")), None if count is None else _place(count),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotHeld(
            "manifest", f"The manifest cannot be taken: {shown(error)}.", where="manifest.json"
        ) from None
    if found.kind not in ("tenant", "run", "range"):
        raise Unreadable(f"Bundles of the scope {shown(found.kind)} are not known to this program.")
    return found


def instant(text: Any) -> datetime:
    """Raises ValueError for what is no time with its zone."""
    found = datetime.fromisoformat(text) if isinstance(text, str) else None
    if found is None or found.tzinfo is None:
        raise ValueError("a time is missing")
    return found


def _place(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a number is missing")
    return value


def has_members(document: dict[str, Any], of_the_first: frozenset[str]) -> bool:
    """Whether it is an event: of version 1, or of 2, which says through which token, session or endpoint it came."""
    if type(document.get("v")) is not int or document["v"] not in (1, 2):
        return False
    wanted = of_the_first | {THROUGH} if document["v"] == 2 else of_the_first
    typed = isinstance(document.get(THROUGH, ""), str) and type(document.get("seq", 0)) is int
    return typed and document.keys() == wanted


# --- the chain, and the checkpoints over it --------------------------------------------------------------------------


class Chain:
    """Follows the events, place by place: numbers, links, roots and proofs."""

    def __init__(self, manifest: Manifest, checkpoints: Sequence[Checkpoint]) -> None:
        self.manifest, self.tree = manifest, Tree()
        self.seq, self.hash, self.count = 0, GENESIS, 0
        self.times = ("", "")
        self.roots: dict[int, list[Checkpoint]] = {}
        for one in checkpoints:
            self.roots.setdefault(one.size, []).append(one)
        self.matched: list[Checkpoint] = []
        self.proven = 0
        """How many events stand under a signed root; of one run, or a stretch, those that a proof leads to."""
        self.proven_to = 0
        self._linked = 0

    @property
    def is_whole(self) -> bool:
        return self.manifest.kind == "tenant"

    def follow(self, raw: bytes) -> dict[str, Any]:
        """The document of the next line, if it is what has to come here."""
        place = self.seq + 1
        try:
            document = canonical_document(raw)
        except ValueError as error:
            raise NotHeld(
                "line", f"The event after {self.seq} cannot be taken: {error}.", seq=place
            ) from None
        if not isinstance(document, dict) or not has_members(document, MEMBERS):
            raise NotHeld(
                "line", f"The event after {self.seq} does not have the members of an event.", seq=place
            )
        self._check_place(document)
        self.seq, self.hash = document["seq"], hashlib.sha256(EVENT + raw).hexdigest()
        self.count += 1
        self.times = (self.times[0] or document["at"], document["at"])
        if self.is_whole:
            self.tree.append(bytes.fromhex(self.hash))
            if self.seq in self.roots:
                self._compare()
        return document

    def _check_place(self, document: dict[str, Any]) -> None:
        seq = document["seq"]
        if document["tenant"] != self.manifest.tenant:
            raise NotHeld("tenant", "The event belongs to another tenant.", seq=seq)
        follows = seq == self.seq + 1
        gaps = self.manifest.kind == "run" or (self.count == 0 and self.manifest.kind == "range")
        if not follows and not (gaps and seq > self.seq):
            says = (
                f"After event {self.seq} comes event {seq}: events are missing, or their order was changed."
            )
            raise NotHeld("order", says, seq=self.seq + 1)
        if follows and (self.count or seq == 1) and document["previous"] != self.hash:
            says = (
                f"Event {seq} does not follow event {seq - 1} as it is here: that one was changed, or this one put in."
                if seq > 1
                else "The first event names an event before it."
            )
            raise NotHeld("link", says, seq=max(1, seq - 1))
        self._linked = self._linked + 1 if follows else 1

    def _compare(self) -> None:
        """The root over all events so far with what was signed for so many."""
        for one in self.roots[self.seq]:
            if one.root != self.tree.root() or one.head != self.hash:
                since = (
                    f"The history up to event {self.proven_to} is what was signed. " if self.proven_to else ""
                )
                says = (
                    f"{since}The events from {self.proven_to + 1} to {self.seq} are not those that the signer saw at"
                    f" {one.time} ({shown(one.source)}): one of them was changed, put in or left out, and all hashes"
                    " after it made anew."
                )
                raise NotHeld("root", says, seq=self.proven_to + 1)
            self.matched.append(one)
        self.proven = self.proven_to = self.seq

    def prove(self, size: int, path: Sequence[bytes]) -> None:
        """By an inclusion proof: this event, and by the links all those that it follows here."""
        signed = self.roots.get(size)
        if not signed:
            return
        root = root_by_proof(bytes.fromhex(self.hash), self.seq - 1, size, path)
        if root is None or any(one.root != root for one in signed):
            says = f"The event is not the one that was signed at this place in the history of {size} events."
            raise NotHeld("proof", says, seq=self.seq)
        self.proven, self._linked, self.proven_to = self.proven + self._linked, 0, self.seq
        self.matched += [one for one in signed if one not in self.matched]

    def check_end(self) -> None:
        said = self.manifest
        if (said.last, said.events) not in ((self.seq, None), (self.seq, self.count)):
            says = f"The bundle says that it goes to event {said.last}, and ends at {self.seq}: something was cut off."
            raise NotHeld("end", says, seq=self.seq + 1)
        later = [one for size, those in self.roots.items() for one in those if size > self.seq]
        if self.is_whole:
            for one in sorted(later, key=lambda one: one.size):
                if instant(one.time) + CLOCKS_DIFFER <= said.made:
                    says = (
                        f"The history ends at event {self.seq}, but {one.size} events were signed at {one.time}"
                        f" ({shown(one.source)}): its end was cut off, or an older state was restored."
                    )
                    raise NotHeld("cut", says, seq=self.seq + 1)


# --- what the events say: proposals, decisions, commands -------------------------------------------------------------


@dataclass
class Vote:
    """One decision as its event says it."""

    proposal: str
    kind: str
    by: str
    via: str
    view: str
    standing: bool = True
    row: str = ""
    """The digest of its bound columns; empty in events of before it was recorded."""


@dataclass
class Proposal:
    """What was asked, as its events say it."""

    digest: str
    view: str
    run: str
    needed: int
    mode: str
    row: str = ""
    decide_by: datetime | None = None
    asked: set[tuple[str, str]] = field(default_factory=set)
    """In which role, of which group, people are asked; empty where no event says so."""
    version: int | None = None
    signed: bool = False
    """Whether each approval must be signed: as it says itself, or as whoever checks says of the operation."""
    says_so: bool = False
    votes: list[str] = field(default_factory=list)
    approved: bool = False
    times: tuple[datetime, datetime] | None = None
    """When it was approved, and until when it may be sent."""
    command: str = ""


@dataclass
class Command:
    """What was ordered."""

    proposal: str
    key: str
    row: str = ""
    claims: int = 0
    sends: int = 0
    sent_at: set[datetime] = field(default_factory=set)
    ends: dict[str, Any] = field(default_factory=dict)
    """What the last event about it says of how it ended."""


@dataclass
class Person:
    """A member as the history tells: the roles and groups of this moment."""

    roles: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    active: bool = True


STATEFUL: Final = ("proposal", "command", "run", "step")
KEY_EVENTS: Final = ("user.mfa_added", "user.mfa_removed")
ENDS: Final = ("effect", "settled_by", "provider_reference", "tries")


class Story:
    """Reads the events as one story, in which nothing may happen before what allows it.

    Of a stretch of a history, the things that began before it are not judged.
    """

    def __init__(
        self, *, from_the_start: bool, every_event: bool = True, passkeys: dict[str, set[str]] | None = None,
        must_be_signed: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.complete, self.every_event, self.trusted = from_the_start, every_event, passkeys
        self.must_be_signed = frozenset(must_be_signed)
        self.keys: dict[tuple[str, str], str] = {}
        """The public keys of passkeys by person and credential, as they were registered and not removed so far."""
        self.signatures: dict[str, bytes] = {}
        """What was signed of each decision, as one hash."""
        self.lacks: set[str] = set()
        self.states: dict[str, str] = {}
        self.proposals: dict[str, Proposal] = {}
        self.commands: dict[str, Command] = {}
        self.votes: dict[str, Vote] = {}
        self.erased: set[str] = set()
        self.people: dict[str, Person] | None = None
        """By actor; None in a history that does not begin with its tenant, and so does not know everybody."""
        self.one_may_decide = False
        self._tell: dict[str, Callable[[str, dict[str, Any], dict[str, Any]], None]] = {
            "proposal.made": self._made, "proposal.vote": self._voted, "proposal.approved": self._approved,
            "proposal.signed": self._signed,
            "command.ready": self._ordered, "command.claimed": self._claimed, "command.sent": self._sent,
            "run.content_erased": self._content_erased, "proposal.escalated": self._escalated,
        }  # fmt: skip

    def hear(self, document: dict[str, Any]) -> None:
        """Raises NotHeld, without its place."""
        kind, subject = document["kind"], document["subject"]
        if not (isinstance(kind, str) and isinstance(subject, str) and isinstance(document["to"], str)):
            raise NotHeld("line", "The event has a member of the wrong type.")
        thing, _, ident = subject.partition(":")
        body = document["body"] if isinstance(document["body"], dict) else {}
        self._posture(thing, subject, kind, body)
        if kind in KEY_EVENTS:
            self._key(kind, subject, body)
        if thing not in STATEFUL:
            return
        self._move(thing, subject, kind, document)
        tell = self._tell.get(kind)
        try:
            if tell is not None:
                tell(ident, document, body)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise NotHeld("line", "The event lacks a member, or has one of the wrong type.") from None
        if thing == "command" and "effect" in body and ident in self.commands:
            self.commands[ident].ends = {name: body.get(name) for name in ENDS}

    def _posture(self, thing: str, subject: str, kind: str, body: dict[str, Any]) -> None:
        """Who the people are, and whether one of them may decide alone."""
        if kind == "tenant.created" and self.complete and self.people is None:
            self.people = {}
        if thing == "break_glass":
            self.one_may_decide = kind == "break_glass.on"
        if self.people is not None and thing == "user":
            self._member(self.people.setdefault(subject, Person()), kind, body)

    def _member(self, person: Person, kind: str, body: dict[str, Any]) -> None:
        match kind:
            case "user.created" | "membership.roles_set":
                roles = body.get("roles" if kind == "user.created" else "after")
                person.roles = set(map(str, roles)) if isinstance(roles, list) else set()
            case "group.joined":
                person.groups.add(str(body.get("group")))
            case "group.left":
                person.groups.discard(str(body.get("group")))
            case (
                "membership.deactivated" | "user.deactivated" | "membership.reactivated" | "user.reactivated"
            ):
                person.active = kind.endswith("reactivated")

    def _move(self, thing: str, subject: str, kind: str, document: dict[str, Any]) -> None:
        """From the state in which the thing was, to another."""
        after = document["to"]
        if not after or (kind != f"{thing}.{after}" and kind != "proposal.made"):
            return
        known = self.states.get(subject)
        if known is not None and document["from"] != known:
            says = f"The {thing} moves from {shown(document['from'])!r}, but it was {known!r}."
            raise NotHeld("state", says)
        self.states[subject] = sys.intern(after)

    def _made(self, ident: str, document: dict[str, Any], body: dict[str, Any]) -> None:
        if ident in self.proposals:
            raise NotHeld("proposal", "A proposal is made for the second time.")
        needed = body.get("needed")
        self.proposals[ident] = Proposal(
            str(document["digest"]), str(body.get("view_digest", "")), str(document["run"]),
            needed if type(needed) is int else 1, str(body.get("mode", "")), str(body.get("row", "")),
            version=body.get("version"), says_so=body.get("approval") == "passkey",
            signed=body.get("approval") == "passkey" or body.get("operation") in self.must_be_signed,
        )  # fmt: skip
        if "decide_by" in body:
            made = self.proposals[ident]
            made.decide_by = instant(body["decide_by"])
            made.asked.add(("reviewer", str(body.get("group", ""))))

    def _escalated(self, ident: str, document: dict[str, Any], body: dict[str, Any]) -> None:
        proposal = self._proposal(ident, document)
        if proposal is not None and proposal.asked:
            group = str(body.get("group") or "")
            proposal.asked.add(("reviewer" if group else str(body.get("role")), group))

    def _proposal(self, ident: str, document: dict[str, Any]) -> Proposal | None:
        found = self.proposals.get(ident)
        if found is None:
            if self.complete:
                raise NotHeld("proposal", "It is about a proposal that was never made.")
        elif document["digest"] != found.digest:
            raise NotHeld("digest", "It names another contract than the one that the proposal was made with.")
        return found

    def _voted(self, ident: str, document: dict[str, Any], body: dict[str, Any]) -> None:
        proposal = self._proposal(ident, document)
        if proposal is None:
            return
        if document["via"] not in ("session", "rule"):
            raise NotHeld("decision", f"A decision came by {shown(document['via'])}, which decides nothing.")
        view = str(body.get("view_digest", proposal.view))
        if view != proposal.view:
            raise NotHeld(
                "decision", "The decision names another view than the one that was made for the proposal."
            )
        vote_id, replaced = str(body.get("decision_id")), self.votes.get(str(body.get("replaces")))
        if vote_id in self.votes:
            raise NotHeld("decision", "The same decision is recorded twice.")
        if replaced is not None:
            replaced.standing = False
        self.votes[vote_id] = Vote(
            ident, str(body.get("kind")), str(document["performed_by"]), str(document["via"]), view,
            row=str(body.get("row", "")),
        )  # fmt: skip
        proposal.votes.append(vote_id)
        self._in_time(proposal, document, body.get("at"))
        if document["via"] == "session":
            self._may_decide(proposal, str(document["performed_by"]), body)

    def _in_time(self, proposal: Proposal, document: dict[str, Any], at: Any) -> None:
        until = proposal.decide_by
        if until is None:
            return
        if instant(document["at"]) >= until + WHILE_IT_IS_DONE or (at is not None and instant(at) >= until):
            says = f"It was decided after its time: until {until:%Y-%m-%d %H:%M:%S} UTC, and at {document['at']}."
            raise NotHeld("late", shown(says))

    def _may_decide(self, proposal: Proposal, by: str, body: dict[str, Any]) -> None:
        """As the people were then: a member with the role, and in the group, that was asked."""
        if "role" not in body:
            return  # it is from before that was recorded
        role, group = str(body["role"]), str(body.get("group", ""))
        if proposal.asked and (role, group) not in proposal.asked:
            raise NotHeld("decider", f"The decision is by a {shown(role)} of a group that was not asked.")
        if self.people is None:
            return
        person = self.people.get(by)
        if person is None or not person.active or role not in person.roles:
            raise NotHeld("decider", f"The decision is by {shown(by)}, who was no {shown(role)} then.")
        place = self.people.get(f"user:{body['in_stead_of']}") if "in_stead_of" in body else person
        if body.get("posture") and not self.one_may_decide:
            raise NotHeld("decider", "The decision claims a break-glass posture that was not in force.")
        if place is None or (group and group not in place.groups):
            raise NotHeld("decider", f"The decision is by {shown(by)}, who had no place in the group then.")

    def _key(self, kind: str, person: str, body: dict[str, Any]) -> None:
        """A passkey was registered, or removed. Those of before such events named keys sign nothing."""
        name = (person, str(body.get("credential_id")))
        if kind == "user.mfa_added" and isinstance(body.get("public_key"), str):
            self.keys[name] = body["public_key"]
        else:
            self.keys.pop(name, None)

    def _signed(self, ident: str, document: dict[str, Any], body: dict[str, Any]) -> None:
        """The approver's passkey signed this decision: the signature itself, what it is over, and whose key it is."""
        proposal = self._proposal(ident, document)
        vote_id = str(body.get("decision_id"))
        vote = self.votes.get(vote_id)
        if proposal is None:
            return
        if vote is None or vote.proposal != ident or vote.kind != "approve" or vote_id in self.signatures:
            raise NotHeld("signature", "A signature is told of a decision that it does not belong to.")
        meant = {
            "tenant": document["tenant"], "proposal": ident, "version": proposal.version, "digest": proposal.digest,
            "view_digest": proposal.view, "decision": "approve", "approver": vote.by.removeprefix("user:"),
        }  # fmt: skip
        signed = body.get("document")
        for name, value in meant.items():
            if (
                not isinstance(signed, dict)
                or signed.get(name) != value
                or type(signed[name]) is not type(value)
            ):
                raise NotHeld("signature", f"What the passkey signed names another {name} than the decision.")
        if problem := passkey_problem(body):
            raise NotHeld("signature", f"The signature of a passkey does not hold: {problem}.")
        self._whose(vote, body)
        self.signatures[vote_id] = signature_hash(canonical(signed).decode(), body)

    def _whose(self, vote: Vote, body: dict[str, Any]) -> None:
        """That the key was this person's when they signed: by the history, and by what the people themselves say."""
        known = self.keys.get((vote.by, str(body["credential_id"])))
        if self.trusted is not None:
            mark = _sha256(unbase64(body["public_key"]) or b"").hex()
            if mark not in self.trusted.get(vote.by, ()):
                says = (
                    f"It is signed by a passkey ({mark[:16]}…) that is none of those that {vote.by} gave you."
                )
                raise NotHeld("passkey", says)
        if known is None and self.every_event:
            raise NotHeld(
                "passkey", f"It is signed by a passkey that was not registered for {shown(vote.by)}."
            )
        if known is not None and known != body["public_key"]:
            raise NotHeld("passkey", "It is signed by another key than the one that was registered.")
        if known is None and self.trusted is None:
            self.lacks.add("registration of passkeys that signed")

    def _approved(self, ident: str, document: dict[str, Any], body: dict[str, Any]) -> None:
        proposal = self._proposal(ident, document)
        if proposal is None:
            return
        votes = [self.votes[vote] for vote in proposal.votes]
        people = {vote.by for vote in votes if vote.standing and vote.kind == "approve"}
        by_rule = any(vote.via == "rule" for vote in votes)
        if len(people) < max(1, proposal.needed) or (by_rule and proposal.needed > 0):
            says = f"It is called approved by {len(people)} decisions, and needs {max(1, proposal.needed)}."
            raise NotHeld("quorum", says)
        if proposal.signed:
            self._enough_signed(proposal)
        self._in_time(proposal, document, body.get("decided_at"))
        proposal.approved = True
        if "decided_at" in body:
            proposal.times = instant(body["decided_at"]), instant(body["execute_by"])

    def _enough_signed(self, proposal: Proposal) -> None:
        standing = {one for one in proposal.votes if self.votes[one].standing and one in self.signatures}
        people = {self.votes[one].by for one in standing}
        if len(people) < max(1, proposal.needed):
            says = (
                f"Each approval must be signed by a passkey, and of the {max(1, proposal.needed)} that it needs"
                f" {len(people)} are."
            )
            raise NotHeld("signature", says)

    def _ordered(self, ident: str, document: dict[str, Any], body: dict[str, Any]) -> None:
        if document["from"]:
            self._command(ident)  # it is ready once more: it was held, or its worker was lost before it sent
            return
        of = str(body.get("proposal_id"))
        proposal = self.proposals.get(of)
        if proposal is None:
            if self.complete:
                raise NotHeld("command", "A command is given for a proposal that was never made.")
            return
        if not proposal.approved or document["digest"] != proposal.digest:
            raise NotHeld("command", "A command is given for a contract that was not approved.")
        if proposal.command or ident in self.commands:
            raise NotHeld("command", "A second command is given for one proposal.")
        proposal.command = ident
        self.commands[ident] = Command(of, str(body.get("key", "")), str(body.get("row", "")))

    def _command(self, ident: str) -> Command | None:
        found = self.commands.get(ident)
        if found is None and self.complete:
            raise NotHeld("command", "It is about a command that was never given.")
        return found

    def _claimed(self, ident: str, *_: Any) -> None:
        command = self._command(ident)
        if command is not None:
            command.claims += 1

    def _sent(self, ident: str, document: dict[str, Any], body: dict[str, Any]) -> None:
        command = self._command(ident)
        if command is None:
            return
        command.sends += 1
        proposal = self.proposals[command.proposal]
        state = self.states.get(f"proposal:{command.proposal}")
        if document["digest"] not in ("", proposal.digest) or state not in ("approved", None):
            raise NotHeld(
                "command", f"A command is sent whose proposal was {state}, or with another contract."
            )
        late = proposal.times is not None and instant(document["at"]) >= proposal.times[1] + WHILE_IT_IS_DONE
        if late and document["from"] == "claimed":
            raise NotHeld("late", "A command is sent after the approval had lapsed.")
        if "sent_at" in body:
            command.sent_at.add(instant(body["sent_at"]))

    def _content_erased(self, ident: str, *_: Any) -> None:
        self.erased.add(ident)


def signature_hash(document: str, parts: dict[str, Any]) -> bytes:
    """All of a signature in one value, for comparing."""
    return _sha256(canonical([document, *(parts.get(name) for name in SIGNED_PARTS)]))


# --- contents and rows -----------------------------------------------------------------------------------------------


class Contents:
    """The stored contracts and views, each by its digest."""

    BOUND: Final = (
        "run_id",
        "step",
        "operation",
        "operation_version",
        "target",
        "idempotency_key",
        "decide_by",
    )

    def __init__(self, bundle: Bundle) -> None:
        self.contracts: dict[str, tuple[Any, ...] | str] = {}
        """What a contract binds, or why it is not here: *erased*, *left out*."""
        self.views: dict[str, str] = {}
        self.signed: set[str] = set()
        """The digests of contracts of which each approval must be signed."""
        self.left_out = 0
        self.evidence_gone: list[str] = []
        """Contracts a piece of whose evidence is called erased."""
        for where, line in bundle.documents("contracts.jsonl"):
            self._take(line, "contract", CONTRACT, where)
        for where, line in bundle.documents("views.jsonl"):
            self._take(line, "view", VIEW, where)

    def _take(self, line: dict[str, Any], name: str, domain: bytes, where: str) -> None:
        digest, stored = str(line.get("digest")), line.get(name)
        known: dict[str, Any] = self.contracts if name == "contract" else self.views
        if digest in known or re.fullmatch(r"[0-9a-f]{64}", digest) is None:
            what = "is there twice" if digest in known else "has no digest"
            raise NotHeld("content", f"A {name} {what}.", where=where)
        if type(line.get("erased")) is not bool or (line["erased"] and stored is not None):
            raise NotHeld("content", f"A {name} is called neither here nor gone.", where=where)
        if line.get("damaged"):
            raise NotHeld(
                "content", f"The stored {name} {digest} could not be read: it was changed.", where=where
            )
        if stored is None:
            known[digest] = "erased" if line["erased"] else "left out"
            self.left_out += not line["erased"]
            return
        raw = unbase64(stored)
        if raw is None or hashlib.sha256(domain + raw).hexdigest() != digest:
            raise NotHeld(
                "content", f"The stored {name} is not the one with the digest {shown(digest)}.", where=where
            )
        try:
            document = canonical_document(raw)
            known[digest] = (
                self._bound(digest, document) if name == "contract" else str(document.get("contract_digest"))
            )
            if name == "contract":
                self._evidence(digest, document.get("evidence", []), line.get("evidence"), where)
        except (ValueError, AttributeError, KeyError, TypeError):
            raise NotHeld("content", f"The stored {name} {digest} is no {name}.", where=where) from None

    def _evidence(self, contract: str, named: Any, pieces: Any, where: str) -> None:
        """What it rests on: the pieces that the contract names, in its order, each with the bytes of its digest."""
        if pieces is None:
            return  # the bundle is from before they came along
        if [piece["digest"] for piece in pieces] != named:
            raise NotHeld("evidence", f"The evidence is not what the contract {contract} names.", where=where)
        for piece in pieces:
            content, salt = unbase64(piece["content"]), unbase64(piece["salt"])
            if piece["content"] is None and not piece.get("damaged"):
                self.evidence_gone += [contract] if piece["erased"] else []
                self.left_out += not piece["erased"]
            elif (
                content is None
                or salt is None
                or f"sha256:{_sha256(salt + content).hex()}" != piece["digest"]
            ):
                says = f"A piece of the evidence of the contract {contract} is not the one with its digest."
                raise NotHeld("evidence", says, where=where)

    def _bound(self, digest: str, contract: dict[str, Any]) -> tuple[Any, ...]:
        if not isinstance(contract["arguments"], dict):
            raise TypeError
        if contract.get("approval") == "passkey":
            self.signed.add(digest)
        return tuple(contract[member] for member in self.BOUND)


class Rows:
    """The tables as they are now, against what the history says."""

    def __init__(self, story: Story, contents: Contents, *, whole_tenant: bool = True) -> None:
        self.story, self.contents, self.whole_tenant = story, contents, whole_tenant
        self.seen: dict[str, set[str]] = {}
        self.attempts: dict[str, int] = {}
        self.sent: dict[str, int] = {}
        self.missing: set[str] = set()
        self.tried_at: dict[str, set[datetime]] = {}
        self.originals: dict[str, str] = {}
        """Of each run, the one whose identity its keys are made of."""
        self.keys: list[dict[str, Any]] = []
        self._check: dict[str, Callable[[dict[str, Any]], None]] = {
            "proposal": self._proposal, "decision": self._decision, "command": self._command, "attempt": self._attempt,
            "signature": self._signature,
            "run": self._run,
        }  # fmt: skip

    def take(self, row: dict[str, Any]) -> None:
        """Raises NotHeld, without its place."""
        table, ident = str(row.get("table")), str(row.get("id"))
        if len(table) > LONGEST_NAME or len(ident) > LONGEST_NAME:
            raise NotHeld("row", f"No export makes a row called like this: {shown(table)} {shown(ident)}.")
        seen = self.seen.setdefault(table, set())
        if ident in seen:
            raise NotHeld("row", f"The {shown(table)} {shown(ident)} is there twice.")
        seen.add(ident)
        if table in STATEFUL:
            self._state(table, ident, row)
        check = self._check.get(table)
        if check is not None:
            check(row)

    def _state(self, table: str, ident: str, row: dict[str, Any]) -> None:
        known = self.story.states.get(f"{table}:{ident}", "pending" if table == "step" else None)
        if known is None and self.story.complete:
            raise NotHeld("row", f"The {table} {shown(ident)} stands in no event of the history.")
        if known is not None and row.get("status") != known:
            says = f"The {table} {shown(ident)} is {shown(row.get('status'))!r} in its row; the history says {known!r}."
            raise NotHeld("row", says)

    def _proposal(self, row: dict[str, Any]) -> None:
        known = self.story.proposals.get(str(row.get("id")))
        if known is None:
            return
        for name, said in (
            ("digest", known.digest), ("view_digest", known.view), ("run_id", known.run), ("needed", known.needed),
            ("mode", known.mode),
        ):  # fmt: skip
            self._same("proposal", row, name, said)
        self._as_made(row, known)
        bound = self.contents.contracts.get(known.digest)
        if known.digest in self.contents.evidence_gone:
            self._erased(known)
        if bound is None:
            self.missing.add("contracts of proposals")
        elif isinstance(bound, tuple):
            for name, said in zip(Contents.BOUND, bound, strict=True):
                self._same("proposal", row, name, said)
        elif bound == "erased":
            self._erased(known)
        self._view(known)

    def _as_made(self, row: dict[str, Any], known: Proposal) -> None:
        """Its columns as the first event says, its times as the approval, signed where contract and event say so."""
        is_here = isinstance(self.contents.contracts.get(known.digest), tuple)
        if is_here and (known.digest in self.contents.signed) != known.says_so:
            says = "The contract and the event of its making differ in whether each approval must be signed."
            raise NotHeld("signature", says)
        self._as_recorded("proposal", row, known.row)
        if known.row:
            self.keys.append(row["bound"])
        if known.times is not None and self._times(row) != known.times:
            raise NotHeld("row", f"The proposal {shown(row.get('id'))} has other times than its approval.")

    def _times(self, row: dict[str, Any]) -> tuple[datetime, datetime]:
        try:
            return instant(row.get("decided_at")), instant(row.get("execute_by"))
        except ValueError:
            raise NotHeld(
                "row", f"The proposal {shown(row.get('id'))} has no times of an approval."
            ) from None

    def _as_recorded(self, table: str, row: dict[str, Any], digest: str) -> None:
        """The columns that never change are those that its event knows, and the row says nothing else beside them."""
        if not digest:
            return  # the event is from before
        bound = row.get("bound")
        same = isinstance(bound, dict) and (bound.get("table"), bound.get("id")) == (table, row.get("id"))
        try:
            same = same and hashlib.sha256(ROW + canonical(bound)).hexdigest() == digest
        except (ValueError, TypeError):
            same = False
        if not same or bound is None:
            raise NotHeld("row", f"The {table} {shown(row.get('id'))} is not as its event recorded it.")
        for name in row.keys() & bound.keys() - {"decide_by"}:
            self._same(table, row, name, bound[name])

    def _run(self, row: dict[str, Any]) -> None:
        self.originals[str(row.get("id"))] = str(row.get("original_id") or row.get("id"))

    def _view(self, known: Proposal) -> None:
        of = self.contents.views.get(known.view)
        if of is None:
            self.missing.add("views of proposals")
        elif of == "erased":
            self._erased(known)
        elif of not in ("left out", known.digest):
            raise NotHeld("row", "What was shown to the reviewers is the view of another contract.")

    def _erased(self, known: Proposal) -> None:
        if known.run not in self.story.erased and self.story.complete:
            raise NotHeld(
                "content", f"The contents of run {shown(known.run)} are gone, and no event says so."
            )

    def _decision(self, row: dict[str, Any]) -> None:
        vote = self.story.votes.get(str(row.get("id")))
        if vote is None:
            if self.story.complete:
                raise NotHeld(
                    "row", f"The decision {shown(row.get('id'))} stands in no event of the history."
                )
            return
        digest = self.story.proposals[vote.proposal].digest
        for name, said in (
            ("proposal_id", vote.proposal), ("kind", vote.kind), ("performed_by", vote.by), ("via", vote.via),
            ("digest", digest), ("view_digest", vote.view), ("standing", vote.standing),
        ):  # fmt: skip
            self._same("decision", row, name, said)
        self._as_recorded("decision", row, vote.row)
        if row.get("own") is True and not row.get("posture"):
            raise NotHeld("decision", f"The decision {shown(row.get('id'))} is on the person's own proposal.")

    def _signature(self, row: dict[str, Any]) -> None:
        known = self.story.signatures.get(str(row.get("id")))
        if known is None and not self.story.complete:
            return
        if known is None or signature_hash(str(row.get("document")), row) != known:
            says = f"The signature of the decision {shown(row.get('id'))} is not the one that the history tells of."
            raise NotHeld("row", says)

    def _command(self, row: dict[str, Any]) -> None:
        command = self.story.commands.get(str(row.get("id")))
        if command is not None:
            self._same("command", row, "proposal_id", command.proposal)
            self._same("command", row, "idempotency_key", command.key)
            self._as_recorded("command", row, command.row)
            for name, said in command.ends.items():
                self._same("command", row, name, said)

    def _attempt(self, row: dict[str, Any]) -> None:
        ident = str(row.get("command_id"))
        command = self.story.commands.get(ident)
        if command is None:
            if self.story.complete:
                raise NotHeld(
                    "row", f"The attempt {shown(row.get('id'))} belongs to no command of the history."
                )
            return
        self.attempts[ident] = self.attempts.get(ident, 0) + 1
        self.sent[ident] = self.sent.get(ident, 0) + (row.get("sent_at") is not None)
        if row.get("sent_at") is not None:
            self.tried_at.setdefault(ident, set()).add(self._instant(row, "sent_at"))
        if self.sent[ident] > command.sends or self.attempts[ident] > command.claims + command.sends:
            raise NotHeld("row", f"The command {shown(ident)} has more attempts than the history tells.")

    def _instant(self, row: dict[str, Any], name: str) -> datetime:
        try:
            return instant(row.get(name))
        except ValueError:
            raise NotHeld("row", f"The {name} of {shown(row.get('id'))} is no time.") from None

    def _same(self, table: str, row: dict[str, Any], name: str, said: Any) -> None:
        if row.get(name) != said or type(row.get(name)) is not type(said):
            it_is = f"{name} of the {table} {shown(row.get('id'))} is {shown(row.get(name))!r}"
            says = f"{it_is}, and should be {shown(said)!r}."
            raise NotHeld("row", says)

    def _moved(self, thing: str) -> dict[str, Any]:
        """What has moved, of a whole history: that of one run may speak of others."""
        if not self.whole_tenant:
            return {}
        return {name.partition(":")[2]: name for name in self.story.states if name.startswith(f"{thing}:")}

    def check_end(self, *, whole: bool) -> None:
        """Whatever the history tells of is still there."""
        told: dict[str, dict[str, Any]] = {
            "proposal": self.story.proposals,
            "decision": self.story.votes,
            "command": self.story.commands,
            "signature": self.story.signatures,
            "run": self._moved("run"),
            "step": self._moved("step"),
        }
        for table, known in told.items() if whole else ():
            gone = next((ident for ident in known if ident not in self.seen.get(table, ())), None)
            if gone is not None:
                says = f"The {table} {shown(gone)} stands in the history and no more in its table."
                raise NotHeld("row", says, where="tables.jsonl")
        if whole:
            self._all_sent()
            self._all_keys()

    def _all_sent(self) -> None:
        """Each request that the history tells of has its try, at that time."""
        for ident, command in self.story.commands.items():
            gone = command.sent_at - self.tried_at.get(ident, set())
            if command.sends != self.sent.get(ident, 0) or gone:
                says = f"The requests of the command {shown(ident)} are not those that the history tells of."
                raise NotHeld("row", says, where="tables.jsonl")

    def _all_keys(self) -> None:
        """Each idempotency key is made of tenant, run, step and generation, and of nothing else."""
        for bound in self.keys:
            run = self.originals.get(str(bound.get("run_id")))
            parts = [str(bound.get("tenant_id")), run, str(bound.get("step")), str(bound.get("generation"))]
            if run is not None and bound.get("idempotency_key") != key_of([str(part) for part in parts]):
                says = f"The key of the proposal {shown(bound.get('id'))} is not made of its run, step and generation."
                raise NotHeld("key", says, where="tables.jsonl")


def key_of(parts: Sequence[str]) -> str:
    """The idempotency key: base32 of a hash over the parts, each behind its length."""
    joined = b"".join(len(raw).to_bytes(4, "big") + raw for raw in map(str.encode, parts))
    return base64.b32encode(_sha256(KEY + joined)).decode().rstrip("=")


# --- receipts --------------------------------------------------------------------------------------------------------


@dataclass
class Receipt:
    """What the server signed about one event when it happened, and somebody kept."""

    event: str
    tenant: str
    run: str
    content: str
    issued: str
    seq: int | None
    hash: str
    source: str
    proof: Any = None
    checkpoint: str = ""
    found: bool = False

    def signed(self, keys: Keys) -> list[Checkpoint]:
        """The checkpoint in it, which was kept outside with it. Raises NotHeld where its proof does not lead there."""
        found = checkpoints_in(self.checkpoint, keys, self.source, outside=True)
        for one in found:
            path = proof_steps(self.proof.get("path")) if isinstance(self.proof, dict) else None
            known = (
                isinstance(self.seq, int) and re.fullmatch(r"[0-9a-f]{64}", self.hash) and path is not None
            )
            entry = bytes.fromhex(self.hash) if known else b""
            if not known or root_by_proof(entry, (self.seq or 0) - 1, one.size, path or []) != one.root:
                says = f"The proof in {shown(self.source)} does not lead to the checkpoint in it."
                raise NotHeld("receipt", says, where=self.source)
        return found


def proof_steps(path: Any) -> list[bytes] | None:
    """The hashes of a proof of inclusion; None for what is none."""
    steps = [unbase64(step) for step in path] if isinstance(path, list) and len(path) < 64 else [None]
    found = [step for step in steps if step is not None and len(step) == 32]
    return found if len(found) == len(steps) else None


def read_receipt(path: Path, keys: Keys) -> Receipt:
    """Raises Unreadable for a file that is no receipt, or that none of the keys has signed."""
    try:
        with path.open("rb") as file:
            document = read_json(file.read(LONGEST_FILE))
        signature = document.pop("signature")
        key = keys.receipts.get(str(signature["key_id"]))
        if key is None:
            raise Unreadable(f"{path.name} was signed with a key that --pubkey does not hold.")
        if not signed_by(key, unbase64(signature["value"]) or b"", RECEIPT + canonical(document)):
            raise Unreadable(f"{path.name} is not what was signed.")
        return Receipt(
            str(document["event_id"]), str(document["tenant_id"]), str(document["run_id"]),
            str(document["content_hash"]), instant(document["issued_at"]).isoformat(), document["seq"],
            str(document["hash"]), path.name, document.get("proof"), str(document.get("checkpoint")),
        )  # fmt: skip
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Unreadable(f"{path.name} is no receipt of the history.") from None


class Receipts:
    """Those that somebody kept outside, by their event."""

    def __init__(self, receipts: Sequence[Receipt]) -> None:
        self.of: dict[str, list[Receipt]] = {}
        for one in receipts:
            self.of.setdefault(one.event, []).append(one)

    def compare(self, document: dict[str, Any], chain: Chain | None) -> None:
        for one in self.of.get(str(document["id"]), ()):
            plain = {name: document[name] for name in document if name not in ("seq", "previous")}
            one.found = True
            moved = (
                chain is not None and one.seq is not None and (one.seq, one.hash) != (chain.seq, chain.hash)
            )
            if hashlib.sha256(CONTENT + canonical(plain)).hexdigest() != one.content or moved:
                says = f"The event is not the one of which {shown(one.source)} was given at {one.issued}."
                raise NotHeld("receipt", says)

    def check_end(self, manifest: Manifest) -> list[str]:
        """What could not be compared. Raises NotHeld for an event that should be here."""
        left = []
        for one in (one for those in self.of.values() for one in those if not one.found):
            belongs = one.tenant == manifest.tenant and (
                manifest.kind == "tenant" or (manifest.kind == "run" and one.run == manifest.run)
            )
            if belongs and instant(one.issued) <= manifest.made:
                says = (
                    f"The event of {shown(one.source)}, of which a receipt was given at {one.issued}, is not in the"
                    " history: it was taken out, or the end of the history was cut off."
                )
                raise NotHeld("receipt", says, seq=one.seq, event=one.event, where=one.source)
            left.append(f"{shown(one.source)} is about an event outside of this bundle.")
        return left


# --- all together ----------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """What was found, for people and for programs."""

    code: int = PROVEN
    broken: NotHeld | None = None
    lacks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        first = self.broken
        place = None if first is None else {
            "what": first.what, "says": first.says, "seq": first.seq, "event": first.event, "where": first.where,
        }  # fmt: skip
        result = ("proven", "does not hold", "incomplete")[self.code]
        return {"result": result, "first": place, "lacks": self.lacks, "notes": self.notes, **self.facts}


class Verifier:
    """One pass over a bundle, with what came from outside."""

    def __init__(
        self, bundle: Bundle, keys: Keys, outside: Sequence[Checkpoint], receipts: Sequence[Receipt], *,
        contents_left_out: bool = False, passkeys: dict[str, set[str]] | None = None, signed: Sequence[str] = (),
        as_of: str = "",
    ) -> None:  # fmt: skip
        self.bundle, self.keys, self.report = bundle, keys, Report()
        self.manifest = manifest_of(bundle)
        self.outside = [one for one in outside if one.tenant == self.manifest.tenant]
        along = [one for one in self._along() if one.tenant == self.manifest.tenant]
        self.checkpoints = [*self.outside, *along]
        self.chain = Chain(self.manifest, self.checkpoints)
        kind = self.manifest.kind
        self.story = Story(
            from_the_start=kind != "range",
            every_event=kind == "tenant",
            passkeys=passkeys,
            must_be_signed=signed,
        )
        self.receipts = Receipts(receipts)
        self.contents_left_out = contents_left_out
        self.as_of = as_of if self.chain.is_whole else ""
        self.unsealed = 0

    def _along(self) -> Iterator[Checkpoint]:
        for name in self.bundle.names:
            if name.startswith("checkpoints/"):
                note = self.bundle.whole(name, LONGEST_NOTE).decode(errors="replace")
                yield from checkpoints_in(note, self.keys, name, outside=False)

    def run(self) -> Report:
        self._breaks()
        self._one_word()
        self._events()
        self._unsealed()
        self.chain.check_end()
        contents = Contents(self.bundle)
        rows = Rows(self.story, contents, whole_tenant=self.chain.is_whole)
        self._rows(rows)
        self.report.lacks += self.receipts.check_end(self.manifest)
        self._say(contents, rows)
        return self.report

    def _breaks(self) -> None:
        """That a history was set back with somebody's word is said whatever is found."""
        for one in self.checkpoints:
            if one.breaks:
                says = f"At event {one.size} a person accepted a break: {shown(one.breaks)}."
                self.report.notes += [] if says in self.report.notes else [says]

    def _one_word(self) -> None:
        """A signer that says two things of one size has been made to, or its key is in other hands."""
        for size, those in sorted(self.chain.roots.items()):
            if len({one.root for one in those}) > 1:
                says = f"Two different histories of {size} events were signed: {shown(those[0].source)} and another."
                raise NotHeld("signer", says, seq=size)

    def _events(self) -> None:
        proofs = self._proofs()
        proof = next(proofs, None)
        for number, raw in self.bundle.lines("events.jsonl", LONGEST_EVENT):
            document: dict[str, Any] = {}
            try:
                document = self.chain.follow(raw)
                self._inside(document)
                self.story.hear(document)
                if proof is not None and proof[0] == self.chain.seq:
                    self.chain.prove(*proof[1:])
                    proof = next(proofs, None)
                if self.receipts.of:
                    self.receipts.compare(document, self.chain)
            except NotHeld as first:
                first.seq = first.seq or self.chain.seq
                first.event = first.event or shown(document.get("id", ""))
                first.where = first.where or f"events.jsonl:{number}"
                raise

    def _inside(self, document: dict[str, Any]) -> None:
        if (
            self.manifest.kind == "run" and document["run"] != self.manifest.run
            and document["kind"] not in KEY_EVENTS
        ):  # fmt: skip
            raise NotHeld("tenant", "The event belongs to another run.")

    def _proofs(self) -> Iterator[tuple[int, int, list[bytes]]]:
        for where, line in self.bundle.documents("proofs.jsonl"):
            seq, size, path = line.get("seq"), line.get("size"), line.get("path")
            steps = proof_steps(path)
            if type(seq) is not int or type(size) is not int or steps is None:
                raise NotHeld("proof", "This is no proof of inclusion.", where=where)
            yield seq, size, steps

    def _unsealed(self) -> None:
        """What has happened and has no place yet: it explains the rows, and proves nothing."""
        for where, document in self.bundle.documents("unsealed.jsonl"):
            bare = MEMBERS - {"seq", "previous"}
            if not has_members(document, bare) or document["tenant"] != self.manifest.tenant:
                raise NotHeld("line", "An event without a place has not the members of one.", where=where)
            self.unsealed += 1
            try:
                self._inside(document)
                self.story.hear(document)
                self.receipts.compare(document, None)
            except NotHeld as first:
                first.event, first.where = shown(document["id"]), where
                raise

    def _rows(self, rows: Rows) -> None:
        if self.manifest.kind == "range" and not self.bundle.has("tables.jsonl"):
            return  # what its rows are, a stretch of the history does not say
        if not self.bundle.has("tables.jsonl"):
            self.report.lacks.append(
                "The bundle has no tables.jsonl: the tables were not compared with the history."
            )
            return
        for where, row in self.bundle.documents("tables.jsonl"):
            try:
                rows.take(row)
            except NotHeld as first:
                first.where = where
                raise
        rows.check_end(whole=self.manifest.kind != "range")

    def _say(self, contents: Contents, rows: Rows) -> None:
        lacks = self.report.lacks
        self._say_how_far()
        if contents.left_out and not self.contents_left_out:
            lacks.append(
                f"{contents.left_out} contracts and views were left out of the export: their digests stand in the"
                " history, their bytes were not compared (--contents-left-out if that is meant)."
            )
        lacks += [f"The bundle has none of the {what}." for what in sorted(rows.missing | self.story.lacks)]
        self.report.code = INCOMPLETE if lacks else PROVEN
        self._notes(contents)

    def _say_how_far(self) -> None:
        """How far what came from outside reaches; behind the time that was asked for, nothing is missed."""
        lacks, chain = self.report.lacks, self.chain
        newer = self.report.notes if self.as_of else lacks
        mine = [one for one in self.outside if not self.as_of or one.time <= self.as_of]
        if not mine:
            before = f" of {self.as_of} or before" if self.as_of else ""
            lacks.append(
                f"There is no checkpoint of this tenant{before} from outside that the key has signed."
            )
        if tail := chain.count - chain.proven:
            newer.append(self._tail(tail))
        if self.unsealed:
            newer.append(f"{self.unsealed} newer events have no place in the chain yet.")
        later = [one.size for one in mine if one.size > chain.seq] if chain.is_whole else []
        if later:
            lacks.append(
                f"The history went on to event {max(later)} after this bundle says that it was made"
                f" ({shown(self.manifest.made_at)}): ask for a new one."
            )

    def _tail(self, tail: int) -> str:
        chain = self.chain
        if not chain.is_whole:
            return f"{tail} of {chain.count} events stand under no signed checkpoint yet."
        first = chain.proven_to + 1
        return f"The last {tail} events ({first} to {chain.seq}) stand under no signed checkpoint yet."

    def _notes(self, contents: Contents) -> None:
        notes = self.report.notes
        gone = sum(bound == "erased" for bound in contents.contracts.values())
        if gone:
            notes.append(f"{gone} contracts were erased, as the history says; their digests stand.")
        if self.manifest.kind == "run":
            notes.append(
                "Of one run: that no event of it is left out, only the bundle of the whole tenant shows."
            )

    def facts(self) -> dict[str, Any]:
        chain, said = self.chain, self.manifest
        root = base64.b64encode(chain.tree.root()).decode() if chain.is_whole else None
        matched = [one for one in chain.matched if one.outside]
        return {
            "tenant": said.tenant, "tenant_name": said.name, "scope": said.kind, "run_id": said.run or None,
            "made_at": said.made_at, "events": chain.count, "last_seq": chain.seq, "first_at": chain.times[0],
            "last_at": chain.times[1], "root": root, "proven_events": chain.proven,
            "checkpoints_matched": [one.source for one in matched],
            "checkpoints_along": len(chain.matched) - len(matched), "unsealed": self.unsealed,
        }  # fmt: skip


NO_BUNDLE: Final = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError,
)  # fmt: skip
"""What reading one raises where it is none."""


def verify(
    path: Path, checkpoints: Path, keys: Sequence[Path], receipts: Sequence[Path] = (), *,
    contents_left_out: bool = False, passkeys: Path | None = None, signed: Sequence[str] = (), as_of: str = "",
) -> Report:  # fmt: skip
    """The report on one bundle; whatever is wrong with it is said in there."""
    report, verifier = Report(), None
    try:
        known = read_keys([_small(key) for key in keys])
        outside, ignored = outside_checkpoints(checkpoints, known)
        kept = [read_receipt(one, known) for one in receipts]
        outside += [checkpoint for one in kept for checkpoint in one.signed(known)]
        trusted = None if passkeys is None else read_passkeys(passkeys)
        with closing(Bundle(path)) as bundle:
            bundle.check_names()
            verifier = Verifier(
                bundle, known, outside, kept, contents_left_out=contents_left_out, passkeys=trusted, signed=signed,
                as_of=as_of,
            )  # fmt: skip
            report = verifier.report
            report.notes += [
                f"{shown(name)} holds no checkpoint that the key has signed." for name in ignored
            ]
            verifier.run()
    except NotHeld as first:
        report.code, report.broken = BROKEN, first.with_traceback(None)
    except Unreadable as error:
        report.code, report.lacks = INCOMPLETE, [*report.lacks, str(error)]
    except NO_BUNDLE as error:
        report.code, report.lacks = INCOMPLETE, [f"The bundle cannot be read: {shown(error)}."]
    except Exception as error:  # noqa: BLE001 - whatever somebody put into it, the answer is a sentence
        says = f"This program cannot go on ({type(error).__name__}): take none of it as proven."
        report.code, report.lacks = INCOMPLETE, [*report.lacks, says]
    if verifier is not None:
        report.facts = verifier.facts()
    return report


def _small(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LONGEST_FILE)
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}.") from None


def said(report: Report) -> str:
    """The report in lines for people."""
    facts, lines = report.facts, []
    if facts:
        scope = {"tenant": "whole", "run": f"run {facts['run_id']}", "range": "a stretch"}[facts["scope"]]
        mine, along = len(facts["checkpoints_matched"]), facts["checkpoints_along"]
        lines += [
            f"History of  {shown(facts['tenant_name'])} ({shown(facts['tenant'])}), {shown(scope)}",
            f"Exported    {shown(facts['made_at'])}",
            f"Events      {facts['events']:,}, the last one number {facts['last_seq']:,}",
            f"From, to    {shown(facts['first_at'])}, {shown(facts['last_at'])}",
            f"Root        {facts['root'] or 'by proofs, of single events'}",
            f"Checkpoints {mine} of yours match, and {along} that came along",
            f"Proven      {facts['proven_events']:,} events stand under them",
        ]
    lines += [f"Note        {note}" for note in report.notes]
    lines += [f"Missing     {lack}" for lack in report.lacks if report.broken is None]
    if report.broken is not None:
        first = report.broken
        at = [
            f"event {first.seq}" if first.seq else "",
            f"id {first.event}" if first.event else "",
            first.where,
        ]
        lines.append(f"DOES NOT HOLD at {', '.join(filter(None, at)) or 'the bundle'}: {first.says}")
    else:
        lines.append(
            "PROVEN."
            if report.code == PROVEN
            else "Nothing speaks against it, but the EVIDENCE IS INCOMPLETE."
        )
    return "\n".join(lines) + "\n"


def _instant(text: str) -> str:
    """A time as checkpoints say it, so that texts compare as times do. Raises ValueError for what is none."""
    found = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return found.isoformat().replace("+00:00", "Z")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="verify_history", description="Check an exported history, offline.")
    parser.add_argument("bundle", type=Path, help="the exported zip file, or the same as a folder")
    parser.add_argument(
        "--checkpoints", type=Path, required=True, help="a folder with checkpoints of your own"
    )
    parser.add_argument(
        "--pubkey", type=Path, required=True, action="append", help="the public keys, your own copy"
    )
    parser.add_argument("--receipt", type=Path, default=[], action="append", help="a receipt that you kept")
    parser.add_argument(
        "--contents-left-out", action="store_true", help="do not miss contracts that were left out"
    )
    parser.add_argument(
        "--passkeys", type=Path, help="the keys of people's passkeys, as they gave them to you"
    )
    help_of_signed = "an operation each of whose approvals a passkey must have signed"
    parser.add_argument("--signed", default=[], action="append", help=help_of_signed)
    parser.add_argument(
        "--as-of", type=_instant, metavar="TIME", help="miss nothing newer, as 2026-12-31T23:59:59Z"
    )
    parser.add_argument("--json", action="store_true", help="answer with one JSON document")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    report = verify(
        options.bundle, options.checkpoints, options.pubkey, options.receipt, passkeys=options.passkeys,
        contents_left_out=options.contents_left_out, signed=options.signed, as_of=options.as_of or "",
    )  # fmt: skip
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may lack letters, a file name be no text
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stdout.write(json.dumps(report.as_json()) + "\n" if options.json else said(report))
    return report.code


if __name__ == "__main__":
    sys.exit(main())
