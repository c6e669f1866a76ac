"""Hostile texts through every way in, looked for at every way out: they stay texts.

Field report U1, security list S24, S25, S33, S35.
"""

import io
import itertools
import json
import logging
import logging.config
from collections.abc import Generator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from access.models import Membership
from approvals.models import Proposal
from config.logs import logging_config
from tests.api.callers import proposal_body, run_body
from tests.api.conftest import World, world
from tests.api.test_hooks import Sender, take_in
from tests.security.hostile import HIDES, TEXTS, Page
from tests.workflows.conftest import desk

__all__ = ["desk", "world"]
pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]
STARTS = ("/review/", "/runs/", "/repair/", "/history/", "/runs/freezes/")
MOST_PAGES = 40


@pytest.fixture
def log() -> Generator[io.StringIO]:
    """What the product's own logging writes."""
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers[:], root.level
    logging.config.dictConfig(logging_config(level="INFO"))
    next(handler for handler in root.handlers if isinstance(handler, logging.StreamHandler)).setStream(stream)
    yield stream
    root.handlers[:], root.level = before


def everybody(world: World) -> Client:
    """Ada, with every role there is: she sees every page."""
    Membership.objects.filter(user=world.desk.ada).update(
        roles=["reviewer", "operator", "auditor", "owner", "admin"]
    )
    client = Client(raise_request_exception=False)
    client.force_login(world.desk.ada)
    return client


def check(answer: HttpResponse, where: str) -> Page | None:
    assert answer.status_code < 500, where
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert not any("canary" in name.lower() for name in answer.headers), where
    kind = answer["Content-Type"].split(";")[0]
    if kind != "text/html":
        assert kind in ("application/json", "application/problem+json", "text/plain"), (where, kind)
        return None
    page = Page(answer.content.decode())
    assert page.wrong == [], where
    return page


def plant(world: World) -> int:
    """Every text in every place of every request that takes one; returns how many requests were taken."""
    answers = []
    for number, (name, text) in enumerate(TEXTS.items()):
        short = text[:200]
        piece = {
            "kind": "message", "title": short, "ref": short, "content": text, "captured_at": "2026-09-19T13:50:00Z"
        }  # fmt: skip
        source = {"system": text[:60], "event_id": f"{number}{text[:150]}"}
        arguments = {"order": str(number), "amount": "1.00", "currency": "EUR"}
        body = proposal_body(name, reason=text[:1000], source=source, evidence=[piece], arguments=arguments)
        proposed = world.agent.post("/proposals", body)
        answers.append(proposed)
        answers += [
            world.agent.post("/proposals", body | {"key": text[:90], member: short})
            for member in ("operation", "workflow", "target")
        ]
        answers += [
            world.agent.post(
                "/proposals", body | {"arguments": arguments | {"order": short}, "key": f"a{name}"}
            )
        ]
        started = world.agent.post(
            "/runs", run_body(source=source | {"record": short}, input={"order": text})
        )
        answers.append(started)
        if proposed.status_code == 201 and number % 3 == 0:
            answers.append(world.decide(proposed.json(), "reject", reason=text[:400]))
        elif proposed.status_code == 201 and number % 3 == 1:
            answers.append(
                world.agent.post(f"/proposals/{proposed.json()['id']}/withdraw", {"reason": text[:400]})
            )
        if started.status_code == 201 and number % 2:
            answers.append(
                world.agent.post(f"/runs/{started.json()['run_id']}/cancel", {"reason": text[:400]})
            )
    for answer in answers:
        check(answer, "api")
    return sum(answer.status_code in (200, 201, 202) for answer in answers)


