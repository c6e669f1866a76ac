"""Secrets and personal data in every way in, looked for at every way out, in the logs, in Redis and in the tables.

Invariant 8 (I30), security list S25 and S29, field reports S1, S3 and I5.
"""

import io
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
import redis
from django.conf import settings
from django.core import mail
from django.db import connections
from django.test import Client

from access.enums import Role, Scope
from approvals.actions_questions import ask
from approvals.actions_rejections import lift
from approvals.models import Proposal
from approvals.sampling import say
from common.clock import db_clock
from common.digests import tenant_hmac
from common.sealed import sealed_models, sealed_names
from repair.enums import Mark
from repair.incidents.acting import Texts, mark, note, open_incident
from repair.models_incidents import IncidentRun
from tests.api.callers import Caller, as_json, automation, signed_in, token_for
from tests.api.conftest import World, world
from tests.api.test_hooks import Sender, take_in
from tests.approvals.later_walls import sample_row
from tests.factories import make_user
from tests.repair.leading import criteria
from tests.security import letters
from tests.security.hostile import Page
from tests.security.test_hostile_text import log
from tests.workflows.conftest import desk, person
from tests.workflows.secrets_file import SecretsFile, secrets_file
from workflows import registry
from workflows.actions.correcting import correct_outcome
from workflows.actions.editing import Edit, edit
from workflows.authoring import Observation
from workflows.models import Command, Document, Run

__all__ = ["desk", "log", "secrets_file", "world"]
pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]

PEOPLE = {
    name: f"kanari-{name}"
    for name in (
        "input", "address", "data", "outside", "evidence", "reason", "decision", "changes", "withdrawal", "cancel",
        "correction", "webhook", "code", "body", "note", "query", "question", "colleague", "answer", "lifted", "edit",
        "afterwards", "late",
    )
}  # fmt: skip
"""Personal data, each in one way in."""
SECRETS = {name: f"geheim-{name}-5f1d" for name in ("postage", "password", "header", "cookie", "typed")}
LED = {name: f"kanari-led-{name}" for name in ("trouble", "hypothesis", "remedy", "signal", "note", "mark")}
"""What operators write about an incident. They read it themselves; nothing outside its pages may hold it."""
SEES_PERSONAL = (Role.REVIEWER, Role.AUDITOR, Role.OWNER)
CLOSED = (Role.OPERATOR, Role.ADMIN)
STARTS = ("/review/", "/runs/", "/repair/", "/history/", "/runs/freezes/", "/people/", "/account/")


@dataclass
class Planted:
    """What was planted beyond the constants, and where it can be looked for."""

    world: World
    secrets: list[str] = field(default_factory=lambda: list(SECRETS.values()))
    runs: list[str] = field(default_factory=list)
    proposals: list[str] = field(default_factory=list)


@pytest.fixture
def planted(world: World, log: io.StringIO, secrets_file: SecretsFile) -> Iterator[Planted]:
    for flow in (letters.Letters, letters.LettersOutside):
        registry.register(flow)
    registry.register_definitions(clock=db_clock)
    secrets_file.write({world.desk.tenant.slug: {"postage": SECRETS["postage"]}})
    found = Planted(world)
    try:
        _people(found)
        _cases(found)
        _talk(found)
        _webhook(found)
        _incident(found)
        yield found
    finally:
        for flow in (letters.Letters, letters.LettersOutside):
            registry._workflows.pop(flow.name)
        registry._operations.pop(("letters.send", 1))
        letters.ANSWERS.clear()


def _people(found: Planted) -> None:
    """Wrong passwords, headers and cookies; and tokens, of which the right ones must not turn up either."""
    client = Client(headers={"X-Secret": SECRETS["header"], "Authorization": f"Bearer {SECRETS['header']}"})
    client.cookies["placet_session"] = SECRETS["cookie"]
    client.get("/review/", {"q": PEOPLE["query"]})
    Client().post("/sign-in/", {"login": "ada", "password": SECRETS["password"]})
    Client().post("/sign-in/", {"login": "ada", "password": SECRETS["typed"]})
    found.secrets.append(found.world.agent.headers["Authorization"].removeprefix("Bearer "))
    found.world.agent.get("/runs/nothing", q=PEOPLE["query"])


