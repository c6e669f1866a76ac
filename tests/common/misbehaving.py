"""Small real servers for the tests of outgoing HTTP: each does one thing wrong on a socket of its own."""

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Script = Callable[[socket.socket, "Server"], None]


@dataclass
class Server:
    """``received`` holds the bytes of each connection, in the order in which they were accepted."""

    port: int
    received: list[bytearray] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/path?q=1"


@contextmanager
def serve(script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Server]:
    """Accept connections and run ``script`` on each in a thread until the block ends."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        server = Server(listener.getsockname()[1])
        listener.settimeout(0.05)
        thread = threading.Thread(target=_accept, args=(listener, script, server, tls), daemon=True)
        thread.start()
        yield server
        server.over.set()
        thread.join()


def _accept(listener: socket.socket, script: Script, server: Server, tls: ssl.SSLContext | None) -> None:
    threads = []
    while not server.over.is_set():
        try:
            conn, _ = listener.accept()
        except TimeoutError:
            continue
        server.received.append(bytearray())
        thread = threading.Thread(target=_run, args=(conn, script, server, tls), daemon=True)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join(5)


def _run(conn: socket.socket, script: Script, server: Server, tls: ssl.SSLContext | None) -> None:
    try:
        conn.settimeout(10)
        with tls.wrap_socket(conn, server_side=True) if tls else conn as ready:
            script(ready, server)
    except OSError:
        conn.close()


def read_request(conn: socket.socket, server: Server) -> bytes:
    """One whole request with its body; b"" when the client closed instead. Noted in ``server.received``."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = conn.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"content-length" in line.lower()), 0
    )
    while len(body) < length:
        body += conn.recv(65536)
    server.received[-1] += head + b"\r\n\r\n" + body
    return head + b"\r\n\r\n" + body


def answer(*pieces: bytes, close: bool = True) -> Script:
    """Read one request, send ``pieces`` and close, or serve the next request of the same connection."""

    def script(conn: socket.socket, server: Server) -> None:
        while read_request(conn, server):
            for piece in pieces:
                conn.sendall(piece)
            if close:
                return

    return script


def hang(conn: socket.socket, server: Server) -> None:
    """Read the request and say nothing until the test is over."""
    read_request(conn, server)
    server.over.wait(10)


def reset(conn: socket.socket) -> None:
    """Close with a reset instead of an orderly end."""
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def trickle(head: bytes, every: float = 0.5) -> Script:
    """Send ``head`` and then one byte each ``every`` seconds for as long as somebody listens."""

    def script(conn: socket.socket, server: Server) -> None:
        read_request(conn, server)
        conn.sendall(head)
        while not server.over.is_set():
            conn.sendall(b"x")
            time.sleep(every)

    return script