def crawl(client: Client) -> list[str]:
    """Every page that links lead to."""
    todo, seen = list(STARTS), []
    while todo and len(seen) < MOST_PAGES:
        address = todo.pop(0)
        answer = client.get(address)
        seen.append(address)
        page = check(answer, address)
        if page is None:
            continue
        ours = {link.split("#")[0] for link in page.links if link.startswith(("/", "?"))}
        ours = {link for link in ours if not link.startswith("/static/")}
        found = {address.split("?")[0] + link if link.startswith("?") else link for link in ours}
        todo += sorted(found - set(seen) - set(todo) - {""})
    return seen


def test_texts_from_outside_stay_texts_on_every_page_and_in_no_log(world: World, log: io.StringIO) -> None:
    taken = plant(world)
    assert taken > len(TEXTS)
    sender = Sender(world.desk)
    for name, text in TEXTS.items():
        identity = f"{name}-<x-canary/onload=canary()>"
        assert sender.post({"order": text, "<x-canary>": text}, identity=identity).status_code == 202
        sender.post(
            signed=b"",
            identity=text.encode("ascii", "replace").decode()[:100].replace("\r", " ").replace("\n", " "),
        )
    take_in()
    for _ in range(3):
        world.desk.advance()
    client = everybody(world)
    pages = itertools.cycle(("/history/", "/runs/", "/repair/", "/review/"))
    for text in TEXTS.values():  # as forms and filters of pages take it
        address = next(pages)
        check(
            client.get(address, dict.fromkeys(("q", "kind", "actor", "workflow", "status", "next"), text)),
            address,
        )
        check(client.post("/runs/freezes/", {"why": text, "workflow": text, "target": text[:200]}), "freeze")
        check(Client().post("/sign-in/", {"username": text, "password": text, "next": text}), "sign-in")
    seen = crawl(client)
    assert sum(address.startswith("/review/0") for address in seen) >= 5
    assert sum(address.startswith("/runs/0") for address in seen) >= 5
    for proposal in Proposal.objects.all():
        check(client.get(f"/review/{proposal.pk}/"), "proposal")
    for line in log.getvalue().splitlines():
        assert line.isascii(), line
        assert line.isprintable(), line
        assert isinstance(json.loads(line), dict)
        assert "canary" not in line.lower() or '"canary.' in line, line


def test_json_answers_carry_texts_exactly_and_as_json(world: World) -> None:
    for name, text in TEXTS.items():
        answer = world.agent.post(
            "/runs", run_body(f"e-{name}", source={"system": "s", "event_id": text[:150]})
        )
        if answer.status_code != 201:
            continue
        again = world.agent.get(f"/runs/{answer.json()['run_id']}")
        assert again.json()["source"]["event_id"] == text[:150]
        assert not HIDES & {letter for letter in again.content.decode() if letter < " " or letter == "\x7f"}


def test_nul_and_lone_halves_are_refused_and_never_an_error_of_ours(world: World) -> None:
    client = everybody(world)
    raw = json.dumps(run_body(input={"order": "N"})).encode()
    for bad in (b"\\u0000", b"\\ud800", b"\x00", b"\xed\xa0\x80"):
        answer = world.agent.post("/runs", raw.replace(b'"N"', b'"' + bad + b'"'))
        assert answer.status_code == 400, answer.content
    for address in ("/history/", "/runs/", "/repair/", "/review/", "/sign-in/"):
        for name in ("q", "kind", "workflow", "status", "next", "since", "cursor", "page"):
            assert client.get(address, {name: "a\x00b"}).status_code < 500, (address, name)
            assert client.get(f"{address}?{name}=%ff%fe%00").status_code < 500, (address, name)


def test_a_header_from_outside_starts_no_line_and_is_not_echoed(world: World) -> None:
    client = Client(raise_request_exception=False)
    for name in (
        "X-Request-ID",
        "Referer",
        "User-Agent",
        "Accept-Language",
        "HX-Current-URL",
        "Origin",
        "X-Forwarded-Host",
    ):
        answer: Any = client.get("/review/", headers={name: "canary<x-canary>", "HX-Request": "true"})
        assert "canary" not in json.dumps(dict(answer.headers)) + answer.content.decode()