def _cases(found: Planted) -> None:
    """A life to the end, one with an error in the connector, one refused; and each kind of answer of people."""
    desk, agent = found.world.desk, found.world.agent
    for number in range(3):
        given = {
            "case": str(number), "to": f"{PEOPLE['address']}@example.org", "name": f"Jane {PEOPLE['input']}"
        }  # fmt: skip
        source = {"system": "letters", "event_id": f"e-{number}"}
        run = as_json(agent.post("/runs", {"workflow": "letters", "source": source, "input": given}), 201)
        found.runs.append(run["run_id"])
    desk.advance()
    for run_id in found.runs:
        waits = as_json(agent.get(f"/runs/{run_id}"))["waiting"]["wait_id"]
        agent.post(
            f"/runs/{run_id}/data", {"wait_id": waits, "data": {"text": PEOPLE["data"], "x": PEOPLE["data"]}}
        )
        as_json(agent.post(f"/runs/{run_id}/data", {"wait_id": waits, "text": PEOPLE["data"]}))
    desk.advance()
    letters.ANSWERS += [
        Observation(sent=True, status=201, reference="letter_9", body={"to": PEOPLE["body"]}),
        ValueError(PEOPLE["body"]),
        Observation(sent=True, status=422, code=f"no house of {PEOPLE['code']}", body={"to": PEOPLE["body"]}),
    ]
    for proposal in Proposal.objects.filter(workflow="letters"):
        desk.decide(proposal, reason=PEOPLE["decision"])
    desk.work()
    desk.advance()
    _words(found)


def _outside(found: Planted, key: str) -> dict[str, Any]:
    arguments = {
        "case": key, "to": f"{PEOPLE['outside']}@example.org", "name": PEOPLE["outside"], "note": PEOPLE["note"],
        "key": {"secret_ref": "postage"},
    }  # fmt: skip
    piece = {
        "kind": "message", "title": "A letter", "ref": "m-1", "content": PEOPLE["evidence"],
        "captured_at": "2026-09-19T13:50:00Z",
    }  # fmt: skip
    body = {
        "workflow": "letters-outside", "source": {"system": "letters", "event_id": key}, "key": key,
        "operation": "letters.send", "arguments": arguments, "reason": PEOPLE["reason"], "evidence": [piece],
    }  # fmt: skip
    bad = arguments | {"key": SECRETS["typed"], "case": f"{key}-bad"}
    found.world.agent.post("/proposals", body | {"key": f"{key}-bad", "arguments": bad})
    return as_json(found.world.agent.post("/proposals", body), 201)  # type: ignore[no-any-return]


def _words(found: Planted) -> None:
    """What people and automations say in their own words."""
    world, agent = found.world, found.world.agent
    asked, refused, taken = (_outside(found, key) for key in ("changes", "reject", "withdraw"))
    as_json(world.decide(asked, "request_changes", reason=PEOPLE["changes"]))
    as_json(world.decide(refused, "reject", reason=PEOPLE["decision"]))
    as_json(agent.post(f"/proposals/{taken['id']}/withdraw", {"reason": PEOPLE["withdrawal"]}))
    open_ = _outside(found, "open")
    cancelled = _outside(found, "cancel")
    agent.post(f"/runs/{cancelled['run_id']}/cancel", {"reason": PEOPLE["cancel"]})
    found.proposals += [row["id"] for row in (asked, refused, taken, open_, cancelled)]
    world.desk.advance()
    run = Run.objects.filter(workflow="letters", status="completed").first()
    assert run is not None
    owner = make_user(world.desk.tenant, "owner", roles=[Role.OWNER])
    correct_outcome(
        tenant_id=run.tenant_id, run_id=run.pk, outcome="other", reason=PEOPLE["correction"], by=person(owner)
    )


def _talk(found: Planted) -> None:
    """Questions and answers, a remembered rejection and why it was lifted, an edit, and words afterwards."""
    world, desk = found.world, found.world.desk
    asked, remembered, edited = (_outside(found, key) for key in ("asked", "remembered", "edited"))
    common: dict[str, Any] = {"tenant_id": desk.tenant.pk, "clock": db_clock}
    by = person(desk.ada)
    told = [
        ask(proposal_id=UUID(asked["id"]), text=PEOPLE[name], colleague=colleague, by=by, **common)
        for name, colleague in (("question", None), ("colleague", desk.ben.pk))
    ]  # fmt: skip
    body = {"question_id": str(told[0].question.pk), "answer": PEOPLE["answer"]}
    as_json(world.agent.post(f"/proposals/{asked['id']}/answers", body))
    as_json(world.decide(remembered, "reject", reason=PEOPLE["decision"], remember="day"))
    lift(proposal_id=UUID(remembered["id"]), why=PEOPLE["lifted"], by=by, **common)
    new = edit(
        proposal_id=UUID(edited["id"]), edit=Edit(edited["digest"], {"text": PEOPLE["edit"]}), by=by, **common
    )
    late = world.ben.post(
        f"/proposals/{edited['id']}/decisions", {"decision": "reject", "reason": PEOPLE["late"]}
    )
    assert PEOPLE["late"] not in late.content.decode()
    done = Command.objects.filter(status="confirmed").select_related("proposal").first()
    assert done is not None
    sample = sample_row(proposal=done.proposal, command_id=done.pk)
    sample.save()
    say(sample_id=sample.pk, verdict="wrong", words=PEOPLE["afterwards"], by=person(desk.ben), **common)
    found.proposals += [asked["id"], remembered["id"], str(new.pk)]


