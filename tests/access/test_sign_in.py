"""Signing in and out, the pages behind it, and the ids of requests."""

from uuid import UUID

import pytest
import structlog
from django.contrib.sessions.models import Session
from django.test import Client
from structlog.testing import capture_logs

from access import actions
from access.enums import Role
from access.models import User
from access.throttle import TRIES, subject_of
from audit.actors import INSTALLATION
from audit.models import Event
from common.clock import db_clock
from common.web import WriteInRead
from tests.access import people
from tests.access.people import INSTALLER, PASSWORD
from tests.audit.events import tamper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.access.site")]


def sign_in(client: Client, username: str = "ada", password: str = PASSWORD, **more: str) -> object:
    return client.post("/sign-in/", {"username": username, "password": password, **more})


def signed_in(client: Client) -> bool:
    return client.get("/anybody/").status_code == 200


@pytest.fixture
def ada() -> User:
    return people.person(people.tenant(), "ada", Role.REVIEWER)


def test_signing_in_and_out_are_events(client: Client, ada: User) -> None:
    answer = sign_in(client)
    assert (answer.status_code, answer["Location"]) == (302, "/review/")
    assert signed_in(client)
    opened = Event.objects.get(kind="user.signed_in")
    assert (opened.performed_by, opened.subject_id, opened.via) == (f"user:{ada.id}", ada.id, "session")
    assert opened.request_id == answer["X-Request-ID"]
    assert client.get("/sign-out/").status_code == 405
    assert signed_in(client)
    assert client.post("/sign-out/")["Location"] == "/sign-in/"
    assert not signed_in(client)
    assert Event.objects.get(kind="user.signed_out").subject_id == ada.id


def test_the_way_back_stays_on_our_site(client: Client, ada: User) -> None:
    assert sign_in(client, next="/review/7/")["Location"] == "/review/7/"
    client.post("/sign-out/")
    assert sign_in(client, next="https://evil.example/")["Location"] == "/review/"


def test_a_new_session_key_for_a_new_person(client: Client, ada: User) -> None:
    client.get("/sign-in/")
    session = client.session
    session["x"] = 1
    session.save()
    before = session.session_key
    sign_in(client)
    assert client.session.session_key != before


def test_a_failed_try_is_an_event_without_the_name(client: Client, ada: User) -> None:
    page = sign_in(client, password="wrong")
    assert page.status_code == 200
    assert "correct" in page.content.decode()
    sign_in(client, username="nobody-of-that-name", password="wrong")
    known, unknown = subject_of("ada", "127.0.0.1"), subject_of("nobody-of-that-name", "127.0.0.1")
    failed = Event.objects.filter(kind="user.sign_in_failed").order_by("at", "id")
    paired = failed.filter(subject_type__in=("sign_in", "user"))
    assert [(event.tenant_id, event.subject_id) for event in paired] == [
        (INSTALLATION, known), (ada.memberships.get().tenant_id, ada.id), (INSTALLATION, unknown),
    ]  # fmt: skip
    told = str(list(failed.values()))
    assert "nobody-of-that-name" not in told
    assert "wrong" not in told
    assert "127.0.0.1" not in told


def test_an_empty_field_is_no_try(client: Client, ada: User) -> None:
    page = sign_in(client, password="")
    assert page.status_code == 200
    assert not Event.objects.filter(kind="user.sign_in_failed").exists()


def test_after_ten_failures_even_the_right_password_waits(client: Client, ada: User) -> None:
    for _ in range(TRIES):
        assert sign_in(client, password="wrong").status_code == 200
    page = sign_in(client)
    assert (page.status_code, page["Retry-After"]) == (429, "900")
    assert not signed_in(client)
    assert Event.objects.filter(kind="user.sign_in_failed", subject_type="sign_in").count() == TRIES
    assert sign_in(client, username="other", password="wrong").status_code == 200
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    sign_in(elsewhere)
    assert signed_in(elsewhere)


