"""One connection on which every read and write obeys a deadline and a byte limit."""

import io
import socket
import ssl
import time
from typing import Any

from common.deadline import Deadline


class Oversized(Exception):
    """The answer is larger than the caller allows."""


class _Source(io.RawIOBase):
    """The socket as a raw stream: sets the time left before each read, counts bytes, notes the end."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.deadline: Deadline | None = None
        self.limit = 0
        self.seen = 0
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        try:
            self.sock.settimeout(_time_left(self.deadline))
            count = self.sock.recv_into(buffer)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        self.ended = self.ended or count == 0
        self.seen += count
        if self.deadline is not None and self.seen > self.limit:
            raise Oversized(Oversized.__doc__)
        return count


class _Reader(io.BufferedReader):
    """``HTTPResponse`` closes its file after each answer; this one lives as long as the connection."""

    def close(self) -> None:
        """Keep the buffer: bytes left in it after an answer prove that the connection is not clean."""


def _time_left(deadline: Deadline | None) -> float:
    """Seconds for the next call; 0, for the check of an idle connection, means not to wait."""
    if deadline is None:
        return 0.0
    left = deadline.remaining()
    if left <= 0:
        raise TimeoutError("The deadline is over.")
    return left


class Wire:
    """A connected socket, plain or TLS, used for one exchange after another."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.secure = isinstance(sock, ssl.SSLSocket)
        self.source = _Source(sock)
        self.reader = _Reader(self.source)
        self.opened_at = self.idle_since = time.monotonic()
        self.request_started = False

    def begin(self, deadline: Deadline, limit: int) -> None:
        """Start an exchange: nothing written, nothing seen."""
        self.request_started = False
        self.source.deadline, self.source.limit, self.source.seen = deadline, limit, 0

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Write all of ``data``; on an error ``request_started`` says whether a byte may have left.

        The system refuses a plain write as a whole, so a first write that raises sent nothing. A TLS record
        can be half written when the error comes, so there the first try counts as a byte.
        """
        view = memoryview(data)
        while view:
            self.sock.settimeout(_time_left(deadline))
            self.request_started = self.request_started or self.secure
            sent = self.sock.send(view)
            self.request_started = True
            view = view[sent:]

    def makefile(self, mode: str) -> io.BufferedReader:
        """What ``http.client.HTTPResponse`` asks of a socket."""
        return self.reader

    def is_clean(self) -> bool:
        """Whether the idle connection is still open with nothing to read: no close, no stray bytes."""
        self.source.deadline = None
        try:
            stray = self.reader.peek(1)
        except (OSError, ValueError):
            return False
        return not stray and not self.source.ended

    def close(self) -> None:
        self.sock.close()
