"""Every address of the URL map and of the API, with another tenant's ids, by everybody: the same as with none.

Addresses come from the URL map, ids from what is planted in the other tenant: a new address is tried by itself, and one
that names a new kind of thing fails until such a thing is planted.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from access.enums import Role
from common.ids import new_id
from common.models import Tenant
from config.api import api
from tests.api.callers import Caller, automation, signed_in, token_for
from tests.database import captured_queries, statements
from tests.factories import make_tenant, make_user
from tests.tenants.planted import CANARY, id_for, plant

pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]
ADMIN = "admin/"  # of superusers, and no tenant's
WHO = [*Role.values, "token", "anonymous"]
# Parameters that name no row of a tenant: words, other people's ways in, a person's own keys and sessions.
WORDS = {
    "name": "toy.pay",
    "step": "refund",
    "key": "refund",
    "uidb36": "1",
    "signature": "x",
    "provider_id": "oidc",
    "pk": "1",
    "session_id": "1",
    "choice": "take",
    "kind": "undo",
}
# One row, named otherwise than by its id.
OTHERWISE = {"ref": "document_id"}
# Fragments that are empty where there is nothing to show.
EMPTY = {"/repair/run/{run_id}/"}
# A person's own pages, and machines': secrets are made anew for each answer, and numbers are of the installation.
OF_THEIR_OWN = ("/account/", "/sign-in/", "/metrics", "/readyz")
# What differs in two answers to the same question: ids of requests, keys of forms, the time.
CHANGING = re.compile(
    rb'("request_id": ?"[^"]*"|"instance": ?"[^"]*"|csrfmiddlewaretoken" value="[^"]*"|'
    rb"Reference: [0-9a-f]{32}|<code>[0-9a-f]{32}</code>|[0-9a-f]{32}|"
    rb"since=[0-9T%A.-]+|"
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?|\d\d:\d\d(:\d\d)?)"
)


@dataclass(frozen=True)
class Address:
    """One pattern of the URL map: ``/runs/{run_id}/``."""

    text: str
    parameters: tuple[str, ...]

    def of(self, values: dict[str, str]) -> str:
        return self.text.format(**values)


def addresses(resolver: URLResolver | None = None, prefix: str = "/") -> Iterator[Address]:
    for pattern in (resolver or get_resolver()).url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if str(pattern.pattern) != ADMIN:
                yield from addresses(pattern, path)
        elif isinstance(pattern, URLPattern):
            parameters = tuple(re.findall(r"<(?:\w+:)?(\w+)>", path))
            yield Address(re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path), parameters)


ADDRESSES = sorted(set(addresses()), key=lambda address: address.text)
WITH_IDS = [address for address in ADDRESSES if set(address.parameters) - set(WORDS)]
WITHOUT = [address for address in ADDRESSES if not set(address.parameters) - set(WORDS)]


@dataclass
class Place:
    """Our tenant, in which somebody asks, and the other, of which nothing may be seen."""

    ours: Tenant
    callers: dict[str, Caller]


@pytest.fixture
def place() -> Place:
    ours = make_tenant("ours")
    callers = {role: signed_in(make_user(ours, f"our-{role}", roles=[Role(role)])) for role in Role.values}
    callers["token"] = automation(token_for(ours, "our-agent"))
    callers["anonymous"] = Caller(Client(), {})
    return Place(ours, callers)


def ask(caller: Caller, method: str, address: str) -> HttpResponse:
    if method == "get":
        return caller.client.get(address, headers=caller.headers)
    if address.startswith("/api/"):
        return caller.client.post(address, {}, content_type="application/json", headers=caller.headers)
    return caller.client.post(address, {}, headers=caller.headers)


def told(answer: HttpResponse, values: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    """Everything of an answer but what names this very request."""
    words = {value for name, value in values.items() if name not in WORDS}

    def plain(text: bytes) -> bytes:
        for word in words:
            text = text.replace(word.encode(), b"ID")
        return CHANGING.sub(b"*", text)

    headers = {
        name: plain(value.encode()).decode() for name, value in answer.items()
        if name not in ("X-Request-ID", "Content-Length", "Content-Security-Policy", "ETag")
    }  # fmt: skip
    return answer.status_code, headers, plain(answer.content)


def test_the_map_is_what_is_tried() -> None:
    paths = {f"/api/v1{path}" for path in api.get_openapi_schema(path_prefix="")["paths"]}
    assert paths <= {address.text for address in ADDRESSES}
    assert len(WITH_IDS) > 25


@pytest.mark.parametrize("who", WHO)
def test_anothers_id_is_answered_as_one_that_never_was(  # field report K1, security list S9
    place: Place, who: str
) -> None:
    theirs, caller = plant("theirs"), place.callers[who]
    differences = []
    for address in WITH_IDS:
        ids = [name for name in address.parameters if name not in WORDS]
        foreign = WORDS | {name: id_for(OTHERWISE.get(name, name), theirs) for name in ids}
        missing = WORDS | {name: str(new_id()) for name in ids}
        for method in ("get", "post"):
            answers, costs = [], []
            for values in (foreign, missing):
                with captured_queries() as seen:
                    answers.append(ask(caller, method, address.of(values)))
                costs.append(len(statements(seen)))
            here, nowhere = told(answers[0], foreign), told(answers[1], missing)
            if here != nowhere or costs[0] != costs[1]:
                differences.append((method, address.text, here, nowhere, costs))
            assert CANARY.encode() not in answers[0].content, address
            nothing = answers[0].status_code == 204 or address.text in EMPTY
            assert nothing or answers[0].status_code >= 300, address
            if who == "token" and method == "get" and address.text.startswith("/api/v1/"):
                assert answers[0].status_code in (401, 403, 404, 405), address
    assert differences == []


@pytest.mark.parametrize("who", WHO)
def test_what_is_listed_and_counted_stays_the_same(place: Place, who: str) -> None:
    """Every page without an id, before and after another tenant is full of things."""
    caller = place.callers[who]
    # That a bundle was taken along is an event each time; what is in it, `tests/audit/test_bundle.py` says.
    apart = ("sign-out", "audit/bundle")
    pages = [address.of(WORDS) for address in WITHOUT if not any(word in address.text for word in apart)]
    # A page shows again what was looked for, so that is a part of the word only.
    pages += [f"{page}?q={CANARY[:-2]}&query={CANARY[:-2]}" for page in pages]
    first = {page: told(ask(caller, "get", page), {}) for page in pages}
    plant("theirs")
    for page in pages:
        answer = ask(caller, "get", page)
        assert CANARY.encode() not in answer.content, page
        if not page.startswith(OF_THEIR_OWN) and "?" not in page:
            now = told(answer, {})
            changed = set(now[2].splitlines()) ^ set(first[page][2].splitlines())
            assert (now[:2], changed) == (first[page][:2], set()), page


@pytest.mark.parametrize("who", WHO)
def test_django_s_admin_is_not_for_members(place: Place, who: str) -> None:
    theirs, caller = plant("theirs"), place.callers[who]
    for address in (
        "/admin/",
        "/admin/workflows/run/",
        f"/admin/workflows/run/{id_for('run_id', theirs)}/change/",
    ):
        answer = ask(caller, "get", address)
        assert answer.status_code in (302, 403, 404), address
        assert CANARY.encode() not in answer.content


def test_nobody_waits_for_anothers_thing(place: Place) -> None:
    """A long-poll of what is not theirs ends at once, as of what is not there."""
    theirs, caller = plant("theirs"), place.callers["token"]
    waiting = [
        path for path, operations in api.get_openapi_schema(path_prefix="")["paths"].items()
        if any(item["name"] == "wait" for item in operations.get("get", {}).get("parameters", []))
    ]  # fmt: skip
    assert len(waiting) >= 2
    for path in waiting:
        (name,) = re.findall(r"{(\w+)}", path)
        for value in (id_for(name, theirs), str(new_id())):
            begun = time.monotonic()
            answer = caller.get(path.format(**{name: value}), wait=20)
            assert answer.status_code == 404
            assert time.monotonic() - begun < 10


def test_a_token_and_a_session_of_two_tenants_are_not_mixed(place: Place) -> None:
    """A browser that is signed in at one tenant sends the token of another: the token alone counts."""
    theirs = plant("theirs")
    both: dict[str, Any] = {
        "Authorization": automation(token_for(theirs, "their-other")).headers["Authorization"]
    }
    client = place.callers["reviewer"].client
    answer = client.get("/api/v1/runs", headers=both)
    assert answer.status_code == 200
    assert CANARY.encode() in answer.content
    assert CANARY.encode() not in client.get("/runs/").content
    assert place.callers["token"].get("/runs").json()["runs"] == []
