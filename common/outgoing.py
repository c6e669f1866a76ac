"""Outgoing HTTP: one request, one try, one deadline, and an outcome that says exactly how far it went.

No retries, no redirects, no proxy from the environment, no decompression. The transport says what was
seen; what that means for a command is classified elsewhere.

* :class:`NotSent` - no byte of the request left this process,
* :class:`NoAnswer` - at least one byte may have left, and no complete answer came back,
* :class:`Answer` - a complete answer, whatever its status.
"""

import http.client
import os
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import cast

from django.conf import settings

from common.addresses import (
    AddressPolicy,
    AddressRefused,
    IPAddress,
    LookupFailed,
    NoLookupSlot,
    Resolver,
    Target,
    look_up,
    parse_target,
    system_resolver,
)
from common.crashpoints import asked_for, crashpoint
from common.deadline import Deadline
from common.wire import Oversized, Wire
from common.wire_pool import WirePool

TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
FIELD_VALUE = re.compile(r"[\x20-\x7e]*", re.ASCII)
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "expect"}
)
"""Headers that decide framing or coding: the sender writes them, or leaves them out, itself."""

CHUNK = 65536

_making_tls = threading.Lock()
os.register_at_fork(
    before=_making_tls.acquire, after_in_parent=_making_tls.release, after_in_child=_making_tls.release
)


class NotSentKind(StrEnum):
    """Why nothing was sent."""

    ADDRESS = "address"
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    POOL = "pool"
    DEADLINE = "deadline"
    STALE = "stale"


class NoAnswerKind(StrEnum):
    """How an exchange ended without a complete answer."""

    RESET = "reset"
    TIMEOUT = "timeout"
    TRUNCATED = "truncated"
    OVERSIZED = "oversized"
    MALFORMED = "malformed"


@dataclass(frozen=True)
class NotSent:
    """No byte of the request was written: the same request may be sent again."""

    kind: NotSentKind
    detail: str


@dataclass(frozen=True)
class NoAnswer:
    """The request may have arrived, in part or whole. ``bytes_seen`` came back, framing included."""

    kind: NoAnswerKind
    bytes_seen: int
    detail: str


@dataclass(frozen=True)
class Answer:
    """A complete answer. Header names are lower case, repeated ones joined by a comma."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


Outcome = NotSent | NoAnswer | Answer


@dataclass(frozen=True)
class OutgoingRequest:
    """What to send. ``max_bytes`` limits the whole answer, header and framing included.

    Raises ``ValueError`` for a method or header that cannot be written on the wire as one line, or that
    the sender decides itself. Headers and body stay out of ``repr``: they hold credentials and personal data.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    max_bytes: int = 1024 * 1024

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"The method {self.method!r} is not supported.")
        for name, value in self.headers.items():
            if not TOKEN.fullmatch(name) or not FIELD_VALUE.fullmatch(value):
                raise ValueError(f"The header {name!r} cannot be sent.")
            if name.lower() in OWN_HEADERS:
                raise ValueError(f"The header {name!r} is written by the sender.")


