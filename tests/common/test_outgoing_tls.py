"""TLS: the certificate must fit the name in the URL; the connection goes to the checked address."""

import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from common.addresses import AddressPolicy
from common.deadline import Deadline
from common.outgoing import Answer, NotSent, NotSentKind, OutgoingRequest, Sender
from tests.common.misbehaving import Server, answer, serve
from tests.common.test_outgoing import OK

NAME = "provider.example"


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's context around one fresh self-signed certificate for ``NAME``."""
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    _write_certificate(path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cafile=str(path))


def _write_certificate(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))


def sender_for(server: Server, name: str, tls: ssl.SSLContext | None) -> tuple[Sender, Callable[[], object]]:
    policy = AddressPolicy.trusting([f"{name}:{server.port}"])
    sender = Sender(policy, tls=tls, resolver=lambda host, port: ["127.0.0.1"])
    request = OutgoingRequest("POST", f"https://{name}:{server.port}/", {}, b"{}")
    return sender, lambda: sender.send(request, Deadline.after(3))


def test_the_name_is_checked_and_the_connection_kept(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with serve(answer(OK, close=False), tls=contexts[0]) as server:
        sender, send = sender_for(server, NAME, contexts[1])
        for _ in range(3):
            assert isinstance(send(), Answer)
        assert len(server.received) == 1
        assert f"Host: {NAME}:{server.port}".encode() in server.received[0]
        sender.close()


def test_another_name_was_not_sent(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with serve(answer(OK), tls=contexts[0]) as server:
        outcome = sender_for(server, "other.example", contexts[1])[1]()
        assert isinstance(outcome, NotSent)
        assert outcome.kind is NotSentKind.TLS
        assert not any(server.received)


def test_an_unknown_issuer_was_not_sent(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with serve(answer(OK), tls=contexts[0]) as server:
        outcome = sender_for(server, NAME, None)[1]()
        assert isinstance(outcome, NotSent)
        assert outcome.kind is NotSentKind.TLS


def test_a_server_without_tls_was_not_sent(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with serve(answer(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")) as server:
        outcome = sender_for(server, NAME, contexts[1])[1]()
        assert isinstance(outcome, NotSent)
        assert outcome.kind is NotSentKind.TLS


def test_certificates_are_read_for_the_first_https_address_and_once(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[ssl.SSLContext] = []

    def read_certificates() -> ssl.SSLContext:
        read.append(contexts[1])
        return contexts[1]

    monkeypatch.setattr(ssl, "create_default_context", read_certificates)
    with serve(answer(OK)) as plain, serve(answer(OK), tls=contexts[0]) as secure:
        policy = AddressPolicy.trusting([f"{NAME}:{plain.port}", f"{NAME}:{secure.port}"])
        sender = Sender(policy, resolver=lambda host, port: ["127.0.0.1"])
        post = OutgoingRequest("POST", f"http://{NAME}:{plain.port}/", {}, b"{}")
        assert isinstance(sender.send(post, Deadline.after(3)), Answer)
        assert read == []
        posts = [OutgoingRequest("POST", f"https://{NAME}:{secure.port}/", {}, b"{}")] * 4
        with ThreadPoolExecutor(4) as threads:
            outcomes = list(threads.map(lambda one: sender.send(one, Deadline.after(3)), posts))
        assert all(isinstance(outcome, Answer) for outcome in outcomes), outcomes
        assert len(read) == 1
        sender.close()
