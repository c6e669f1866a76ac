"""Which addresses may be called: known ways around the check, and a name that changes its answer."""

import socket

import pytest

from common.addresses import AddressPolicy, AddressRefused, check_addresses, parse_target
from common.deadline import Deadline
from common.outgoing import NotSent, NotSentKind, OutgoingRequest, Sender
from tests.common.misbehaving import answer, serve

PUBLIC = ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"]
PRIVATE = [
    "127.0.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "192.88.99.1",
    "192.0.2.1",
    "0.0.0.0",  # noqa: S104
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%1",
    "fd00:ec2::254",
    "ff02::1",
    "::ffff:93.184.216.34",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::5db8:d822",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "::7f00:1",  # IPv4-compatible
    "::93.184.216.34",
    "64:ff9b::7f00:1",
    "64:ff9b:1:7f00:1::",
    "64:ff9b:1:ffff::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "2002:5db8:d822::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
    "2001:10::1",
    "2001:20::1",
    "100.127.255.255",
    "172.31.255.255",
    "192.0.0.8",
    "198.51.100.1",
    "203.0.113.1",
    "239.255.255.250",
    "fc00::1",
    "fec0::1",
    "fe80::5efe:7f00:1",
    "ff0e::1",
    "100::1",
    "5f00::1",
    "4000::1",
    "::ffff:0:127.0.0.1",
    "127.000.000.001",
    "0177.0.0.1",
    "2130706433",
    "not an address",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_called(address: str) -> None:
    assert [str(found) for found in check_addresses([address], trusted=False)] == [address]


@pytest.mark.parametrize("address", PRIVATE)
def test_other_addresses_may_not(address: str) -> None:
    with pytest.raises(AddressRefused):
        check_addresses([address], trusted=False)


def test_one_private_address_refuses_the_host() -> None:
    with pytest.raises(AddressRefused):
        check_addresses([PUBLIC[0], "127.0.0.1"], trusted=False)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "::ffff:127.0.0.1"]
)
def test_metadata_and_disguises_are_refused_even_for_trusted_hosts(address: str) -> None:
    with pytest.raises(AddressRefused):
        check_addresses([address], trusted=True)


@pytest.mark.parametrize(
    "url",
    [
        "http://provider.example/",
        "https://provider.example:8443/",
        "ftp://provider.example/",
        "https://user@provider.example/",
        "https://:secret@provider.example/",
        "https://provider.example/#part",
        "https://provider.example\\@other.example/",
        "https://provider.example/a b",
        "https://provider.example/a\r\nX: y",
        "https://pro\tvider.example/",
        "https://prövider.example/",
        "https://provider.example:99999/",
        "https://[::1/",
        "https:///path",
        "//provider.example/",
        "",
    ],
)
def test_addresses_that_are_not_plain_https_are_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        parse_target(url, AddressPolicy())


def test_the_operator_may_vouch_for_one_host_and_port() -> None:
    policy = AddressPolicy.trusting(["Provider.internal:8080", "[::1]:9000"])
    assert parse_target("http://provider.internal:8080/a?b=c", policy).path == "/a?b=c"
    assert parse_target("http://[::1]:9000/", policy).authority == "[::1]:9000"
    with pytest.raises(AddressRefused):
        parse_target("http://provider.internal:8081/", policy)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "localhost"]
)
def test_every_way_to_write_the_loopback_is_refused(host: str) -> None:
    outcome = Sender(AddressPolicy()).send(OutgoingRequest("GET", f"https://{host}/"), Deadline.after(5))
    assert isinstance(outcome, NotSent)
    assert outcome.kind in (NotSentKind.ADDRESS, NotSentKind.DNS)


def test_a_name_that_changes_its_answer_is_checked_on_the_answer_that_is_used() -> None:
    asked: list[str] = []

    def flipping(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) > 1 else ["192.0.2.1"]

    with serve(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as server:
        policy = AddressPolicy(ports=frozenset({server.port}))
        sender = Sender(policy, resolver=flipping)
        for _ in range(2):
            request = OutgoingRequest("GET", f"https://provider.example:{server.port}/")
            outcome = sender.send(request, Deadline.after(2))
            assert outcome == NotSent(
                NotSentKind.ADDRESS, "The host resolves to an address that may not be called."
            )
        assert server.received == []
    assert asked == ["provider.example", "provider.example"]


def test_the_proxy_of_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(answer()) as proxy, socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
        closed.close()
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        sender = Sender(AddressPolicy.trusting([f"127.0.0.1:{port}"]))
        outcome = sender.send(OutgoingRequest("GET", f"http://127.0.0.1:{port}/"), Deadline.after(2))
        assert isinstance(outcome, NotSent)
        assert proxy.received == []
