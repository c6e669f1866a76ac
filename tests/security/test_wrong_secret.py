"""A process with another PLACET_SECRET_KEY: it leaves what it cannot open to processes that can, and loses nothing."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from access.models import User
from common.clock import db_clock
from common.sealing import CannotOpen, SecretKeyUnknown, seal, unseal
from tests.access import people
from tests.access.keys import add_app, code
from tests.api.callers import refused
from tests.api.test_hooks import Sender, sender, take_in
from tests.notify.conftest import room, told
from tests.notify.test_failing import make_room, outcomes
from tests.workflows import test_callbacks as callbacks
from tests.workflows.conftest import Desk, desk
from tests.workflows.receiver import Receiver, receiving
from workflows.actions.endpoints import rotate_secret
from workflows.models import CallbackCall, Delivery, Run

__all__ = ["desk", "room", "sender"]
pytestmark = pytest.mark.django_db
OTHER = "a secret of another installation, which is long enough to be one"


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    with receiving() as made:
        settings.OUTGOING_TOLD_HOSTS = [made.authority]
        yield made


def test_what_is_sealed_says_which_secret_opens_it(settings: Any) -> None:
    mine, sealed = settings.SECRET_KEY, seal("here", b"canary")
    assert unseal("here", sealed) == b"canary"
    settings.SECRET_KEY = OTHER
    with pytest.raises(SecretKeyUnknown):
        unseal("here", sealed)
    settings.SECRET_KEY_FALLBACKS = [mine]
    assert unseal("here", memoryview(sealed)) == b"canary"
    for damaged in (sealed[:-1], sealed[:20], sealed[9:-2], b""):
        with pytest.raises(CannotOpen):
            unseal("here", damaged)
    with pytest.raises(CannotOpen):
        unseal("there", sealed)


def test_what_was_sealed_before_secrets_had_names_is_opened(settings: Any) -> None:
    old = seal("here", b"canary")[9:]
    assert unseal("here", old) == b"canary"
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], OTHER
    assert unseal("here", old) == b"canary"


def test_a_delivery_waits_for_a_worker_that_can_open_it(sender: Sender, settings: Any) -> None:
    mine = settings.SECRET_KEY
    sender.post()
    settings.SECRET_KEY = OTHER
    for hours in range(9):
        assert take_in(lambda hours=hours: db_clock() + timedelta(hours=hours)) == 0
    delivery = Delivery.objects.get()
    assert (delivery.outcome, delivery.tries) == (None, 0)
    settings.SECRET_KEY = mine
    assert take_in() == 1
    assert Run.objects.count() == 1


def test_a_sender_is_asked_to_try_again_and_is_not_called_a_liar(sender: Sender, settings: Any) -> None:
    mine, settings.SECRET_KEY = settings.SECRET_KEY, OTHER
    answer = sender.post()
    assert answer.status_code == 503
    refused(answer, 503, "secret_key_missing")
    new = rotate_secret(
        endpoint=sender.endpoint, overlap=timedelta(hours=1), by=sender.console, clock=db_clock
    )
    assert sender.post(identity="m2", secret=new[0] if isinstance(new, tuple) else new).status_code == 202
    settings.SECRET_KEY = mine
    assert sender.post(identity="m3").status_code == 202, "the secret from before is open to who has its key"


def test_a_callback_waits_for_who_can_sign_it(desk: Desk, receiver: Receiver, settings: Any) -> None:
    mine = settings.SECRET_KEY
    callbacks.register(desk, receiver.url)
    callbacks.ended(desk)
    settings.SECRET_KEY = OTHER
    for hours in range(30):
        callbacks.send(lambda hours=hours: db_clock() + timedelta(hours=hours))
    call = CallbackCall.objects.get()
    assert (call.status, call.tries) == ("pending", 0)
    settings.SECRET_KEY = mine
    assert callbacks.send() == 1


def test_a_chat_message_waits_for_who_knows_the_room(desk: Desk, room: Receiver, settings: Any) -> None:
    mine = settings.SECRET_KEY
    make_room(desk, room)
    desk.proposed()
    settings.SECRET_KEY = OTHER
    told()
    assert ("pending", "") in outcomes()
    assert room.heard == []
    settings.SECRET_KEY = mine
    told()
    assert len(room.heard) == 1


def test_a_second_factor_that_cannot_be_read_is_said_in_words(settings: Any) -> None:
    ada: User = people.person(people.tenant(), "ada")
    secret = add_app(ada)
    settings.SECRET_KEY = OTHER
    client = Client()
    client.post("/sign-in/", {"username": "ada", "password": people.PASSWORD})
    answer = client.post("/sign-in/code/", {"code": code(secret)})
    assert answer.status_code == 503
    assert "PLACET_SECRET_KEY" in answer.content.decode()