def test_the_brake_is_off_again_after_a_quarter_of_an_hour(client: Client, ada: User) -> None:
    for _ in range(TRIES):
        sign_in(client, password="wrong")
    assert sign_in(client, username="ADA").status_code == 429
    tamper("UPDATE audit_event SET at = at - interval '16 minutes'")
    sign_in(client)
    assert signed_in(client)


def test_without_a_membership_nobody_signs_in(client: Client, ada: User) -> None:
    actions.deactivate_membership(tenant=ada.memberships.get().tenant, user=ada, by=INSTALLER, clock=db_clock)
    page = sign_in(client)
    wrong = sign_in(client, password="wrong")
    assert (
        page.content.decode().count("not correct together")
        == wrong.content.decode().count("not correct together")
        == 1
    )
    assert not Event.objects.filter(kind="user.signed_in").exists()


def test_an_account_without_a_password_cannot_sign_in(client: Client) -> None:
    actions.create_user(tenant=people.tenant(), username="ada", password=None, by=INSTALLER, clock=db_clock)
    for password in ("", "None", "!"):
        sign_in(client, password=password)
    assert not signed_in(client)


def test_whoever_is_deactivated_is_signed_out_at_the_next_request(client: Client, ada: User) -> None:
    sign_in(client)
    assert client.get("/review/").status_code == 200
    actions.deactivate_user(user=ada, by=INSTALLER, clock=db_clock)
    assert client.get("/review/")["Location"] == "/sign-in/?next=/review/"


def test_a_lost_role_closes_its_pages(client: Client, ada: User) -> None:
    sign_in(client)
    assert client.get("/review/").content == b"for north"
    tenant = ada.memberships.get().tenant
    actions.set_roles(tenant=tenant, user=ada, roles=[Role.AUDITOR], by=INSTALLER, clock=db_clock)
    assert client.get("/review/").status_code == 403
    assert client.get("/anybody/").status_code == 200


def test_pages_lead_strangers_to_the_sign_in(client: Client) -> None:
    assert client.get("/review/?page=2")["Location"] == "/sign-in/?next=/review/%3Fpage%3D2"
    assert client.post("/review/")["Location"] == "/sign-in/"


def test_htmx_leaves_the_page_for_the_sign_in(client: Client) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/review/7/?part=2"}
    answer = client.post("/review/", headers=headers)
    assert (answer.status_code, answer["HX-Redirect"]) == (200, "/sign-in/?next=/review/7/%3Fpart%3D2")
    for elsewhere in ("https://evil.example/x", "http://[::1", "http://testserver]/", "//[x]/"):
        answer = client.get("/review/", headers=headers | {"HX-Current-URL": elsewhere})
        assert answer["HX-Redirect"] == "/sign-in/"


def test_reading_pages_write_nothing(client: Client, ada: User) -> None:
    """Not even the session, and not for somebody who was signed out by a deactivation."""
    sign_in(client)
    people_and_events = User.objects.values().get(), Event.objects.count(), Session.objects.values().get()
    for path in ("/review/", "/anybody/", "/sign-in/", "/api/routes/sessions/view"):
        client.get(path)
    assert people_and_events == (
        User.objects.values().get(),
        Event.objects.count(),
        Session.objects.values().get(),
    )
    actions.deactivate_user(user=ada, by=INSTALLER, clock=db_clock)
    assert not Session.objects.exists()  # the action has ended it
    client.get("/review/")
    assert not Session.objects.exists()


def test_a_read_that_writes_is_stopped(client: Client) -> None:
    with pytest.raises(WriteInRead, match="INSERT INTO"):
        client.get("/writes/")


# --- request ids -------------------------------------------------------------------------------
def test_every_answer_has_an_id_of_ours(client: Client) -> None:
    ids = {client.get("/sign-in/", headers={"X-Request-ID": "theirs"})["X-Request-ID"] for _ in range(3)}
    assert len(ids) == 3
    assert all(UUID(hex=request_id).version == 7 for request_id in ids)


def test_the_id_is_in_the_logs_of_the_request_and_of_no_other(client: Client) -> None:
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logs:
        request_id = client.get("/sign-in/")["X-Request-ID"]
    assert {line["request_id"] for line in logs} == {request_id}
    assert structlog.contextvars.get_contextvars() == {}
