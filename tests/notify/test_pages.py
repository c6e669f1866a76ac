"""The list, the links in mails, wishes, and the pages of admins."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from access.models import User
from approvals.actions_questions import answer, ask
from approvals.models import Proposal
from audit.models import Event
from common.clock import db_clock
from notify.models import Destination, Dispatch, Notice, Preference
from notify.screens.notices import rows_of
from tests.database import captured_queries, statements
from tests.factories import make_user
from tests.notify.conftest import told
from tests.notify.letterbox import Letterbox
from tests.notify.test_asked import people_told
from tests.workflows.conftest import Desk, person
from tests.workflows.receiver import Receiver

pytestmark = pytest.mark.django_db


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def link_in(box: Letterbox, address: str) -> str:
    text = box.plain(box.recipients.index(address))
    found = re.search(r"(/notices/\S+)", text)
    assert found is not None
    return found[1]


def test_a_link_is_bound_to_its_person_decides_nothing_and_is_dead_after_the_decision(
    desk: Desk, box: Letterbox
) -> None:  # field reports F2, F3, F9
    proposal = desk.proposed()
    told()
    path = link_in(box, "ada@post.example")
    before = Event.objects.count()
    ada, ben, nobody = client_of(desk.ada), client_of(desk.ben), Client()
    for _ in range(3):  # a scanner of mails
        assert nobody.get(path)["Location"].startswith("/sign-in/")
        assert nobody.head(path)["Location"].startswith("/sign-in/")
        assert nobody.options(path).status_code in (302, 405)
        assert nobody.post(path).status_code in (302, 403, 405)
        answer_ = ada.get(path)
        assert (answer_.status_code, answer_["Location"]) == (302, f"/review/{proposal.pk}/")
        assert answer_["Referrer-Policy"] == "no-referrer"
    assert Event.objects.count() == before
    assert Notice.objects.filter(user=desk.ada, read_at=None).count() == 1, (
        "a link that was followed reads nothing"
    )
    assert Proposal.objects.get(pk=proposal.pk).status == "pending"

    assert [ben.get(path).status_code for _ in range(5)] == [403] * 5  # written down once, not at each look
    [event] = Event.objects.filter(kind="notice.link_refused")
    assert event.performed_by == f"user:{desk.ben.pk}"
    assert ben.post(path).status_code == 405
    assert ada.get(path[:-6] + "xxxxx/").status_code == 404
    assert client_of(make_user(desk.tenant, "eve", roles=[Role.ADMIN])).get(path).status_code == 403
    assert Event.objects.filter(kind="notice.link_refused").count() == 2

    desk.decide(proposal, "reject")
    over = ada.get(path)
    assert over.status_code == 410
    assert "Rejected by ada" in over.content.decode()
    assert ada.post(f"/review/{proposal.pk}/decide/", {}).status_code in (409, 422)


def test_links_have_the_configured_host_whatever_a_request_says(  # field report F8
    desk: Desk, box: Letterbox, settings: Any
) -> None:
    settings.PLACET_BASE_URL = "https://placet.example"
    desk.proposed()
    told()
    links = re.findall(r"https?://\S+", box.plain())
    assert links and all(link.startswith("https://placet.example/") for link in links)
    assert box.ids[0].endswith("@placet.example>")


def test_the_list_and_its_number(desk: Desk, box: Letterbox) -> None:
    first, second = desk.proposed(order="1"), desk.proposed(order="2")
    told()
    ada = client_of(desk.ada)
    page = ada.get("/notices/")
    text = page.content.decode()
    assert text.count("You are asked to decide") == 2
    assert '<span class="n">2</span>' in text
    [one, other] = Notice.objects.filter(user=desk.ada).order_by("message__lead")
    assert client_of(desk.ben).post(f"/notices/{one.pk}/read/").status_code == 404
    ada.post(f"/notices/{one.pk}/read/")
    assert ada.get("/notices/").content.decode().count("You are asked to decide") == 1
    assert ada.post(f"/notices/{other.pk}/open/")["Location"] == other.message.href
    assert "Nothing is unread" in ada.get("/notices/").content.decode()
    assert ada.get("/notices/?all=yes").content.decode().count("You are asked to decide") == 2
    desk.decide(first)
    desk.decide(second, "reject")
    told()
    over = client_of(desk.ben).get("/notices/?all=yes").content.decode()
    assert "Approved by ada" in over and "Rejected by ada" in over
    assert "Nothing is unread" in client_of(desk.ben).get("/notices/").content.decode()


def test_a_page_of_the_list_costs_the_same_for_one_and_for_many(desk: Desk, box: Letterbox) -> None:
    costs = []
    for number in (1, 6):
        for order in range(number):
            desk.proposed(order=f"{number}{order}")
        told()
        found = Notice.objects.filter(user=desk.ada).select_related("message")
        with captured_queries() as seen:
            rows_of(list(found), db_clock())
        costs.append(len(statements(seen)))
    assert costs[0] == costs[1]


def test_many_at_once_and_collected_ones_leave_as_one_list(desk: Desk, box: Letterbox) -> None:
    Preference.objects.create(tenant=desk.tenant, user=desk.ben, rhythm="hourly")
    for order in range(7):
        desk.proposed(order=str(order))
    told()
    assert box.recipients == ["ada@post.example"], "a flood is one mail"
    assert str(box.taken[0]["Subject"]).startswith("7 notices: ")
    assert Dispatch.objects.filter(status="delivered").values("batch").distinct().count() == 1
    told(lambda: db_clock() + timedelta(hours=1))
    assert box.recipients == ["ada@post.example", "ben@post.example"]
    assert box.plain(1).count("Digest") == 7


def test_wishes_are_kept_and_refused_with_what_was_typed(desk: Desk, box: Letterbox) -> None:
    ada = client_of(desk.ada)
    said = {
        "mail": ["decided"], "rhythm": "daily", "daily_at": "07:30", "quiet_from": "22:00", "quiet_to": "",
        "zone": "Europe/Berlin",
    }  # fmt: skip
    refused = ada.post("/account/notices/", said)
    assert refused.status_code == 422
    assert "Quiet hours have a beginning and an end" in refused.content.decode()
    assert 'value="22:00"' in refused.content.decode()
    assert ada.post("/account/notices/", said | {"quiet_to": "06:00"}).status_code == 302
    [row] = Preference.objects.all()
    assert (row.zone, row.rhythm, str(row.quiet_to), row.mail["asked"]) == (
        "Europe/Berlin",
        "daily",
        "06:00:00",
        False,
    )
    assert row.mail["decided"] is True
    desk.proposed()
    told()
    assert box.recipients == ["ben@post.example"]
    assert "Europe/Berlin" in ada.get("/notices/").content.decode()
    assert Event.objects.filter(kind="preference.changed").count() == 1


def test_a_question_is_told_to_the_colleague_and_its_answer_to_who_asked(desk: Desk, box: Letterbox) -> None:
    proposal = desk.proposed()
    told()
    box.taken.clear()
    box.recipients.clear()
    made = ask(
        tenant_id=desk.tenant.pk, proposal_id=proposal.pk, text="Is Frau Kanarienvogel real?", colleague=desk.ben.pk,
        by=person(desk.ada), clock=db_clock,
    )  # fmt: skip
    told()
    assert people_told("question") == ["ben"]
    assert box.recipients == ["ben@post.example"]
    assert "Kanarienvogel" not in box.raw[-1].decode(), "the words are personal"
    answer(
        tenant_id=desk.tenant.pk, proposal_id=proposal.pk, question_id=made.question.pk, text="Yes.",
        by=person(desk.ben), clock=db_clock,
    )  # fmt: skip
    told()
    assert people_told("answered") == ["ada"]
    assert Notice.objects.get(message__kind="question").over_at is not None


def test_each_decision_is_told_as_what_it_is(desk: Desk, box: Letterbox) -> None:  # field report F11
    from tests.notify.test_asked import unbound

    owner = make_user(desk.tenant, "olga", roles=[Role.OWNER], email="olga@post.example")
    Preference.objects.create(tenant=desk.tenant, user=owner, mail={"decided": True})
    for kind, word in (
        ("approve", "Approved"),
        ("reject", "Rejected"),
        ("request_changes", "Changes requested"),
    ):
        proposal = desk.proposed(order=kind)
        unbound(proposal, excluded_users=[owner.pk])
        desk.decide(proposal, kind)
        told()
        mine = [number for number, to in enumerate(box.recipients) if to == "olga@post.example"]
        assert f"Decision: {word}" in box.plain(mine[-1])
        assert "ada" not in box.plain(mine[-1]), "nobody's name leaves"


def test_admins_register_a_room_try_it_and_send_again(
    desk: Desk, box: Letterbox, room: Receiver, admin: User
) -> None:
    adam = client_of(admin)
    said = {
        "name": "desk",
        "url": f"{room.url}?key=s3cret",
        "kinds": ["asked"],
        "style": "text",
        "signed": "on",
    }
    shown = adam.post("/people/notices/new/", said)
    assert "whsec_" in shown.content.decode()
    [made] = Destination.objects.all()
    page = f"/people/notices/{made.pk}/"
    assert "s3cret" not in adam.get(page).content.decode() + adam.get("/people/notices/").content.decode()
    room.answers = [404, 200]
    adam.post(f"{page}test/")
    told()
    assert (
        "refused" in adam.get(page).content.decode() or "does not take it" in adam.get(page).content.decode()
    )
    failures = adam.get("/people/notices/failures/").content.decode()
    assert "The receiver answered that it does not take it." in failures
    [dead] = Dispatch.objects.filter(status="dead")
    again = f"/people/notices/failures/{dead.pk}/again/"
    assert "Send this again" in adam.get(again).content.decode()
    adam.post(again, {"sure": "yes"})
    Destination.objects.update(paused_until=None)
    told()
    dead.refresh_from_db()
    assert dead.status == "delivered"
    adam.post("/people/notices/test-mail/")
    told()
    assert box.recipients == ["adam@post.example"]
    assert client_of(desk.ada).get("/people/notices/").status_code == 403


def test_without_a_mail_server_mails_become_files_and_pages_say_so(
    desk: Desk, settings: Any, tmp_path: Any, admin: User
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path / "mail")
    desk.proposed()
    told()
    assert len(list((tmp_path / "mail").iterdir())) >= 1
    assert "mails become files" in client_of(admin).get("/people/notices/").content.decode()
    assert "mails become files" in client_of(desk.ada).get("/account/notices/").content.decode()
