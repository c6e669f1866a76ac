"""Callbacks for admins, at the command line, in requests, and on a run's page."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from access.enums import Role
from access.models import User
from common.signed_webhooks import key_of
from tests.api.callers import Caller, as_json, automation, refused, run_body, token_for
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import Desk
from tests.workflows.receiver import receiving
from tests.workflows.test_callbacks import ended, register, send
from workflows.models import CallbackCall, CallbackEndpoint, CallbackSecret, Run

pytestmark = pytest.mark.django_db
HERE = "/people/endpoints/callbacks/"
WORDS = {"name": "crm", "url": "https://crm.example/placet"}


def at(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def admin(desk: Desk) -> User:
    return make_user(desk.tenant, "adam", roles=[Role.ADMIN])


@pytest.fixture
def agent(desk: Desk) -> Caller:
    return automation(token_for(desk.tenant))


def secret_in(answer: Any) -> str:
    found = re.search(r'id="once"[^>]*value="([^"]+)"', answer.content.decode())
    assert found is not None, answer.content.decode()
    return found[1]


# -- pages -------------------------------------------------------------------------------------------------------


def test_one_is_registered_rotated_and_ended(admin: User) -> None:
    client = at(admin)
    first = secret_in(client.post(f"{HERE}new/", WORDS))
    made = CallbackEndpoint.objects.get()
    page = client.get(f"{HERE}{made.pk}/").content.decode()
    assert "https://crm.example/placet" in page
    assert first not in page
    assert "crm" in client.get(HERE).content.decode()
    assert HERE in client.get("/people/endpoints/").content.decode()
    second = secret_in(client.post(f"{HERE}{made.pk}/rotate/", {"sure": "yes", "hours": "24"}))
    assert {row.key() for row in made.secrets.all()} == {key_of(first), key_of(second)}
    assert "with 2 secrets" in client.get(f"{HERE}{made.pk}/").content.decode()
    assert client.post(f"{HERE}{made.pk}/deactivate/", {"sure": "yes", "why": ""}).status_code == 422
    client.post(f"{HERE}{made.pk}/deactivate/", {"sure": "yes", "why": "moved"})
    made.refresh_from_db()
    assert made.deactivated_at is not None
    again = client.post(f"{HERE}{made.pk}/rotate/", {"sure": "yes", "hours": "24"})
    assert (again.status_code, "nothing is sent there any more" in again.content.decode()) == (409, True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "No Slug"}, "letters, numbers"), ({"url": ""}, "Say where to call"),
        ({"url": "http://crm.example/"}, "Only https"), ({"url": "https://10.0.0.1/"}, "may not be called"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_words(admin: User, changes: dict[str, str], said: str) -> None:
    answer = at(admin).post(f"{HERE}new/", WORDS | changes)
    assert (answer.status_code, said in answer.content.decode()) == (422, True)
    assert not CallbackEndpoint.objects.exists()


def test_auditors_read_and_strangers_find_nothing(desk: Desk, admin: User) -> None:
    at(admin).post(f"{HERE}new/", WORDS)
    made = CallbackEndpoint.objects.get()
    auditor = make_user(desk.tenant, "anna", roles=[Role.AUDITOR])
    stranger = make_user(make_tenant("reef"), "sue", roles=[Role.ADMIN])
    page = at(auditor).get(f"{HERE}{made.pk}/").content.decode().partition("<main")[2]
    assert "Admins change callbacks." in page
    assert 'method="post"' not in page
    assert at(auditor).post(f"{HERE}{made.pk}/rotate/", {"sure": "yes"}).status_code == 403
    for way in ("", "rotate/", "deactivate/"):
        assert at(stranger).get(f"{HERE}{made.pk}/{way}").status_code == 404
    assert "crm.example" not in at(stranger).get(HERE).content.decode()


def test_what_fails_is_seen_on_the_runs_page_and_by_admins(desk: Desk, admin: User, settings: Any) -> None:
    operator = make_user(desk.tenant, "omar", roles=[Role.OPERATOR])
    with receiving() as receiver:
        settings.OUTGOING_TOLD_HOSTS = [receiver.authority]
        _, endpoint = register(desk, receiver.url)
        receiver.answers = [503, 410]
        run = ended(desk)
        assert "crm: waiting" in at(operator).get(f"/runs/{run.pk}/").content.decode()
        send()
        assert (
            "waiting, 1 try so far, last answer 503" in at(operator).get(f"/runs/{run.pk}/").content.decode()
        )
        page = at(admin).get(f"{HERE}{endpoint.pk}/").content.decode()
        assert "Failing" in page
        assert "http_503" in page
        assert f"/runs/{run.pk}/" in page
        CallbackEndpoint.objects.update(paused_until=None)
        CallbackCall.objects.update(due_at=run.created_at)
        send()
    assert "given up after 2 tries, last answer 410" in at(operator).get(f"/runs/{run.pk}/").content.decode()
    assert "answered 410: gone" in at(admin).get(f"{HERE}{endpoint.pk}/").content.decode()
    assert "Gone (410)" in at(admin).get(HERE).content.decode()


# -- requests ----------------------------------------------------------------------------------------------------


def test_a_request_names_a_callback_and_no_other_address(desk: Desk, agent: Caller) -> None:
    register(desk, WORDS["url"])
    as_json(agent.post("/runs", run_body("by-name", callback="crm")), 201)
    as_json(agent.post("/runs", run_body("by-address", callback=WORDS["url"])), 201)
    assert {run.callback for run in Run.objects.all()} == {"crm"}
    near = (
        f"{WORDS['url']}/",
        f"{WORDS['url']}?x=1",
        "https://CRM.example/placet",
        "http://169.254.169.254/",
        "crm2",
    )
    for given in near:
        answer = agent.post("/runs", run_body("other", callback=given))
        refused(answer, 422, "callback_not_registered")
        assert given not in answer.content.decode()
    assert Run.objects.count() == 2
    again = as_json(agent.post("/runs", run_body("by-name", callback="crm2")))  # the first one's counts
    assert Run.objects.get(pk=again["run_id"]).callback == "crm"
    bulk = as_json(agent.post("/runs", [run_body("a", callback="crm"), run_body("b", callback="crm2")]))
    assert [row["status"] for row in bulk["results"]] == [201, 422]


# -- the command line --------------------------------------------------------------------------------------------


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("callback", *arguments, stdout=out)
    return out.getvalue()


def test_a_callback_from_the_command_line(desk: Desk, tmp_path: Path) -> None:
    said = command("add", "harbour", "crm", WORDS["url"])
    secret = said.split("Secret: ")[1].split(" ")[0]
    assert CallbackSecret.objects.get().key() == key_of(secret)
    given = tmp_path / "secret"
    given.write_text("a-secret-that-the-receiver-has-chosen\n")
    assert "a-secret" not in command("rotate", "harbour", "crm", "--secret-file", str(given))
    assert {row.key() for row in CallbackSecret.objects.all()} == {
        key_of(secret), b"a-secret-that-the-receiver-has-chosen",
    }  # fmt: skip
    assert f"crm  active  {WORDS['url']}" in command("list", "harbour")
    command("deactivate", "harbour", "crm", "--why", "moved")
    assert "crm  ended" in command("list", "harbour")
    with pytest.raises(CommandError):
        command("rotate", "harbour", "nobody")
    with pytest.raises(CommandError, match="Only https"):
        command("add", "harbour", "other", "http://crm.example/")
