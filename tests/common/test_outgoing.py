"""Outgoing HTTP against real sockets: how far a request went is told exactly, and by the deadline."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from common.addresses import AddressPolicy
from common.deadline import Deadline
from common.outgoing import (
    Answer,
    NoAnswer,
    NoAnswerKind,
    NotSent,
    NotSentKind,
    Outcome,
    OutgoingRequest,
    Sender,
)
from tests.common.misbehaving import Server, answer, hang, read_request, reset, serve, trickle

OK = b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: "a"\r\n\r\nhi'
LIMIT_SECONDS = 1.0
SLACK_SECONDS = 0.35


class Everybody(frozenset[str]):
    """Trusts every host and port: the servers of these tests listen on free ports of the loopback."""

    def __contains__(self, item: object) -> bool:
        return True


@pytest.fixture
def sender() -> Iterator[Sender]:
    made = Sender(AddressPolicy(trusted=Everybody()))
    yield made
    made.close()


def post(
    sender: Sender, url: str, *, seconds: float = 5, max_bytes: int = 10_000, body: bytes = b"{}"
) -> Outcome:
    return sender.send(
        OutgoingRequest("POST", url, {"X-Test": "1"}, body, max_bytes), Deadline.after(seconds)
    )


def ended_in(started: float) -> float:
    return time.monotonic() - started


def test_a_complete_answer(sender: Sender) -> None:
    with serve(answer(OK)) as server:
        outcome = post(sender, server.url, body=b'{"a":1}')
        assert isinstance(outcome, Answer)
        assert (outcome.status, outcome.body, outcome.headers["etag"]) == (200, b"hi", '"a"')
        head, _, body = bytes(server.received[0]).partition(b"\r\n\r\n")
        assert head.split(b"\r\n") == [
            b"POST /path?q=1 HTTP/1.1",
            f"Host: 127.0.0.1:{server.port}".encode(),
            b"X-Test: 1",
            b"Content-Length: 7",
        ]
        assert body == b'{"a":1}'


def test_get_sends_no_body_and_no_accept_encoding(sender: Sender) -> None:
    with serve(answer(OK)) as server:
        assert isinstance(sender.send(OutgoingRequest("GET", server.url), Deadline.after(5)), Answer)
        assert b"ontent-" not in server.received[0]
        assert b"ccept-" not in server.received[0]


@pytest.mark.parametrize(
    ("raw", "status", "body"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            200,
            b"abcde",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", 201, b"x"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 503, b""),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 302, b""),
    ],
)
def test_complete_answers_of_other_shapes(sender: Sender, raw: bytes, status: int, body: bytes) -> None:
    with serve(answer(raw)) as server:
        outcome = post(sender, server.url)
        assert isinstance(outcome, Answer)
        assert (outcome.status, outcome.body) == (status, body)
        assert len(server.received) == 1


def test_a_compressed_body_is_not_unpacked(sender: Sender) -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00"
    with serve(answer(raw)) as server:
        outcome = post(sender, server.url)
    assert isinstance(outcome, Answer)
    assert outcome.body == b"\x1f\x8b\x08\x00"


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"id":', NoAnswerKind.TRUNCATED),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", NoAnswerKind.TRUNCATED),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", NoAnswerKind.TRUNCATED),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", NoAnswerKind.TRUNCATED),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", NoAnswerKind.TRUNCATED),
        (b"HTTP/1.1 20", NoAnswerKind.TRUNCATED),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", NoAnswerKind.MALFORMED),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nab", NoAnswerKind.MALFORMED),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            NoAnswerKind.MALFORMED,
        ),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n", NoAnswerKind.MALFORMED),
        (b"SSH-2.0-OpenSSH_9.2\r\n", NoAnswerKind.MALFORMED),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", NoAnswerKind.MALFORMED),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\nx", NoAnswerKind.OVERSIZED),
    ],
)
def test_broken_answers(sender: Sender, raw: bytes, kind: NoAnswerKind) -> None:
    def script(conn: socket.socket, server: Server) -> None:
        answer(raw)(conn, server)
        if kind is not NoAnswerKind.TRUNCATED:
            server.over.wait(5)

    with serve(script) as server:
        outcome = post(sender, server.url)
        assert isinstance(outcome, NoAnswer)
        assert outcome.kind is kind
        assert 0 < outcome.bytes_seen <= len(raw)
        assert len(server.received) == 1


def test_a_huge_chunk_is_cut_at_the_byte_limit(sender: Sender) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n"
    with serve(answer(head, b"x" * 50_000)) as server:
        outcome = post(sender, server.url, max_bytes=10_000)
    assert isinstance(outcome, NoAnswer)
    assert outcome.kind is NoAnswerKind.OVERSIZED


def test_an_endless_header_is_cut_at_the_byte_limit(sender: Sender) -> None:
    with serve(answer(b"HTTP/1.1 200 OK\r\n", b"X-Pad: 1234567890\r\n" * 5_000)) as server:
        outcome = post(sender, server.url, max_bytes=1_000)
    assert isinstance(outcome, NoAnswer)
    assert outcome.kind is NoAnswerKind.OVERSIZED


def test_a_reset_after_the_request(sender: Sender) -> None:
    def script(conn: socket.socket, server: Server) -> None:
        read_request(conn, server)
        reset(conn)

    with serve(script) as server:
        outcome = post(sender, server.url)
    assert isinstance(outcome, NoAnswer)
    assert (outcome.kind, outcome.bytes_seen) == (NoAnswerKind.RESET, 0)


def test_closed_without_an_answer(sender: Sender) -> None:
    with serve(answer()) as server:
        outcome = post(sender, server.url)
    assert isinstance(outcome, NoAnswer)
    assert (outcome.kind, outcome.bytes_seen) == (NoAnswerKind.RESET, 0)


def test_a_reset_while_a_large_request_is_written(sender: Sender) -> None:
    def script(conn: socket.socket, server: Server) -> None:
        conn.recv(1000)
        reset(conn)

    with serve(script) as server:
        outcome = post(sender, server.url, body=b"x" * 20_000_000)
    assert isinstance(outcome, NoAnswer)
    assert outcome.kind is NoAnswerKind.RESET


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(hang, id="accepts and says nothing"),
        pytest.param(
            trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 0.5), id="body byte by byte"
        ),
        pytest.param(trickle(b"HTTP/1.1 200 OK\r\nX-Slow: ", 0.1), id="header byte by byte"),
        pytest.param(trickle(b"HT", 0.1), id="status line byte by byte"),
    ],
)
def test_the_deadline_ends_every_read(sender: Sender, script: object) -> None:
    with serve(script) as server:  # type: ignore[arg-type]
        started = time.monotonic()
        outcome = post(sender, server.url, seconds=LIMIT_SECONDS)
        assert ended_in(started) < LIMIT_SECONDS + SLACK_SECONDS
    assert isinstance(outcome, NoAnswer)
    assert outcome.kind is NoAnswerKind.TIMEOUT


def test_the_deadline_ends_a_write_that_nobody_reads(sender: Sender) -> None:
    def script(conn: socket.socket, server: Server) -> None:
        server.over.wait(5)

    with serve(script) as server:
        started = time.monotonic()
        outcome = post(sender, server.url, seconds=LIMIT_SECONDS, body=b"x" * 30_000_000)
        assert ended_in(started) < LIMIT_SECONDS + SLACK_SECONDS
    assert isinstance(outcome, NoAnswer)
    assert outcome.kind is NoAnswerKind.TIMEOUT


def test_nothing_is_sent_when_the_deadline_is_over(sender: Sender) -> None:
    with serve(answer(OK)) as server:
        outcome = post(sender, server.url, seconds=0)
        assert isinstance(outcome, NotSent)
        assert outcome.kind is NotSentKind.DEADLINE
        assert server.received == []


def test_a_refused_connection_was_not_sent(sender: Sender) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    outcome = post(sender, f"http://127.0.0.1:{port}/")
    assert isinstance(outcome, NotSent)
    assert outcome.kind is NotSentKind.CONNECT


def test_a_connection_that_nobody_accepts_was_not_sent(sender: Sender) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]
        for sock in waiting:
            sock.settimeout(0)
            sock.connect_ex(("127.0.0.1", port))
        started = time.monotonic()
        outcome = post(sender, f"http://127.0.0.1:{port}/", seconds=LIMIT_SECONDS)
        assert ended_in(started) < LIMIT_SECONDS + SLACK_SECONDS
        for sock in waiting:
            sock.close()
    assert isinstance(outcome, NotSent)
    assert outcome.kind is NotSentKind.CONNECT


def test_an_unknown_name_was_not_sent() -> None:
    def nobody(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    outcome = post(Sender(AddressPolicy(), resolver=nobody), "https://provider.example/")
    assert outcome == NotSent(NotSentKind.DNS, "The host name could not be resolved.")


def test_a_name_lookup_that_hangs_ends_at_the_deadline() -> None:
    release = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        release.wait(5)
        return ["192.0.2.1"]

    started = time.monotonic()
    outcome = post(Sender(AddressPolicy(), resolver=slow), "https://provider.example/", seconds=LIMIT_SECONDS)
    assert ended_in(started) < LIMIT_SECONDS + SLACK_SECONDS
    release.set()
    assert isinstance(outcome, NotSent)
    assert outcome.kind is NotSentKind.DNS


def test_a_second_address_is_tried_before_the_first_byte() -> None:
    with serve(answer(OK)) as server:
        trusted = AddressPolicy.trusting([f"provider.example:{server.port}"])
        sender = Sender(trusted, resolver=lambda host, port: ["::1", "127.0.0.1"])
        outcome = post(sender, f"http://provider.example:{server.port}/")
        assert isinstance(outcome, Answer)
        assert f"Host: provider.example:{server.port}".encode() in server.received[0]
        sender.close()


@pytest.mark.parametrize(
    "headers",
    [{"X": "a\r\nY: b"}, {"X\n": "a"}, {"X Y": "a"}, {"X": "a\0"}, {"Host": "b"}, {"content-length": "3"}],
)
def test_headers_that_could_break_the_request_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="header"):
        OutgoingRequest("POST", "https://provider.example/", headers)


def test_a_request_shows_neither_headers_nor_body() -> None:
    shown = repr(
        OutgoingRequest("POST", "https://provider.example/", {"Authorization": "Bearer canary"}, b"canary")
    )
    assert "canary" not in shown