def _webhook(found: Planted) -> None:
    sender = Sender(found.world.desk)
    found.secrets += [sender.secret, sender.secret.removeprefix("whsec_")]
    assert sender.post({"order": PEOPLE["webhook"]}).status_code == 202
    sender.post({"order": PEOPLE["webhook"]}, identity="msg_2", secret="whsec_" + "A" * 44)
    take_in()


def _incident(found: Planted) -> None:
    """Somebody follows a trouble through several runs, and says of one what was done."""
    tenant_id = found.world.desk.tenant.pk
    opal = make_user(found.world.desk.tenant, "opal", roles=[Role.OPERATOR])
    common: dict[str, Any] = {"tenant_id": tenant_id, "by": person(opal), "clock": db_clock}
    texts = Texts(*(LED[name] for name in ("trouble", "hypothesis", "remedy", "signal")))
    led = open_incident(criteria=criteria(workflow="letters"), texts=texts, **common)
    note(incident_id=led.pk, words=LED["note"], **common)
    run = IncidentRun.objects.filter(incident=led).first()
    assert run is not None
    mark(
        incident_id=led.pk, rows=[(run.run_id, run.version)], mark=Mark.REPAIRED, words=LED["mark"], **common
    )


# -- looking ------------------------------------------------------------------------------------------------------


def forms(word: str) -> tuple[str, str]:
    """As it is, and as PostgreSQL writes bytes."""
    return word, word.encode().hex()


def hits(text: str, words: Any) -> list[str]:
    """With a little of what stands around, to find where it comes from."""
    found = []
    for word in words:
        at = max(text.find(form) for form in forms(word))
        if at >= 0:
            found.append(f"{word} in …{text[max(0, at - 60) : at + 60]}…")
    return sorted(found)


def personal(text: str) -> list[str]:
    return hits(text, PEOPLE.values())


def told(text: str) -> list[str]:
    """Everything that no place outside the pages may hold."""
    return personal(text) + hits(text, LED.values())


def crawl(client: Client, most: int = 60) -> Iterator[tuple[str, str]]:
    todo, seen = list(STARTS), set()
    while todo and len(seen) < most:
        address = todo.pop(0)
        if address in seen:
            continue
        seen.add(address)
        answer = client.get(address)
        text = b"".join(answer).decode() if answer.streaming else answer.content.decode()
        yield address, text
        if answer["Content-Type"].startswith("text/html"):
            links = {link.split("#")[0] for link in Page(text).links if link.startswith("/")}
            todo += sorted(link for link in links if not link.startswith(("/static/", "/sign-out")))


def as_role(found: Planted, *roles: Role) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(make_user(found.world.desk.tenant, f"looks-{roles[0]}", roles=list(roles)))
    return client


@pytest.mark.parametrize("role", CLOSED)
def test_no_page_shows_personal_data_to_who_may_not_see_it(planted: Planted, role: Role) -> None:
    pages = dict(crawl(as_role(planted, role)))
    assert sum(address.startswith(("/review/0", "/runs/0")) for address in pages) >= 5
    assert {address: found for address, text in pages.items() if (found := personal(text))} == {}
    assert {address: found for address, text in pages.items() if (found := hits(text, planted.secrets))} == {}


def test_who_decides_sees_the_real_values_and_still_no_secret(planted: Planted) -> None:
    ada = Client()
    ada.force_login(planted.world.desk.ada)
    shown = "".join(ada.get(f"/review/{key}/").content.decode() for key in planted.proposals)
    said = ("question", "colleague", "answer", "edit")
    for name in ("outside", "evidence", "reason", "decision", "changes", "withdrawal", "note", *said):
        assert PEOPLE[name] in shown, name
    assert hits(shown, planted.secrets) == []
    for role in SEES_PERSONAL:
        text = "".join(text for _, text in crawl(as_role(planted, role)))
        assert hits(text, planted.secrets) == []


def test_lists_carry_a_fingerprint_where_the_author_named_a_person(planted: Planted) -> None:
    row = Proposal.objects.filter(workflow="letters").first()
    assert row is not None
    name = f"Jane {PEOPLE['input']}"
    short = tenant_hmac(row.tenant_id, "personal", name.encode())[5:13]
    assert row.summary.startswith(f"A letter to (personal, fingerprint {short}), ")
    assert personal(row.summary + row.consequence) == []
    assert name in bytes(row.view).decode()


