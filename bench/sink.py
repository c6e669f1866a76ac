"""A provider that only notes when each key came, as cheaply as Python can. ``python -m bench.sink PORT``.

``POST`` anything with an Idempotency-Key; ``GET /arrivals`` answers with the times of all keys, ``GET /arrivals/KEY``
with those of one, as soon as it has come; ``DELETE`` forgets everything.
"""

import asyncio
import json
import sys
import time

ARRIVALS: dict[str, list[float]] = {}
WAITING: dict[str, list["Connection"]] = {}


class Connection(asyncio.Protocol):
    """One keep-alive connection. Its client sends one request at a time, with a Content-Length or no body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.received = transport, b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, complete, rest = self.received.partition(b"\r\n\r\n")
        if not complete:
            return
        request, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self.received = rest[length:]
        self._serve(request.split(" "), headers)

    def _serve(self, request: list[str], headers: dict[str, str]) -> None:
        method, path = request[0], request[1]
        if method == "POST":
            self._came(headers["idempotency-key"])
            self.answer(b"201 Created", b"{}")
        elif method == "DELETE":
            ARRIVALS.clear()
            self.answer(b"200 OK", b"{}")
        elif path == "/arrivals":
            self.answer(b"200 OK", json.dumps(ARRIVALS).encode())
        elif (key := path.removeprefix("/arrivals/")) in ARRIVALS:
            self.answer(b"200 OK", json.dumps(ARRIVALS[key]).encode())
        else:
            WAITING.setdefault(key, []).append(self)

    def _came(self, key: str) -> None:
        ARRIVALS.setdefault(key, []).append(time.time())
        for waiting in WAITING.pop(key, ()):
            waiting.answer(b"200 OK", json.dumps(ARRIVALS[key]).encode())

    def answer(self, status: bytes, body: bytes) -> None:
        self.transport.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port, backlog=256)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
