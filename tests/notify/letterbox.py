"""A mail server in a thread: real SMTP over a socket, with answers that a test chooses."""

import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any


@dataclass
class Letterbox:
    """What it took, and what it answers: ``refuses`` maps an address to the answer to RCPT; ``data`` answers the mail.

    ``answers`` are for the next mails, one each, in place of ``data``; ``before_data`` is called before that answer.
    """

    port: int = 0
    taken: list[EmailMessage] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    refuses: dict[str, str] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    connections: int = 0
    before_answer: Any = None

    @property
    def ids(self) -> list[str]:
        return [str(mail["Message-ID"]) for mail in self.taken]

    def plain(self, number: int = -1) -> str:
        part = self.taken[number].get_body(("plain",))
        assert part is not None
        return str(part.get_content())

    def html(self, number: int = -1) -> str:
        part = self.taken[number].get_body(("html",))
        assert part is not None
        return str(part.get_content())


class _Talk(socketserver.StreamRequestHandler):
    """RFC 5321, as far as a sender that behaves needs it."""

    def handle(self) -> None:
        box: Letterbox = self.server.box  # type: ignore[attr-defined]
        box.connections += 1
        self._say("220 letterbox")
        to = ""
        while line := self.rfile.readline():
            verb = line[:4].upper()
            if verb in (b"EHLO", b"HELO"):
                self._say("250 letterbox")
            elif verb == b"RCPT":
                to = line.decode().split("<")[1].split(">")[0]
                self._say(box.refuses.get(to, "250 fine"))
            elif verb == b"DATA":
                self._say("354 go on")
                self._take(box, to)
            elif verb == b"QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250 fine")

    def _take(self, box: Letterbox, to: str) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line[1:] if line.startswith(b".") else line)
        if box.before_answer is not None:
            box.before_answer()
        answer = box.answers.pop(0) if box.answers else "250 taken"
        if answer.startswith("250"):
            raw = b"".join(lines)
            box.raw.append(raw)
            box.recipients.append(to)
            box.taken.append(email.message_from_bytes(raw, policy=email.policy.default))  # type: ignore[arg-type]
        if answer == "cut":
            self.connection.close()
            return
        self._say(answer)

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@contextmanager
def letterbox() -> Iterator[Letterbox]:
    box = Letterbox()
    server = _Server(("127.0.0.1", 0), _Talk)
    server.box = box  # type: ignore[attr-defined]
    box.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield box
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
