"""A receiver of callbacks: a real HTTP server in a thread, which checks signatures by itself, from the public rules."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Heard:
    """One request as it came."""

    headers: dict[str, str]
    raw: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def data(self) -> Any:
        return self.body["data"]

    @property
    def signatures(self) -> list[str]:
        return self.headers["webhook-signature"].split(" ")

    def signed_with(self, secret: str) -> bool:
        """Whether one of the signatures is HMAC-SHA-256 over ``id.timestamp.body`` under this secret."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = b".".join([self.id.encode(), self.headers["webhook-timestamp"].encode(), self.raw])
        mine = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        return f"v1,{mine}" in self.signatures


@dataclass
class Receiver:
    """``answers``: the status of each request in turn; the last one goes on."""

    port: int = 0
    answers: list[int] = field(default_factory=lambda: [204])
    heard: list[Heard] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event = field(default_factory=threading.Event)
    """While it is not set, requests wait for their answer."""

    def __post_init__(self) -> None:
        self.hold.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/placet?of=crm"

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    def hear(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers["content-length"]))
        self.heard.append(Heard({name.lower(): value for name, value in handler.headers.items()}, raw))
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.hold.wait(20)
        handler.send_response(status)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", "0")
        handler.end_headers()


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.hear(self)

        def log_message(self, *_: Any) -> None:
            """Tests are quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield receiver
        receiver.hold.set()
        server.shutdown()
        thread.join()
