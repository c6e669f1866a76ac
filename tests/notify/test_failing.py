"""What happens when mail servers and chat systems do not take it: tried again, given up, and told by another way."""

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from access.models import User
from audit.sealer import seal
from common.clock import db_clock
from common.delivering import Seen
from notify.actions import ending
from notify.actions.destinations import (
    BadDestination,
    Room,
    deactivate_destination,
    register_destination,
    send_again,
)
from notify.actions.following import follow
from notify.actions.mailing import claim_mails, prepare, store
from notify.actions.spreading import spread_due
from notify.models import Destination, Dispatch, Message, Notice, Preference
from notify.post import Post
from notify.running import BY
from tests.access.people import INSTALLER
from tests.notify.conftest import told
from tests.notify.letterbox import Letterbox
from tests.notify.test_asked import outcomes, people_told
from tests.workflows.conftest import Desk
from tests.workflows.receiver import Receiver

pytestmark = pytest.mark.django_db


def at(**delta: float) -> Any:
    return lambda: db_clock() + timedelta(**delta)


def make_room(desk: Desk, receiver: Receiver, **said: Any) -> tuple[str, Destination]:
    values: dict[str, Any] = {
        "name": "desk",
        "url": f"{receiver.url}?key=s3cret",
        "group": None,
        "kinds": ["asked"],
    }
    room = Room(**(values | said))
    return register_destination(tenant_id=desk.tenant.pk, room=room, by=INSTALLER, clock=db_clock)


# -- mail ---------------------------------------------------------------------------------------------------------


def test_a_mailbox_that_is_none_is_given_up_at_once_and_admins_are_told(  # field report F5
    desk: Desk, box: Letterbox, admin: User
) -> None:
    box.refuses["ben@post.example"] = "550 no such mailbox: ben@post.example"
    desk.proposed()
    told()
    assert outcomes() == [("dead", "smtp_550"), ("delivered", "")]
    assert box.recipients == ["ada@post.example"]
    assert "ben" in people_told("asked"), "it stands in the app all the same"
    told()
    assert people_told("undelivered") == ["adam"]
    [row] = Message.objects.filter(kind="undelivered")
    assert "ben@" not in row.lead + json.dumps(row.facts), "who it was is on the page, not in the message"
    told()
    assert Message.objects.filter(kind="undelivered").count() == 1, "once a day"


def test_a_server_that_is_away_is_tried_again_and_then_given_up(
    desk: Desk, box: Letterbox, settings: Any
) -> None:
    settings.EMAIL_PORT = 1  # nobody listens there
    desk.proposed()
    told()
    [first, _] = outcomes()
    assert first == ("pending", "no_server_connectionrefusederror")
    row = Dispatch.objects.filter(status="pending").first()
    assert row is not None and row.due_at is not None
    assert timedelta(seconds=10) < row.due_at - db_clock() < timedelta(seconds=31)
    settings.EMAIL_PORT = box.port
    told(at(minutes=1))
    assert outcomes() == [("delivered", ""), ("delivered", "")]
    assert {one.tries for one in Dispatch.objects.all()} == {2}


def test_it_is_not_tried_for_ever(desk: Desk, box: Letterbox) -> None:
    desk.proposed()
    box.answers = ["451 later"] * 100
    told()
    for number in range(1, ending.MOST_TRIES + 2):
        Dispatch.objects.filter(status="pending").update(due_at=db_clock())
        told()
        if number == 3:
            assert outcomes() == [("pending", "smtp_451"), ("pending", "smtp_451")]
    assert outcomes() == [("dead", "smtp_451"), ("dead", "smtp_451")]
    assert {one.tries for one in Dispatch.objects.all()} == {ending.MOST_TRIES}


def test_a_connection_that_ends_in_the_middle_stops_no_other_mail(desk: Desk, box: Letterbox) -> None:
    desk.proposed()
    box.answers = ["cut"]
    told()
    assert sorted(status for status, _ in outcomes()) == ["delivered", "pending"]


def test_a_kill_between_sending_and_storing_sends_the_same_message_again(desk: Desk, box: Letterbox) -> None:
    """At least once: the second mail has the Message-ID of the first, by which programs know it."""
    desk.proposed()
    told_until_spread()
    claimed = claim_mails(by=BY, clock=db_clock)
    with Post() as post:
        for one in claimed:
            mail = prepare(one, db_clock()).mail
            assert mail is not None
            assert post.hand_over(mail).problem == ""
    # Here the process is gone: nothing was stored.
    assert [len(box.taken), outcomes()[0][0]] == [2, "pending"]
    told()
    assert len(box.taken) == 2, "the lease is not over"
    told(at(minutes=6))
    assert len(box.taken) == 4
    assert sorted(box.ids[:2]) == sorted(box.ids[2:])
    assert outcomes() == [("delivered", ""), ("delivered", "")]


def told_until_spread() -> None:
    seal(db_clock)
    follow(clock=db_clock)
    spread_due(clock=db_clock)


def test_decided_while_the_mail_is_on_its_way(desk: Desk, box: Letterbox) -> None:
    """The mail that is out cannot be called back; its link is dead. What was not out yet does not leave."""
    proposal = desk.proposed()
    decided: list[bool] = []

    def decide() -> None:
        if not decided:
            decided.append(True)
            thread = threading.Thread(target=_decide, args=(desk, proposal))
            thread.start()
            thread.join(20)

    box.before_answer = decide
    told()
    assert len(box.taken) == 1
    assert sorted(outcomes()) == [("delivered", ""), ("moot", "over")]


def _decide(desk: Desk, proposal: Any) -> None:
    desk.decide(proposal)
    connections.close_all()


