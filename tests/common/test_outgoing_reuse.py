"""Kept connections: reused when open and quiet, and never the cause of a second send."""

import os
import socket
import time
import warnings
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
from common.wire import Wire
from tests.common.misbehaving import Server, answer, read_request, serve
from tests.common.test_outgoing import OK, Everybody


@pytest.fixture
def sender() -> Iterator[Sender]:
    made = Sender(AddressPolicy(trusted=Everybody()))
    yield made
    made.close()


def post(sender: Sender, server: Server) -> Outcome:
    return sender.send(OutgoingRequest("POST", server.url, {}, b"{}"), Deadline.after(3))


def test_a_quiet_connection_serves_the_next_request(sender: Sender) -> None:
    with serve(answer(OK, close=False)) as server:
        for _ in range(5):
            assert isinstance(post(sender, server), Answer)
        assert len(server.received) == 1
        assert server.received[0].count(b"POST") == 5
        sender.close()


def test_a_connection_that_was_closed_meanwhile_is_replaced(sender: Sender) -> None:
    with serve(answer(OK)) as server:
        assert isinstance(post(sender, server), Answer)
        time.sleep(0.1)
        assert isinstance(post(sender, server), Answer)
        assert [data.count(b"POST") for data in server.received] == [1, 1]


def test_stray_bytes_never_answer_the_next_request(sender: Sender) -> None:
    stray = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"
    with serve(answer(OK + stray, close=False)) as server:
        for _ in range(3):
            outcome = post(sender, server)
            assert isinstance(outcome, Answer)
            assert outcome.body == b"hi"
        assert len(server.received) == 3
        sender.close()


@pytest.mark.parametrize("header", [b"Connection: close\r\n", b""])
def test_a_server_that_ends_the_connection_is_believed(sender: Sender, header: bytes) -> None:
    version = b"HTTP/1.1" if header else b"HTTP/1.0"
    raw = version + b" 200 OK\r\nContent-Length: 2\r\n" + header + b"\r\nhi"
    with serve(answer(raw, close=False)) as server:
        post(sender, server)
        post(sender, server)
        assert len(server.received) == 2


def test_a_close_on_its_way_is_no_answer_and_not_a_second_send(sender: Sender) -> None:
    def one_answer_only(conn: socket.socket, server: Server) -> None:
        read_request(conn, server)
        conn.sendall(OK)
        read_request(conn, server)

    with serve(one_answer_only) as server:
        assert isinstance(post(sender, server), Answer)
        outcome = post(sender, server)
        assert isinstance(outcome, NoAnswer)
        assert (outcome.kind, outcome.bytes_seen) == (NoAnswerKind.RESET, 0)
        assert [data.count(b"POST") for data in server.received] == [2]


def test_a_first_write_that_the_system_refuses_was_not_sent(sender: Sender) -> None:
    class Trusting(Wire):
        """Believes itself clean, as a connection does whose end arrives just after the check."""

        def is_clean(self) -> bool:
            return True

    with serve(answer(OK)) as server:
        sock = socket.create_connection(("127.0.0.1", server.port))
        sock.shutdown(socket.SHUT_WR)
        sender.pool.give_back(("http", "127.0.0.1", server.port), Trusting(sock))
        outcome = post(sender, server)
        assert isinstance(outcome, NotSent)
        assert outcome.kind is NotSentKind.STALE
        assert not any(server.received)


def test_an_idle_connection_expires(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.wire_pool.IDLE_SECONDS", 0.05)
    with serve(answer(OK, close=False)) as server:
        post(sender, server)
        time.sleep(0.1)
        post(sender, server)
        assert len(server.received) == 2
        sender.close()


def test_a_forked_process_starts_without_the_connections_of_its_parent(sender: Sender) -> None:
    with serve(answer(OK, close=False)) as server:
        assert isinstance(post(sender, server), Answer)
        assert sum(map(len, sender.pool.idle.values())) == 1
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # newer versions warn: this process has threads
            child = os.fork()
        if child == 0:
            os._exit(0 if sender.pool.idle == {} else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert isinstance(post(sender, server), Answer)
        assert len(server.received) == 1
        sender.close()
