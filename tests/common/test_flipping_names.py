"""A name server that changes its answer between two questions, asked over the network. Security list S20."""

import socket
import struct
import threading
from collections.abc import Generator

import pytest

from common.addresses import AddressPolicy
from common.deadline import Deadline
from common.outgoing import NotSent, NotSentKind, OutgoingRequest, Sender
from tests.common.misbehaving import answer, serve

TYPES = {1: socket.AF_INET, 28: socket.AF_INET6}


class NameServer:
    """Answers A and AAAA over UDP; each question takes the next of ``answers``, and the last one stays."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                question, client = self.socket.recvfrom(512)
            except OSError:
                return
            self.socket.sendto(self._answer(question), client)

    def _answer(self, question: bytes) -> bytes:
        end = question.index(b"\0", 12) + 5
        kind = struct.unpack("!H", question[end - 4 : end - 2])[0]
        family = TYPES[kind]
        now = self.answers[min(self.asked // 2, len(self.answers) - 1)]  # A and AAAA make one look-up
        self.asked += 1
        found = [text for text in now if (":" in text) == (family == socket.AF_INET6)]
        records = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(raw)) + raw
            for raw in (socket.inet_pton(family, text) for text in found)
        )
        return question[:2] + struct.pack("!HHHHH", 0x8180, 1, len(found), 0, 0) + question[12:end] + records

    def resolve(self, host: str, port: int) -> list[str]:
        """What an operating system does: ask for both kinds, take all that comes."""
        return [address for kind in TYPES for address in self._ask(host, kind)]

    def _ask(self, host: str, kind: int) -> list[str]:
        labels = b"".join(bytes([len(label)]) + label.encode() for label in host.split(".")) + b"\0"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(5)
            client.sendto(
                struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + struct.pack("!HH", kind, 1),
                self.socket.getsockname(),
            )
            reply = client.recv(4096)
        size, at, found = (4 if kind == 1 else 16), len(labels) + 16, []
        for _ in range(struct.unpack("!H", reply[6:8])[0]):
            found.append(socket.inet_ntop(TYPES[kind], reply[at + 12 : at + 12 + size]))
            at += 12 + size
        return found


@pytest.fixture
def names() -> Generator[list[NameServer]]:
    started: list[NameServer] = []
    yield started
    for server in started:
        server.socket.close()


def ask(server: NameServer, port: int, *, trusted: bool = False, seconds: float = 3) -> object:
    host = f"hook.example:{port}"
    policy = AddressPolicy.trusting([host]) if trusted else AddressPolicy(ports=frozenset({port}))
    sender = Sender(policy, resolver=server.resolve)
    scheme = "http" if trusted else "https"
    try:
        return sender.send(OutgoingRequest("GET", f"{scheme}://{host}/"), Deadline.after(seconds))
    finally:
        sender.close()  # no connection is kept: each call looks up anew


REFUSED = NotSent(NotSentKind.ADDRESS, "The host resolves to an address that may not be called.")


@pytest.mark.parametrize(
    "inner",
    [
        "127.0.0.1",
        "169.254.169.254",
        "::1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::ffff:127.0.0.1",
        "100.64.0.1",
    ],
)
def test_one_inner_address_among_public_ones_refuses_the_name(names: list[NameServer], inner: str) -> None:
    names.append(NameServer(["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", inner]))
    assert ask(names[0], 443) == REFUSED


def test_the_address_that_was_checked_is_the_one_that_is_called(names: list[NameServer]) -> None:
    """One look-up per connection: there is no second answer that the connection could follow."""
    with serve(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as inner:
        names.append(
            NameServer(["192.0.2.1"], ["127.0.0.1"])
        )  # a documentation address: refused too, as not public
        assert ask(names[0], inner.port) == REFUSED
        assert names[0].asked == 2
        names.append(NameServer(["93.184.216.34"], ["127.0.0.1"]))
        first = ask(names[1], inner.port, seconds=1)
        assert isinstance(first, NotSent)
        assert first.kind in (NotSentKind.CONNECT, NotSentKind.TLS)
        assert names[1].asked == 2
        assert ask(names[1], inner.port) == REFUSED
        assert inner.received == []


def test_a_host_that_the_operator_vouches_for_may_not_turn_into_a_metadata_service(
    names: list[NameServer],
) -> None:
    with serve(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as inner:
        names.append(NameServer(["127.0.0.1"], ["169.254.169.254"]))
        assert getattr(ask(names[0], inner.port, trusted=True), "status", 0) == 200
        assert ask(names[0], inner.port, trusted=True) == REFUSED
        assert len(inner.received) == 1