def test_two_workers_send_each_mail_once(desk: Desk, box: Letterbox) -> None:
    desk.proposed()
    told_until_spread()
    first, second = claim_mails(by=BY, clock=db_clock), claim_mails(by=BY, clock=db_clock)
    assert (len(first), second) == (2, [])


def test_an_overtaken_try_changes_nothing_but_that_it_was_delivered(desk: Desk, box: Letterbox) -> None:
    desk.proposed()
    told_until_spread()
    late = [prepare(one, db_clock()) for one in claim_mails(by=BY, clock=db_clock)]
    again = claim_mails(by=BY, clock=at(minutes=6))
    assert len(again) == 2
    store(late[0], Seen("smtp_451"), by=BY, clock=db_clock)
    assert outcomes() == [("pending", ""), ("pending", "")]
    store(late[1], Seen(""), by=BY, clock=db_clock)
    assert sorted(outcomes()) == [("delivered", ""), ("pending", "")]


def test_what_was_given_up_is_sent_again_by_an_admin(desk: Desk, box: Letterbox, admin: User) -> None:
    box.refuses["ben@post.example"] = "550 no"
    desk.proposed()
    told()
    box.refuses.clear()
    [dead] = Dispatch.objects.filter(status="dead", message__kind="asked")
    send_again(tenant_id=desk.tenant.pk, dispatch_id=dead.pk, by=INSTALLER, clock=db_clock)
    told()
    assert outcomes() == [("delivered", ""), ("delivered", "")]
    assert box.recipients.count("ben@post.example") == 1


# -- chat ---------------------------------------------------------------------------------------------------------


def test_a_room_gets_a_text_that_leads_with_the_effect_signed_and_with_one_id(
    desk: Desk, room: Receiver
) -> None:
    secret, made = make_room(desk, room, signed=True, style="blocks")
    proposal = desk.proposed()
    told()
    [heard] = room.heard
    assert heard.signed_with(secret)
    lines = heard.body["text"].splitlines()
    assert lines[0] == proposal.summary
    assert proposal.digest[:4] in lines[2]
    assert lines[-1].endswith(f"/review/{proposal.pk}/")
    assert {block["type"] for block in heard.body["blocks"]} == {"section"}
    assert made.host == room.authority
    assert b"s3cret" not in bytes(made.sealed_url or b"")
    told()
    assert len(room.heard) == 1


def test_a_room_that_fails_is_tried_again_and_one_that_refuses_has_its_people_told_by_mail(
    desk: Desk, box: Letterbox, room: Receiver, admin: User
) -> None:
    for user in (desk.ada, desk.ben):  # they rely on the room
        Preference.objects.create(tenant=desk.tenant, user=user, mail={"asked": False})
    make_room(desk, room)
    room.answers = [503, 404]
    desk.proposed()
    told()
    assert outcomes() == [("pending", "refused")]
    assert box.taken == []
    told(at(minutes=2))
    assert room.heard[0].id == room.heard[1].id
    told(at(minutes=2))
    assert sorted(box.recipients)[-2:] == ["ada@post.example", "ben@post.example"]
    assert people_told("undelivered") == ["adam"]
    assert outcomes() == [("dead", "refused"), ("delivered", ""), ("delivered", "")]


def test_a_room_that_is_gone_is_ended(desk: Desk, room: Receiver) -> None:
    _, made = make_room(desk, room)
    room.answers = [410]
    desk.proposed()
    told()
    made.refresh_from_db()
    assert made.deactivated_at is not None
    assert (made.sealed_url, made.sealed_secret) == (None, None)


def test_an_address_inside_is_never_called(desk: Desk, settings: Any) -> None:
    settings.OUTGOING_TOLD_HOSTS = []
    for url in (
        "http://chat.example/x",
        "https://127.0.0.1/x",
        "https://169.254.169.254/latest",
        "https://[::1]/",
    ):
        room = Room(name="inside", url=url, group=None, kinds=["asked"])
        with pytest.raises(BadDestination):
            register_destination(tenant_id=desk.tenant.pk, room=room, by=INSTALLER, clock=db_clock)


def test_a_name_that_leads_inside_is_refused_when_it_is_called(desk: Desk, settings: Any) -> None:
    settings.OUTGOING_TOLD_HOSTS = []
    room = Room(name="inside", url="https://localhost/x", group=None, kinds=["asked"])
    register_destination(tenant_id=desk.tenant.pk, room=room, by=INSTALLER, clock=db_clock)
    desk.proposed()
    told()
    [row] = Dispatch.objects.filter(channel="chat")
    assert (row.status, row.problem) == ("pending", "not_sent_address")


def test_what_waits_for_a_room_that_is_ended_goes_to_its_people(
    desk: Desk, box: Letterbox, room: Receiver
) -> None:
    _, made = make_room(desk, room)
    desk.proposed()
    told_until_spread()
    deactivate_destination(destination=made, by=INSTALLER, clock=db_clock, reason="moved")
    told()
    assert room.heard == []
    assert ("dead", "deactivated") in outcomes()
    assert sorted(box.recipients) == ["ada@post.example", "ben@post.example"]


def test_a_failure_approves_and_extends_nothing(desk: Desk, box: Letterbox, room: Receiver) -> None:
    make_room(desk, room)
    box.refuses = {"ada@post.example": "550 no", "ben@post.example": "550 no"}
    room.answers = [404]
    proposal = desk.proposed()
    before = (proposal.status, proposal.decide_by, proposal.state_version)
    told()
    proposal.refresh_from_db()
    assert (proposal.status, proposal.decide_by, proposal.state_version) == before
    assert Notice.objects.filter(message__kind="asked").count() == 2
