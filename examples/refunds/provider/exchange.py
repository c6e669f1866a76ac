"""Requests and replies on a socket: as much of HTTP/1.1 as the provider needs, and quick."""

import json
import socket
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

MAX_HEAD = 32 * 1024
MAX_BODY = 256 * 1024


@dataclass
class Request:
    """One arrival. ``first_byte_at`` is the wall clock, in seconds, when its first byte was read."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    first_byte_at: float
    body: bytes = b""
    complete: bool = True
    tenant: str = ""
    fault: str | None = None
    arrival: int | None = None
    """The journal's row, once there is one: a request that is applied late keeps its first row."""

    @property
    def parts(self) -> list[str]:
        """The segments of the path, decoded one by one: an encoded slash does not make two of one."""
        return [unquote(part) for part in self.path.split("/")[1:]]

    @property
    def key(self) -> str:
        return self.headers.get("idempotency-key", "")

    def json(self) -> Any:
        """The body as JSON; raises :class:`Refusal` 400 where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise Refusal(400, "invalid_json", "The body is not JSON.") from None


@dataclass
class Reply:
    """What goes back; ``body`` is sent as JSON, except bytes, which go as they are."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encode(self, *, close: bool = False) -> tuple[bytes, bytes]:
        """Head and body as bytes."""
        body = b"" if self.body is None else self.body if isinstance(self.body, bytes) else _dump(self.body)
        lines = [f"HTTP/1.1 {self.status} {_phrase(self.status)}"]
        if self.status not in (204, 304):
            lines.append(f"Content-Length: {len(body)}")
        if body:
            lines.append("Content-Type: application/json")
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if close:
            lines.append("Connection: close")
        return "\r\n".join([*lines, "", ""]).encode("latin-1"), body


class Refusal(Exception):
    """A definite no, with a stable code; nothing was executed."""

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.reply = Reply(status, {"code": code, "message": message, **more})


class Incoming:
    """Reads one request after another from a connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.buffer = bytearray()

    def next(self) -> Request | None:
        """The next request; None when the client closed between two. Raises ``OSError`` and :class:`Refusal`.

        A body that ends early comes back with ``complete`` false, so that the journal can show the arrival.
        """
        first_byte_at = time.time() if self.buffer else 0.0
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            if len(self.buffer) > MAX_HEAD:
                raise Refusal(431, "head_too_large", "The head of the request is too large.")
            data = self.sock.recv(65536)
            first_byte_at = first_byte_at or time.time()
            if not data:
                return None
            self.buffer += data
        request = _parse_head(bytes(self.buffer[:end]), first_byte_at)
        del self.buffer[: end + 4]
        self._read_body(request)
        return request

    def _read_body(self, request: Request) -> None:
        length = _body_length(request.headers)
        while len(self.buffer) < length:
            data = self.sock.recv(65536)
            if not data:
                request.complete = False
                break
            self.buffer += data
        request.body = bytes(self.buffer[:length])
        del self.buffer[:length]


def _parse_head(head: bytes, first_byte_at: float) -> Request:
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Refusal(400, "bad_request", "The request line is not HTTP/1.")
    path, _, query = words[1].partition("?")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    pairs = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
    return Request(words[0], path, pairs, headers, first_byte_at)


def _body_length(headers: dict[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise Refusal(411, "length_required", "A body needs a Content-Length.")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise Refusal(400, "bad_request", "The Content-Length is not a number.")
    if int(text) > MAX_BODY:
        raise Refusal(413, "body_too_large", "The body is too large.")
    return int(text)


def _dump(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
