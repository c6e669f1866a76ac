"""A person cancels a run on its page: with a reason, by the roles that may, and told in words what came of it."""

import pytest
from django.test import Client

from access.enums import Role
from audit.models import Event
from tests.factories import make_run, make_user
from tests.workflows.conftest import Desk
from workflows.models import Run

pytestmark = pytest.mark.django_db
REASON = {"reason": "The customer called it off."}


@pytest.fixture
def operator(desk: Desk, client: Client) -> Client:
    client.force_login(make_user(desk.tenant, "omar", roles=[Role.OPERATOR]))
    return client


def test_a_run_that_has_sent_nothing_stops_at_once(operator: Client, desk: Desk) -> None:
    run = desk.proposed().run_id
    assert f"/runs/{run}/cancel/" in operator.get(f"/runs/{run}/").content.decode()
    answer = operator.post(f"/runs/{run}/cancel/", REASON, follow=True)
    html = answer.content.decode()
    assert "The run is cancelled." in html
    assert "called it off" not in html  # people's own words are for roles that are shown personal data
    operator.force_login(make_user(desk.tenant, "ava", roles=[Role.AUDITOR]))
    assert "called it off" in operator.get(f"/runs/{run}/").content.decode()
    assert f"/runs/{run}/cancel/" not in html
    assert Run.objects.get(pk=run).status == "cancelled"
    event = Event.objects.get(kind="run.cancelled", run_id=run)
    assert (event.via, event.owner) == ("session", "person")


def test_after_something_was_sent_it_is_a_wish(operator: Client, desk: Desk) -> None:
    run = desk.approved().run_id
    desk.work()
    html = operator.post(f"/runs/{run}/cancel/", REASON, follow=True).content.decode()
    assert "The run stops as soon as it is settled what has happened." in html
    assert Event.objects.filter(kind="run.cancel_requested", run_id=run).exists()


def test_a_reason_is_asked_for(operator: Client, desk: Desk) -> None:
    run = desk.start()
    answer = operator.post(f"/runs/{run.pk}/cancel/", {"reason": " "})
    assert answer.status_code == 422
    run.refresh_from_db()
    assert run.status == "queued"


def test_a_run_that_has_ended_says_so(operator: Client, desk: Desk) -> None:
    run = make_run(desk.tenant, status="completed")
    assert "There is nothing to cancel." in operator.get(f"/runs/{run.pk}/cancel/").content.decode()
    answer = operator.post(f"/runs/{run.pk}/cancel/", REASON)
    assert answer.status_code == 422
    assert "The run has ended already." in answer.content.decode()


def test_other_roles_and_other_tenants_cannot(operator: Client, desk: Desk) -> None:
    other = make_run()
    assert operator.post(f"/runs/{other.pk}/cancel/", REASON).status_code == 404
    run = desk.start()
    operator.force_login(desk.ada)
    assert "Cancel this run" not in operator.get(f"/runs/{run.pk}/").content.decode()
    assert operator.get(f"/runs/{run.pk}/cancel/").status_code == 403
    assert operator.post(f"/runs/{run.pk}/cancel/", REASON).status_code == 403
    run.refresh_from_db()
    assert run.status == "queued"
