"""What every answer tells browsers, over the whole map of addresses and every way to be refused.

Security list S2 to S7 and S38.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.factories import make_tenant, make_user
from tests.processes import ROOT

pytestmark = pytest.mark.django_db
SOME_ID = "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"
VALUES = {"uuid": SOME_ID, "int": "1", "str": "x", "slug": "x", "path": "x"}


def addresses(patterns: Any = None, prefix: str = "") -> Iterator[str]:
    """One address for every route there is."""
    for entry in get_resolver().url_patterns if patterns is None else patterns:
        text = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from addresses(entry.url_patterns, text)
        elif isinstance(entry, URLPattern):
            yield "/" + filled(text)


def filled(pattern: str) -> str:
    text = re.sub(r"<(?:(\w+):)?\w+>", lambda found: VALUES.get(found[1] or "str", "x"), pattern)
    text = re.sub(r"\(\?P<\w+>[^)]*\)", "1", text)
    return re.sub(r"[\^$]|\\Z", "", text).replace("\\", "")


ALL = sorted(set(addresses()))


def check(answer: HttpResponse, *, static: bool = False) -> None:
    policy = dict(part.split(" ", 1) for part in answer["Content-Security-Policy"].split("; "))
    for directive in ("default-src", "object-src", "base-uri", "frame-ancestors"):
        assert policy[directive] == "'none'"
    for directive in ("script-src", "style-src", "img-src", "connect-src", "form-action"):
        assert policy[directive] == "'self'"
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] in ("same-origin", "no-referrer")
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer["X-Frame-Options"] == "DENY"
    assert "camera=()" in answer["Permissions-Policy"]
    assert (answer["Cache-Control"] == "no-store") is not static
    assert "Server" not in answer.headers


@pytest.fixture
def person() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(
        make_user(make_tenant("harbour"), "ada", roles=["reviewer", "operator", "admin", "auditor", "owner"])
    )
    return client


def test_the_map_has_every_desk_and_every_call() -> None:
    assert len(ALL) > 50
    for known in (
        "/review/",
        "/runs/",
        "/repair/",
        "/history/",
        "/api/v1/runs",
        "/sign-in/",
        "/healthz",
        "/metrics",
    ):
        assert known in ALL


@pytest.mark.ignore_template_errors  # pages of libraries too
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}], ids=["page", "fragment"])
def test_every_address_signed_in_or_not_by_every_method(person: Client, headers: dict[str, str]) -> None:
    strangers = Client(raise_request_exception=False)
    for address in ALL:
        for client in (strangers, person):
            for method in ("GET", "POST", "DELETE"):
                if (method, client) == ("POST", person) and "sign" in address:
                    continue
                answer = client.generic(method, address, headers=headers)
                check(answer)


def test_every_kind_of_refusal(person: Client, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    strict = Client(enforce_csrf_checks=True, raise_request_exception=False)
    seen = {
        400: person.get("/review/", headers={"Host": "evil.example"}),
        403: strict.post("/sign-in/", {}),
        404: person.get("/nowhere"),
        405: person.delete("/review/"),
        413: person.post("/sign-in/", b"x" * 5_000_000, content_type="text/plain"),
    }
    settings.PLACET_DECISIONS_PER_MINUTE = 0.25
    decide = f"/review/{SOME_ID}/decide/"
    seen[429] = [person.post(decide) for _ in range(3)][-1]

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("canary")

    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("canary")

    monkeypatch.setattr("access.middleware.only_membership", broken)
    seen[500] = person.get("/review/")
    monkeypatch.setattr("access.middleware.only_membership", away)
    seen[503] = person.get("/review/")
    assert {status: answer.status_code for status, answer in seen.items()} == {
        status: status for status in seen
    }
    for answer in seen.values():
        check(answer)
        assert b"canary" not in answer.content
        assert b"Traceback" not in answer.content


def test_a_page_for_each_refusal_of_the_api_has_a_request_id(person: Client) -> None:
    for address in ("/api/v1/nowhere", "/api/v1/runs"):
        answer = person.get(address)
        check(answer)
        assert answer.json()["request_id"] == answer["X-Request-ID"]


def test_static_files_too(client: Client) -> None:
    for address in ("/static/placet/app.css", "/static/placet/seal.svg", "/static/django_htmx/htmx-2.min.js"):
        answer = client.get(address)
        assert answer.status_code == 200, address
        check(answer, static=True)
        answer.close()


# -- as installations are run ---------------------------------------------------------------------------------

_PRODUCTION = {
    "PLACET_BASE_URL": "https://placet.example.org", "PLACET_ALLOWED_HOSTS": "", "PLACET_DEBUG": "false",
    "PLACET_SECRET_KEY": "kJ8s7fGq2LmZ0xYw5RtNcVbP3aHdE9uiOo4Tg6MnQyWzXr1S7uB4vD",
    "DJANGO_SETTINGS_MODULE": "config.settings", "DJANGO_ALLOW_ASYNC_UNSAFE": "",
}  # fmt: skip
_ASK = """
import json, django
django.setup()
from django.test import Client
told = {}
for address in ("/sign-in/", "/healthz", "/nowhere", "/review/", "/api/v1/runs"):
    answer = Client(raise_request_exception=False).get(address, secure=True, headers={"Host": "placet.example.org"})
    told[address] = [answer.status_code, dict(answer.headers), {
        name: [cookie["secure"], cookie["httponly"], cookie["samesite"], cookie["path"], cookie["domain"]]
        for name, cookie in answer.cookies.items()}]
plain = Client().get("/sign-in/", headers={"Host": "placet.example.org"})
told["plain"] = [plain.status_code, dict(plain.headers), {}]
print(json.dumps(told))
"""


def in_production(*arguments: str) -> subprocess.CompletedProcess[str]:
    from django.conf import settings

    # The test database, as the application role reaches it.
    name = settings.DATABASES["default"]["NAME"]
    address = re.sub(r"/[^/?]+(\?|$)", f"/{name}\\1", os.environ["DATABASE_URL"], count=1)
    env = {
        name: value for name, value in (os.environ | _PRODUCTION | {"DATABASE_URL": address}).items() if value
    }
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )


def test_djangos_own_deployment_check_has_nothing_to_say() -> None:
    """S1: nothing is silenced."""
    done = in_production("manage.py", "check", "--deploy", "--fail-level", "WARNING")
    assert (done.returncode, "0 silenced" in done.stdout) == (0, True), done.stdout + done.stderr


def test_over_https_browsers_stay_there_and_cookies_are_of_this_host_only() -> None:
    done = in_production("-c", _ASK)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    status, headers, _ = told.pop("plain")
    assert (status, headers["Location"]) == (301, "https://placet.example.org/sign-in/")
    for _, headers, _ in told.values():
        assert headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains; preload"
    cookies = told["/sign-in/"][2]
    assert cookies["__Host-placet_csrf"] == [True, True, "Lax", "/", ""]
    assert all(name.startswith("__Host-") for name in cookies)
