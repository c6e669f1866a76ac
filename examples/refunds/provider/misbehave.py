"""The ways in which a provider goes wrong, each a function on the connection's socket."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from examples.refunds.provider.exchange import Reply, Request
from examples.refunds.provider.switches import Rule

if TYPE_CHECKING:
    from examples.refunds.provider.app import App

HELD_SECONDS = 60.0
SLOW_LENGTH = 10_000
CODES = {
    401: "invalid_key",
    403: "key_revoked",
    429: "rate_limited",
    500: "internal_error",
    503: "unavailable",
}


def send(sock: socket.socket, reply: Reply, request: Request) -> bool:
    """The well-behaved answer; true when the connection stays open."""
    close = request.headers.get("connection", "").lower() == "close"
    head, body = reply.encode(close=close)
    sock.sendall(head + body)
    return not close


def run(app: App, rule: Rule, request: Request) -> Reply:
    """Execute, or only journal the arrival, as the rule says."""
    if rule.executes:
        return app.answer(request)
    app.note(request)
    return Reply(200, {"status": "not executed"})


def hold(app: App, sock: socket.socket, seconds: float) -> bool:
    """Say nothing until the client goes away, the time is over or the provider stops."""
    with suppress(OSError):
        sock.settimeout(seconds)
        sock.recv(1)
    return False


def delay(app: App, rule: Rule, request: Request, sock: socket.socket) -> bool:
    app.stop.wait(rule.seconds or 1.0)
    return send(sock, run(app, rule, request), request)


def accept_then_hang(app: App, rule: Rule, request: Request, sock: socket.socket) -> bool:
    run(app, rule, request)
    return hold(app, sock, rule.seconds or HELD_SECONDS)


def apply_late(app: App, rule: Rule, request: Request, sock: socket.socket) -> bool:
    """Accept, answer nothing, and execute later, whether or not the client is still there."""
    app.note(request)

    def apply() -> None:
        if not app.stop.wait(rule.seconds or 5.0):
            app.answer(request)

    threading.Thread(target=apply, name="apply-late", daemon=True).start()
    return hold(app, sock, HELD_SECONDS)


def drop_connection(app: App, rule: Rule, request: Request, sock: socket.socket) -> bool:
    """Reset instead of an answer."""
    run(app, rule, request)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def status(app: App, rule: Rule, request: Request, sock: socket.socket) -> bool:
    """A status of the rule's choice, before executing or after."""
    run(app, rule, request)
    code = rule.code or CODES.get(rule.status, "refused")
    headers = {} if rule.retry_after is None else {"Retry-After": str(rule.retry_after)}
    return send(sock, Reply(rule.status, {"code": code, "message": "As switched."}, headers), request)


def half_body(app: App, rule: Rule, request: Request, sock: socket.socket) -> bool:
    head, body = run(app, rule, request).encode()
    sock.sendall(head + body[: len(body) // 2])
    return False


def trickle(app: App, rule: Rule, request: Request, sock: socket.socket) -> bool:
    """A good head, and then a blank each half second for as long as somebody reads."""
    head = _head(run(app, rule, request), f"Content-Length: {SLOW_LENGTH}")
    with suppress(OSError):
        sock.sendall(head)
        while not app.stop.wait(rule.seconds or 0.5):
            sock.sendall(b" ")
    return False


def flood(app: App, rule: Rule, request: Request, sock: socket.socket) -> bool:
    """More body than anybody wants, as fast as it is read."""
    head = _head(run(app, rule, request), "Transfer-Encoding: chunked")
    with suppress(OSError):
        sock.sendall(head)
        while not app.stop.is_set():
            sock.sendall(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
    return False


def garbled(app: App, rule: Rule, request: Request, sock: socket.socket) -> bool:
    """A complete answer with a good status whose body is not JSON."""
    reply = run(app, rule, request)
    return send(sock, Reply(reply.status, b'{"id": "re_'), request)


def other_document(app: App, rule: Rule, request: Request, sock: socket.socket) -> bool:
    """A complete answer with a good status about something else: another id, another order."""
    reply = run(app, rule, request)
    if isinstance(reply.body, dict):
        reply.body = reply.body | {"id": "re_999999", "order": "another", "to": "another@example.com"}
    return send(sock, reply, request)


def _head(reply: Reply, framing: str) -> bytes:
    return f"HTTP/1.1 {reply.status} OK\r\nContent-Type: application/json\r\n{framing}\r\n\r\n".encode()


Fault = Callable[["App", Rule, Request, socket.socket], bool]
FAULTS: dict[str, Fault] = {
    "delay": delay,
    "accept_then_hang": accept_then_hang,
    "apply_late": apply_late,
    "drop_connection": drop_connection,
    "status": status,
    "half_body": half_body,
    "trickle": trickle,
    "flood": flood,
    "garbled": garbled,
    "other_document": other_document,
}