class Sender:
    """Sends requests under one address policy and keeps idle connections for a few seconds."""

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        tls: ssl.SSLContext | None = None,
        resolver: Resolver = system_resolver,
    ) -> None:
        self.policy = policy
        self.resolver = resolver
        self.pool = WirePool()
        self._tls = tls

    @property
    def tls(self) -> ssl.SSLContext:
        """Made when the first https address is called: reading the certificates takes as long as many calls."""
        with _making_tls:
            self._tls = self._tls or ssl.create_default_context()
            return self._tls

    def send(self, request: OutgoingRequest, deadline: Deadline) -> Outcome:
        """One try of ``request`` that ends at the deadline, whatever the other side does."""
        try:
            target = parse_target(request.url, self.policy)
        except AddressRefused as error:
            return NotSent(NotSentKind.ADDRESS, str(error))
        if deadline.over():
            return NotSent(NotSentKind.DEADLINE, "The deadline was over before the connection.")
        wire = self.pool.take((target.scheme, target.host, target.port)) or self._connect(target, deadline)
        if isinstance(wire, NotSent):
            return wire
        keep = False
        try:
            outcome, keep = _exchange(wire, _request_bytes(request, target), request, deadline)
        finally:
            if keep:
                self.pool.give_back((target.scheme, target.host, target.port), wire)
            else:
                wire.close()
        return outcome

    def close(self) -> None:
        """Close the idle connections."""
        self.pool.close()

    def _connect(self, target: Target, deadline: Deadline) -> "Wire | NotSent":
        try:
            addresses = look_up(target, deadline, self.resolver)
        except AddressRefused as error:
            return NotSent(NotSentKind.ADDRESS, str(error))
        except NoLookupSlot as error:
            return NotSent(NotSentKind.POOL, str(error))
        except LookupFailed as error:
            return NotSent(NotSentKind.DNS, str(error))
        except TimeoutError as error:
            return NotSent(NotSentKind.DNS, str(error))
        try:
            sock = _connect_first(addresses, target.port, deadline)
        except OSError as error:
            return NotSent(NotSentKind.CONNECT, _reason(error))
        return self._secure(sock, target, deadline) if target.scheme == "https" else Wire(sock)

    def _secure(self, sock: socket.socket, target: Target, deadline: Deadline) -> "Wire | NotSent":
        """The handshake. The certificate is checked against the name in the URL, not the address."""
        try:
            sock.settimeout(max(deadline.remaining(), 0.001))
            return Wire(self.tls.wrap_socket(sock, server_hostname=target.host))
        except (OSError, ValueError) as error:
            sock.close()
            return NotSent(NotSentKind.TLS, _reason(error))


def _connect_first(addresses: list[IPAddress], port: int, deadline: Deadline) -> socket.socket:
    """Connect to the first address that answers; each gets a fair share of the time left.

    Raises ``OSError`` of the last address.
    """
    failure: OSError = TimeoutError("The deadline was over before the connection.")
    for tried, address in enumerate(addresses):
        if deadline.over():
            break
        sock = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.settimeout(max(deadline.remaining() / (len(addresses) - tried), 0.001))
            sock.connect((str(address), port))
            # A small request must not wait for the acknowledgement of an earlier one.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            sock.close()
            failure = error
    raise failure


