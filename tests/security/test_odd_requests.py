"""Requests that no browser sends: refused in our words with our headers, never an error that nobody catches."""

import json
from collections.abc import Iterator
from io import BytesIO
from itertools import product
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client, RequestFactory
from django.test.client import BOUNDARY

from common.headers import POLICIES
from tests.api.callers import automation, token_for
from tests.factories import make_tenant

pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]
# What Python has a codec for: texts in other encodings, and things that are no encoding of text at all.
CHARSETS = ["utf-7", "hex", "punycode", "rot13", "idna", "base64", "utf-16", "latin-1", "unicode_escape"]
KINDS = [
    "application/x-www-form-urlencoded",
    f"multipart/form-data; boundary={BOUNDARY}",
    "text/plain",
    "application/json",
]
FORM = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\n'.encode()
BODY = FORM + b"\xff+AGE-\r\n--" + BOUNDARY.encode() + b"--\r\n"


def strict(answer: Any) -> None:
    assert {name: answer[name] for name in POLICIES} == POLICIES
    assert answer["Cache-Control"] == "no-store"
    assert "default-src 'none'" in answer["Content-Security-Policy"]


@pytest.fixture
def served(settings: Any) -> Iterator[Any]:
    """Asks the product as the web server does: nothing of the test client between."""
    from config.wsgi import application

    def ask(
        method: str, address: str, body: bytes, kind: str, headers: dict[str, str]
    ) -> tuple[int, Any, bytes]:
        path, _, query = address.partition("?")
        given = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
        environ = RequestFactory()._base_environ(
            PATH_INFO=path, QUERY_STRING=query, REQUEST_METHOD=method, CONTENT_TYPE=kind,
            CONTENT_LENGTH=str(len(body)), **{"wsgi.input": BytesIO(body)}, **given,
        )  # fmt: skip
        told: list[Any] = []
        chunks = application(environ, lambda status, head, _=None: told.extend((status, dict(head))))
        return int(told[0].split()[0]), told[1], b"".join(chunks)

    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    yield ask
    request_started.connect(close_old_connections)
    request_finished.connect(close_old_connections)


def test_another_encoding_is_refused_by_everything(served: Any) -> None:
    agent = automation(token_for(make_tenant()))
    asking = (
        ({}, "/sign-in/?next=%ff"),
        ({}, "/history/check/?q=%ff"),
        ({}, "/healthz?q=%ff"),
        (agent.headers, "/api/v1/runs?cursor=%ff"),
        ({}, "/api/v1/hooks/nowhere?q=%ff"),
    )
    for kind, charset, (headers, address), method in product(
        KINDS, CHARSETS, asking, ("GET", "POST", "TRACE")
    ):
        for stated in (
            f"{kind}; charset={charset}",
            f'{kind};Charset = "{charset.upper()}" ; x=y',
            f"{kind}; charset*=utf-8''{charset}",
            f'{kind}; cha; charset="utf-8"rset={charset}',
            f"{kind}; charset=utf-8; charset={charset}",
        ):
            status, head, content = served(method, address, BODY, stated, headers)
            assert status < 500, (method, address, stated)
            assert status == 400 or "; cha;" in stated
            strict(head)
            if status == 400 and address.startswith("/api/"):
                assert json.loads(content)["code"] == "bad_request"


def test_utf_8_by_its_names_is_read(served: Any) -> None:
    for charset in (
        "; charset=utf-8",
        ";CHARSET=UTF-8",
        "; charset=utf8",
        '; charset="utf-8"',
        "; charset=",
        "",
    ):
        status, _, content = served("GET", "/sign-in/?next=/%C3%BC", b"", f"text/plain{charset}", {})
        assert (status, b"/%C3%BC" in content or "/ü".encode() in content) == (200, True), charset


def test_an_odd_form_is_refused_or_read() -> None:
    browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
    bodies = (b"a=1&" * 3000, b"a=\xff%ff%00&%00=1", b"=&=;", b"a" * 100_000)
    for address, body in product(("/sign-in/", "/people/new/", "/review/arrivals/"), bodies):
        answer = browser.post(address, body, "application/x-www-form-urlencoded")
        assert answer.status_code < 500, address
        strict(answer)
