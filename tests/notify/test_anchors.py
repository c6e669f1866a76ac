"""Checkpoints reach those who keep them outside, once a day and on request; what did not arrive is seen."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from access.models import User
from access.policies import RoleMissing
from audit.actors import Actor
from audit.checkpoints import opened, parse_vkey
from audit.models import Checkpoint, Event
from audit.proof import Anchored, alarms, anchored
from common.clock import db_clock
from notify.actions.anchoring import NothingToSend, send_now
from notify.actions.destinations import (
    BadAddress,
    DestinationTaken,
    Room,
    deactivate_destination,
    register_address,
    register_destination,
)
from notify.models import Destination, Dispatch, Message
from tests.access.people import INSTALLER
from tests.audit.signing import look
from tests.notify.conftest import told
from tests.notify.letterbox import Letterbox
from tests.workflows.conftest import Desk
from tests.workflows.conftest import person as by_user
from tests.workflows.receiver import Receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "signer"


@pytest.fixture
def signed(desk: Desk, folder: Path) -> Checkpoint:
    """A history with a checkpoint."""
    desk.proposed()
    told()
    look(folder)
    return newest(desk)


def newest(desk: Desk) -> Checkpoint:
    return Checkpoint.objects.filter(tenant_id=desk.tenant.pk).latest("recorded_at")


def later(**delta: float) -> Any:
    return lambda: db_clock() + timedelta(**delta)


def keeper(desk: Desk, address: str = "notary@outside.example", name: str = "notary") -> Destination:
    return register_address(
        tenant_id=desk.tenant.pk, name=name, address=address, by=INSTALLER, clock=db_clock
    )


def checkpoint_mails(box: Letterbox) -> list[str]:
    return [
        str(mail.get_body(("plain",)).get_content()).replace("\r\n", "\n")  # type: ignore[union-attr]
        for mail in box.taken
        if str(mail["Subject"]).startswith("Checkpoint")
    ]


def test_the_mail_has_the_whole_text_and_says_how_to_keep_it(
    desk: Desk, box: Letterbox, signed: Checkpoint, folder: Path
) -> None:
    row = keeper(desk)
    told()
    [text] = checkpoint_mails(box)
    assert box.recipients[-1] == "notary@outside.example"
    assert signed.note in text
    note = text.split("-----8<-----\n")[1].split("----->8-----")[0]
    key = parse_vkey((folder / "signer.pub").read_text())
    assert opened(note, key).size == signed.size
    assert key.vkey in text
    assert f"{desk.tenant.pk}-{signed.size:012}.checkpoint" in text
    assert "verify_history.py" in text
    [attached] = list(box.taken[-1].iter_attachments())
    assert attached.get_content() == signed.note.encode()
    assert attached.get_filename() == f"{desk.tenant.pk}-{signed.size:012}.checkpoint"
    dispatch = Dispatch.objects.get(destination=row)
    assert dispatch.status == "delivered"
    event = Event.objects.get(kind="dispatch.delivered", subject_id=dispatch.pk)
    assert (event.body["told"], event.body["about"]) == ("checkpoint", str(signed.pk))


def test_a_room_gets_the_whole_text_too(
    desk: Desk, box: Letterbox, room: Receiver, signed: Checkpoint
) -> None:
    for style in ("text", "blocks"):
        said = Room(name=style, url=room.url, group=None, kinds=["checkpoint"], style=style)
        register_destination(tenant_id=desk.tenant.pk, room=said, by=INSTALLER, clock=db_clock)
    told()
    texts = [heard.body["text"] for heard in room.heard]
    assert len(texts) == 2
    assert all(f"```\n{signed.note}```" in text for text in texts)
    [blocks] = [heard.body["blocks"] for heard in room.heard if "blocks" in heard.body]
    assert any(signed.note in block["text"]["text"] for block in blocks)


def test_once_a_day_and_only_what_is_new(
    desk: Desk, box: Letterbox, signed: Checkpoint, folder: Path
) -> None:
    keeper(desk)
    told()
    told()
    assert len(checkpoint_mails(box)) == 1
    look(folder)
    told(later(hours=23))
    assert len(checkpoint_mails(box)) == 1
    told(later(hours=25))
    assert len(checkpoint_mails(box)) == 2
    told(later(hours=51))
    assert len(checkpoint_mails(box)) == 2, "the same checkpoint again keeps nothing more"


def test_on_request_it_is_sent_again(desk: Desk, box: Letterbox, admin: User, signed: Checkpoint) -> None:
    keeper(desk)
    told()
    assert send_now(tenant_id=desk.tenant.pk, by=by_user(admin), clock=db_clock) == 1
    told()
    assert len(checkpoint_mails(box)) == 2
    assert set(Message.objects.filter(kind="checkpoint").values_list("version", flat=True)) == {1, 2}


def test_who_hears_of_nothing_else_gets_no_checkpoint(desk: Desk, box: Letterbox, signed: Checkpoint) -> None:
    before = len(box.taken)
    told()
    assert len(box.taken) == before
    with pytest.raises(NothingToSend):
        send_now(tenant_id=desk.tenant.pk, by=INSTALLER, clock=db_clock)


def test_without_a_checkpoint_there_is_nothing_to_send(desk: Desk, box: Letterbox) -> None:
    keeper(desk)
    told()
    assert checkpoint_mails(box) == []
    with pytest.raises(NothingToSend):
        send_now(tenant_id=desk.tenant.pk, by=INSTALLER, clock=db_clock)


def test_what_was_not_taken_is_seen_with_its_reason_and_admins_are_told(
    desk: Desk, box: Letterbox, admin: User, signed: Checkpoint
) -> None:
    box.refuses["notary@outside.example"] = "550 no such mailbox"
    row = keeper(desk)
    told()
    told()
    assert Dispatch.objects.get(destination=row).status == "dead"
    found = anchored(desk.tenant.pk)
    assert (found.receivers, found.size, found.taken_at) == (1, 0, None)
    assert found.problem == "The mail server refused it for good (550)."
    told_of = Message.objects.get(kind="undelivered")
    assert told_of.lead == "A checkpoint of the history could not be delivered and was given up"


def test_what_was_taken_last_is_known(desk: Desk, box: Letterbox, signed: Checkpoint, folder: Path) -> None:
    assert anchored(desk.tenant.pk) == Anchored()
    row = keeper(desk)
    told()
    found = anchored(desk.tenant.pk)
    assert (found.receivers, found.size, found.signed_at) == (1, signed.size, signed.signed_at)
    assert not found.overdue(db_clock() + timedelta(hours=47))
    assert found.overdue(db_clock() + timedelta(hours=49))
    [alarm] = alarms(desk.tenant.pk, db_clock() + timedelta(hours=49))
    assert alarm.title == "No checkpoint reached anybody for two days"
    deactivate_destination(destination=row, by=INSTALLER, clock=db_clock)
    [alarm] = alarms(desk.tenant.pk, db_clock() + timedelta(hours=49))
    assert alarm.title == "Nobody outside keeps checkpoints of the history"


def test_nothing_taken_since_it_was_registered_is_an_alarm_too(desk: Desk, signed: Checkpoint) -> None:
    keeper(desk)
    assert alarms(desk.tenant.pk, db_clock()) == []
    assert len(alarms(desk.tenant.pk, db_clock() + timedelta(hours=49))) == 1


# -- who registers, and how it is written down ------------------------------------------------------------------------


def test_a_registration_is_an_event_that_names_no_address(desk: Desk) -> None:
    row = keeper(desk)
    event = Event.objects.get(kind="destination.created", subject_id=row.pk)
    assert event.body == {"name": "notary", "host": "outside.example", "kinds": ["checkpoint"]}
    assert b"notary@" not in bytes(row.sealed_url or b"")


@pytest.mark.parametrize(
    "address", ["", "nobody", "a@b@c", "a\n@example.org", "a@example.org, b@example.org"]
)
def test_what_is_no_address_is_refused(desk: Desk, address: str) -> None:
    with pytest.raises(BadAddress):
        keeper(desk, address)


def test_a_name_is_given_once_and_is_a_name(desk: Desk) -> None:
    keeper(desk)
    with pytest.raises(DestinationTaken):
        keeper(desk)
    with pytest.raises(BadAddress):
        keeper(desk, name="Not a name")


def test_only_admins_register_and_send(desk: Desk, signed: Checkpoint) -> None:
    ada: Actor = by_user(desk.ada)
    with pytest.raises(RoleMissing):
        register_address(tenant_id=desk.tenant.pk, name="x", address="a@b.example", by=ada, clock=db_clock)
    with pytest.raises(RoleMissing):
        send_now(tenant_id=desk.tenant.pk, by=ada, clock=db_clock)


def test_an_admin_does_both_on_pages(desk: Desk, box: Letterbox, admin: User, signed: Checkpoint) -> None:
    client = Client()
    client.force_login(admin)
    page = client.get("/people/notices/new-address/")
    assert page.status_code == 200
    wrong = client.post("/people/notices/new-address/", {"name": "notary", "address": "nobody"})
    assert wrong.status_code == 422
    made = client.post(
        "/people/notices/new-address/", {"name": "notary", "address": "notary@outside.example"}
    )
    row = Destination.objects.get(name="notary")
    assert made["Location"] == f"/people/notices/{row.pk}/"
    text = client.get(made["Location"]).content.decode()
    assert "outside.example" in text and "notary@outside.example" not in text
    assert "Send a checkpoint now" in client.get("/history/").content.decode()
    assert client.post("/people/notices/checkpoint/")["Location"] == "/history/"
    told()
    assert len(checkpoint_mails(box)) == 1
    assert f"The last one outside is of {signed.size:,} events" in client.get("/history/").content.decode()