def _request_bytes(request: OutgoingRequest, target: Target) -> bytes:
    """The request as one piece, so that it leaves in one write where it fits."""
    lines = [f"{request.method} {target.path} HTTP/1.1", f"Host: {target.authority}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(request.body or b'')}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (request.body or b"")


def _exchange(wire: Wire, data: bytes, request: OutgoingRequest, deadline: Deadline) -> tuple[Outcome, bool]:
    """Write, then read; the second value says whether the connection may serve another request."""
    wire.begin(deadline, request.max_bytes)
    try:
        _write(wire, data, deadline)
        return _read_answer(wire, request)
    except TimeoutError as error:
        kind, detail = NoAnswerKind.TIMEOUT, _reason(error)
    except Oversized as error:
        kind, detail = NoAnswerKind.OVERSIZED, _reason(error)
    except OSError as error:
        # Includes http.client.RemoteDisconnected: closed before the first byte of an answer.
        kind, detail = NoAnswerKind.RESET, _reason(error)
    except Exception as error:  # noqa: BLE001 - bytes have left: whatever the parser trips over is no answer
        kind, detail = NoAnswerKind.MALFORMED, _reason(error)
    return _unfinished(wire, kind, detail), False


def _write(wire: Wire, data: bytes, deadline: Deadline) -> None:
    """All of it at once, except where a test wants this process to end in the middle."""
    half = len(data) // 2 if asked_for("CP6") else 0
    wire.write(data[:half], deadline)
    crashpoint("CP6")
    wire.write(data[half:], deadline)
    crashpoint("CP7")


def _unfinished(wire: Wire, kind: NoAnswerKind, detail: str) -> NotSent | NoAnswer:
    if not wire.request_started:
        if kind is NoAnswerKind.TIMEOUT:
            return NotSent(NotSentKind.DEADLINE, detail)
        return NotSent(NotSentKind.STALE, detail)
    seen = wire.source.seen
    if wire.source.ended and seen and kind is not NoAnswerKind.OVERSIZED:
        # Whatever the parser made of it, the connection ended in the middle of the answer.
        return NoAnswer(NoAnswerKind.TRUNCATED, seen, "The connection ended before the answer was complete.")
    return NoAnswer(kind, seen, detail)


def _read_answer(wire: Wire, request: OutgoingRequest) -> tuple[Outcome, bool]:
    """Read one complete answer, or say why it is none.

    An answer that ends with the connection (neither a length nor chunks) cannot be told from a truncated
    one, and counts as truncated.
    """
    response = http.client.HTTPResponse(cast(socket.socket, wire), method=request.method)
    response.begin()
    if response.status < 200 or _framing_is_doubtful(response):
        return _unfinished(wire, NoAnswerKind.MALFORMED, "The answer's framing cannot be trusted."), False
    if not response.chunked and response.length is None:
        return _unfinished(wire, NoAnswerKind.TRUNCATED, "The answer does not say where it ends."), False
    if response.length is not None and response.length > request.max_bytes:
        return _unfinished(wire, NoAnswerKind.OVERSIZED, "The answer announces more than is allowed."), False
    body = _read_body(response)
    if wire.source.ended:
        return _unfinished(wire, NoAnswerKind.TRUNCATED, "The connection ended too early."), False
    return Answer(response.status, _headers(response), body), not response.will_close


def _read_body(response: http.client.HTTPResponse) -> bytes:
    """Chunked bodies in bounded pieces, because Python allocates whatever size a chunk announces."""
    if not response.chunked:
        return response.read()
    pieces = []
    while piece := response.read(CHUNK):
        pieces.append(piece)
    return b"".join(pieces)


def _framing_is_doubtful(response: http.client.HTTPResponse) -> bool:
    """Two framings, or one that ``http.client`` reads leniently, could end the answer in two places."""
    lengths = response.headers.get_all("content-length") or []
    codings = response.headers.get_all("transfer-encoding") or []
    if any(not re.fullmatch(r"[0-9]{1,15}", length.strip(), re.ASCII) for length in lengths):
        return True
    return len(lengths) > 1 or (bool(codings) and (len(codings) > 1 or bool(lengths) or not response.chunked))


def _headers(response: http.client.HTTPResponse) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return MappingProxyType(found)


def _reason(error: Exception) -> str:
    """The kind of error and the system's words for it; never data of the request or the answer."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return text[:200]


@cache
def _sender_trusting(hosts: tuple[str, ...]) -> Sender:
    return Sender(AddressPolicy.trusting(hosts))


def send(request: OutgoingRequest, deadline: Deadline) -> Outcome:
    """Send ``request``, to an address that the operator or installed code has chosen, once.

    The setting ``OUTGOING_TRUSTED_HOSTS`` lists each ``host:port`` that may use http or a private address.
    """
    return _sender_trusting(tuple(settings.OUTGOING_TRUSTED_HOSTS)).send(request, deadline)


def send_where_told(request: OutgoingRequest, deadline: Deadline) -> Outcome:
    """Send ``request``, to an address that somebody of one organisation has chosen, once.

    What the operator trusts for providers is not theirs to call: ``OUTGOING_TOLD_HOSTS`` is a list of its own.
    """
    return _sender_trusting(tuple(settings.OUTGOING_TOLD_HOSTS)).send(request, deadline)
