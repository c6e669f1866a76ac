"""Looking at automatic actions afterwards, by plain forms."""

import pytest
from django.test import Client

from access.enums import Role
from access.models import User
from approvals.models import Sample
from common.clock import db_clock
from tests.database import captured_queries
from tests.factories import make_user
from tests.workflows import modes
from tests.workflows.conftest import Desk, desk
from workflows import registry
from workflows.operations import Verdict

__all__ = ["desk"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def sampled(desk: Desk) -> Desk:
    modes.install()
    registry.register_definitions(clock=db_clock)
    desk.till.verdict = Verdict("auto", "toy.small", "It is small.")
    make(desk, 1)
    return desk


def make(desk: Desk, count: int) -> None:
    for number in range(count):
        desk.start(workflow="toy-sampled", order=f"{number}-{Sample.objects.count()}")
        desk.advance()
        desk.work()


def at(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_what_waits_is_listed_with_its_counters(sampled: Desk) -> None:
    page = at(sampled.ada).get("/review/afterwards/").content.decode()
    assert "1 to look at" in page
    assert "toy-sampled" in page
    assert "100 %" in page
    assert "Afterwards" in at(sampled.ada).get("/review/").content.decode()


def test_one_says_it_and_the_next_one_is_told_who_was_first(sampled: Desk) -> None:
    sample = Sample.objects.get()
    address = f"/review/afterwards/{sample.pk}/"
    page = at(sampled.ada).get(address).content.decode()
    assert "Pay EUR 10.00 for order" in page
    assert "It is small." in page
    refused = at(sampled.ada).post(f"{address}say/", {"verdict": "wrong", "words": ""})
    assert refused.status_code == 422
    assert "Say why" in refused.content.decode()
    answer = at(sampled.ada).post(f"{address}say/", {"verdict": "wrong", "words": "Not due."})
    assert answer["Location"] == "/review/afterwards/"
    late = at(sampled.ben).post(f"{address}say/", {"verdict": "fine", "words": "Looks right."})
    told = late.content.decode()
    assert late.status_code == 409
    assert "Somebody has looked at this one already." in told
    assert "ada" in told
    assert Sample.objects.get().verdict == "wrong"
    assert "Not due." in told
    page = at(sampled.ada).get("/review/afterwards/").content.decode()
    assert "0 to look at" in page
    assert "Said last" in page


def test_others_read_and_say_nothing(sampled: Desk) -> None:
    sample = Sample.objects.get()
    anna = make_user(sampled.tenant, "anna", roles=[Role.AUDITOR])
    page = at(anna).get(f"/review/afterwards/{sample.pk}/").content.decode()
    assert "You may not decide this" in page
    assert '<form class="stack tight"' not in page
    answer = at(anna).post(f"/review/afterwards/{sample.pk}/say/", {"verdict": "fine"})
    assert answer.status_code == 403
    assert Sample.objects.get().verdict is None


def test_the_list_costs_the_same_for_many(sampled: Desk) -> None:
    counts = []
    for more in (0, 3):
        make(sampled, more)
        client = at(sampled.ada)
        client.get("/review/afterwards/")
        with captured_queries("system", "app") as seen:
            client.get("/review/afterwards/")
        counts.append(sum(len(one.captured_queries) for one in seen))
    assert counts[0] == counts[1]
