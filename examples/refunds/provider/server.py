"""Listening, and a thread for each connection."""

import socket
import sys
import threading
import traceback
from contextlib import suppress

from examples.refunds.provider.app import App
from examples.refunds.provider.exchange import Incoming, Refusal, Reply

IDLE_SECONDS = 75.0
STOP_SECONDS = 3.0


class Server:
    """Serves ``app`` until it is stopped; in-flight requests are finished first."""

    def __init__(self, app: App, host: str, port: int) -> None:
        self.app = app
        self.listener = socket.create_server((host, port), backlog=512)
        self.port: int = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.open: dict[socket.socket, threading.Thread] = {}
        self.acceptor = threading.Thread(target=self._accept, name="accept", daemon=True)

    def start(self) -> None:
        self.acceptor.start()

    def stop(self) -> None:
        """No new connections; idle ones end at once, busy ones after their answer."""
        self.app.stop.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.acceptor.join(STOP_SECONDS)
        self.listener.close()
        with self.lock:
            left = dict(self.open)
        for sock in left:
            _end_reading(sock)
        for thread in left.values():
            thread.join(STOP_SECONDS)

    def _accept(self) -> None:
        while not self.app.stop.is_set():
            try:
                sock, _ = self.listener.accept()
            except OSError:
                continue
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            with self.lock:
                self.open[sock] = thread
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(IDLE_SECONDS)
            self._serve_requests(sock)
        except OSError:
            pass  # the client went away, which is its right
        except Exception:  # noqa: BLE001 - one connection's failure must not end the process
            traceback.print_exc(file=sys.stderr)
        finally:
            with self.lock:
                del self.open[sock]
            sock.close()

    def _serve_requests(self, sock: socket.socket) -> None:
        incoming = Incoming(sock)
        try:
            while (request := incoming.next()) is not None:
                if not self.app.serve(request, sock) or self.app.stop.is_set():
                    return
        except Refusal as refusal:
            sock.sendall(b"".join(refusal.reply.encode(close=True)))
        except Exception:
            sock.sendall(b"".join(Reply(500, {"code": "internal_error"}).encode(close=True)))
            raise


def _end_reading(sock: socket.socket) -> None:
    with suppress(OSError):  # closed by its own thread in between
        sock.shutdown(socket.SHUT_RD)
