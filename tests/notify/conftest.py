"""A tenant with people who have addresses, a mail server, a receiver of chat messages, and short verbs."""

from collections.abc import Iterator
from typing import Any

import pytest

from access.enums import Role
from access.models import User
from audit.sealer import seal
from common.clock import Clock, db_clock
from notify.running import tell_due
from tests.factories import make_user
from tests.notify.letterbox import Letterbox, letterbox
from tests.workflows.conftest import Desk
from tests.workflows.conftest import desk as toy_desk
from tests.workflows.receiver import Receiver, receiving

__all__ = ["toy_desk"]


@pytest.fixture
def desk(toy_desk: Desk) -> Desk:
    for user in (toy_desk.ada, toy_desk.ben):
        User.objects.filter(pk=user.pk).update(email=f"{user.username}@post.example")
        user.refresh_from_db()
    return toy_desk


@pytest.fixture
def admin(desk: Desk) -> User:
    return make_user(desk.tenant, "adam", roles=[Role.ADMIN], email="adam@post.example")


@pytest.fixture
def box(settings: Any) -> Iterator[Letterbox]:
    with letterbox() as made:
        # Django's test runner keeps mails in memory; here they really leave.
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", made.port
        settings.EMAIL_TIMEOUT = 5
        yield made


@pytest.fixture
def room(settings: Any) -> Iterator[Receiver]:
    with receiving() as made:
        settings.OUTGOING_TOLD_HOSTS = [made.authority]
        yield made


def told(clock: Clock = db_clock) -> None:
    """What happened is sealed, and everything that is due is told."""
    seal(db_clock)
    tell_due(clock)
