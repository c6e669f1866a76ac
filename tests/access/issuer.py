"""An OpenID Connect issuer for tests: a real HTTP server that says of whoever comes what the test wants it to say."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt

CLIENT = "placet"


class Issuer:
    """``claims`` are what it says; ``changes`` of the ID token alone are lies that must be noticed.

    ``instead`` are answers by path, as bytes, in place of what it would say. ``nonce`` is what the last try bore.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.claims: dict[str, Any] = {"sub": "s-1", "email": "ada@example.org", "email_verified": True}
        self.changes: dict[str, Any] = {}
        self.instead: dict[str, bytes] = {}
        self.nonce = ""

    def body(self, path: str) -> bytes:
        return self.instead.get(path) or json.dumps(self.answer(path)).encode()

    def answer(self, path: str) -> dict[str, Any]:
        if path == "/.well-known/openid-configuration":
            ways = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
            found = {f"{name}_endpoint": f"{self.address}/{way}" for name, way in ways.items()}
            return found | {"issuer": self.address, "jwks_uri": f"{self.address}/jwks"}
        if path == "/token":
            now = int(time.time())
            said = (
                {"iss": self.address, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": self.nonce}
                | self.claims
                | self.changes
            )
            token = jwt.encode(said, "x" * 32, algorithm="HS256")
            return {"access_token": "t", "token_type": "Bearer", "expires_in": 60, "id_token": token}
        return self.claims


@contextmanager
def issuer() -> Iterator[Issuer]:
    """A running issuer on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = running.body(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *args: Any) -> None:
            """Quietly."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running = Issuer(f"http://127.0.0.1:{server.server_address[1]}")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
