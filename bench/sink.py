"""A provider that only notes when each key came. ``python -m bench.sink PORT``; GET /arrivals answers with all."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ARRIVALS: dict[str, list[float]] = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        ARRIVALS.setdefault(self.headers["Idempotency-Key"], []).append(time.time())
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self._answer(201, b"{}")

    def do_GET(self) -> None:
        self._answer(200, json.dumps(ARRIVALS).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