def answers(caller: Caller, found: Planted) -> Iterator[tuple[str, str]]:
    paths = ["/proposals", "/runs", "/operations", "/workflows", "/audit/events", "/openapi.json"]
    paths += [f"/proposals/{key}" for key in found.proposals]
    paths += [f"/runs/{key}" for key in Run.objects.values_list("pk", flat=True)]
    paths += [f"/receipts/{key}/send" for key in found.runs]
    paths += [f"/commands/{key}" for key in Command.objects.values_list("pk", flat=True)]
    paths += [f"/results/{key}" for key in Document.objects.values_list("pk", flat=True)]
    for path in paths:
        yield path, caller.get(path).content.decode()


@pytest.mark.parametrize("scope", list(Scope))
def test_no_answer_of_the_api_says_more_than_its_scope(planted: Planted, scope: Scope) -> None:
    caller = automation(token_for(planted.world.desk.tenant, f"reads-{scope.name.lower()}", scopes=[scope]))
    for path, text in answers(caller, planted):
        assert hits(text, planted.secrets) == [], path
        # The contract, and what became of it, are for whoever proposes; results say that they may be personal.
        is_theirs = scope is Scope.PROPOSALS_READ and path.startswith("/proposals/")
        asks = scope is Scope.RUNS_READ and path.startswith("/runs/")  # the question that it must answer
        if scope is not Scope.RESULTS_READ and not is_theirs and not asks:
            assert personal(text) == [], path
    if scope is Scope.PROPOSALS_READ:
        whole = caller.get(f"/proposals/{planted.proposals[0]}").json()
        assert hits(b64decode(whole["contract"]).decode(), planted.secrets) == []


def test_errors_mails_metrics_and_logs_have_neither(planted: Planted, log: io.StringIO) -> None:
    world, word = planted.world, PEOPLE["query"]
    outsider = Client(raise_request_exception=False)
    answered = [
        outsider.get(f"/review/{planted.proposals[0]}/").content, outsider.get("/metrics").content,
        signed_in(world.desk.ben).get("/proposals/1").content, world.agent.get("/runs", cursor=word).content,
        world.agent.post("/runs", b'{"workflow": "' + word.encode()).content,
        world.agent.post("/runs", {"workflow": "letters", "source": {"system": "s", "event_id": "e"}, "input": {
            "case": [word], "to": word}}).content,
    ]  # fmt: skip
    for text in answered:
        assert personal(text.decode()) == []
        assert hits(text.decode(), planted.secrets) == []
    letters_sent = "".join(
        f"{message.subject}{message.body}{message.alternatives}" for message in mail.outbox
    )
    assert told(letters_sent) == []
    assert hits(letters_sent, planted.secrets) == []
    lines = log.getvalue()
    assert "command_left_to_recovery" in lines or "RuntimeError" in lines or "call_broke" in lines
    assert told(lines) == []
    assert hits(lines, planted.secrets) == []


def test_redis_holds_hints_and_nothing_else(planted: Planted) -> None:
    for _ in range(3):
        planted.world.desk.start()
    client = redis.Redis(unix_socket_path=urlsplit(settings.CELERY_BROKER_URL).path)
    dumped = "".join(repr((key, client.dump(key), _value(client, key))) for key in client.scan_iter())
    assert told(dumped) == []
    assert hits(dumped, planted.secrets) == []


def _value(client: Any, key: bytes) -> Any:
    readers = {b"list": lambda: client.lrange(key, 0, -1), b"set": lambda: client.smembers(key)}
    readers |= {b"hash": lambda: client.hgetall(key), b"string": lambda: client.get(key)}
    return readers.get(client.type(key), lambda: None)()


def test_no_table_holds_personal_data_or_a_secret_in_clear(planted: Planted) -> None:
    """Every row of every table as text, with nothing but the owner's rights: what a copy of the disk would show."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(table_name) FROM information_schema.tables"
            " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        tables = [name for (name,) in cursor.fetchall()]
        found: dict[str, list[str]] = {}
        for table in tables:
            cursor.execute(f"SELECT t::text FROM {table} t")
            text = "\n".join(row for (row,) in cursor.fetchall())
            if words := [*told(text), *hits(text, planted.secrets)]:
                found[table] = words
    assert found == {}


def test_every_sealed_column_was_filled_by_this_test(planted: Planted) -> None:
    """Otherwise the look into the tables proves little."""
    empty = {
        f"{model.__name__}.{name}"
        for model in sealed_models()
        for name in sealed_names(model)
        if not any(
            getattr(row, name) not in (None, "", [], b"", b"{}") for row in model._default_manager.all()
        )
    }
    assert empty <= {
        "Attestation.reason",  # a person's word on an unknown
        "Step.asks",  # a question while it stands
        "RepairMove.words",  # who repairs: tests/repair
        "Replay.reason",  # who replays: tests/repair
    }  # fmt: skip
