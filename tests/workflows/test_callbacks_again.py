"""What was given up is sent again by an admin, and what is over leaves the outbox. Field reports F5 and N1."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError
from django.test import Client

from access.auth import person_actor
from access.enums import Role
from access.policies import NotAMember, RoleMissing
from audit.models import Event
from common.clock import db_clock
from tests.factories import make_tenant, make_user
from tests.rows import now
from tests.workflows.callback_walls import (
    call_row,
    delivered_row,
    given_up_row,
    make_destination,
    superseded_row,
)
from tests.workflows.conftest import Desk
from tests.workflows.receiver import Receiver
from tests.workflows.test_callbacks import CONSOLE, ended, kinds, later, outcomes, receiver, register, send
from tests.workflows.together import in_threads
from workflows import sweep
from workflows.actions.callbacks import CallbackEnded, deactivate_callback
from workflows.actions.outbox import forget_old_calls
from workflows.actions.sending_again import AT_ONCE, send_given_up_again
from workflows.models import CallbackCall, CallbackEndpoint, Run
from workflows.models.callbacks import TRIES_AT_A_TIME
from workflows.screens.called import callback_line

__all__ = ["receiver"]
pytestmark = pytest.mark.django_db
A_WEEK = timedelta(days=7)


def give_up(receiver: Receiver) -> None:
    receiver.answers = [500]
    for number in range(TRIES_AT_A_TIME + 1):
        send(later(hours=3 * (number + 1)))


def again(endpoint: CallbackEndpoint, **given: Any) -> int:
    return send_given_up_again(endpoint=endpoint, by=CONSOLE, clock=db_clock, **given)


def test_the_same_call_goes_again_and_goes_on_counting(desk: Desk, receiver: Receiver) -> None:
    secret, endpoint = register(desk, receiver.url)
    ended(desk)
    give_up(receiver)
    assert outcomes() == [("failed", "dead", TRIES_AT_A_TIME)]
    assert (again(endpoint), again(endpoint)) == (1, 0)
    receiver.answers = [204]
    assert send() == 1  # at once, though the destination was left alone until then
    assert outcomes() == [("failed", "delivered", TRIES_AT_A_TIME + 1)]
    assert len({heard.id for heard in receiver.heard}) == 1
    assert receiver.heard[-1].body["attempt"] == TRIES_AT_A_TIME + 1
    assert receiver.heard[-1].signed_with(secret)
    assert kinds("callback.") == ["callback.given_up", "callback.sent_again", "callback.delivered"]
    said = Event.objects.get(kind="callback.sent_again")
    assert (said.from_state, said.to_state, said.performed_by) == ("dead", "pending", CONSOLE.performed_by)


def test_it_is_given_up_again_after_as_many_tries(desk: Desk, receiver: Receiver) -> None:
    _, endpoint = register(desk, receiver.url)
    ended(desk)
    give_up(receiver)
    again(endpoint)
    send()
    due = CallbackCall.objects.get().due_at
    assert due is not None
    assert due - db_clock() < timedelta(seconds=11)  # its pauses begin anew
    give_up(receiver)
    assert outcomes() == [("failed", "dead", 2 * TRIES_AT_A_TIME)]


def test_only_what_was_given_up_about_the_newest_state_is_sent(desk: Desk) -> None:
    endpoint = make_destination(tenant=desk.tenant)
    old = given_up_row(endpoint=endpoint)
    delivered_row(endpoint=endpoint, run=old.run, state_version=3)
    for row in (delivered_row, superseded_row):
        row(endpoint=endpoint)
    call_row(endpoint).save()
    given_up_row(endpoint=make_destination(tenant=desk.tenant, name="other", url="https://other.example/"))
    newest = given_up_row(endpoint=endpoint)
    assert again(endpoint, run_id=old.run_id) == 0
    assert again(endpoint) == 1
    newest.refresh_from_db()
    assert (newest.status, newest.ended_at) == ("pending", None)


def test_a_destination_that_has_ended_is_sent_nothing(desk: Desk) -> None:
    endpoint = make_destination(tenant=desk.tenant)
    given_up_row(endpoint=endpoint)
    deactivate_callback(endpoint=endpoint, by=CONSOLE, clock=db_clock)
    with pytest.raises(CallbackEnded):
        again(endpoint)
    assert outcomes() == [("completed", "dead", 0)]


def test_two_admins_send_it_once(desk: Desk) -> None:
    endpoint = make_destination(tenant=desk.tenant)
    for _ in range(5):
        given_up_row(endpoint=endpoint)
    assert sum(in_threads(4, lambda _: again(endpoint))) == 5
    assert Event.objects.filter(kind="callback.sent_again").count() == 5


def test_so_many_at_a_time_the_oldest_first(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert AT_ONCE == 200
    monkeypatch.setattr("workflows.actions.sending_again.AT_ONCE", 2)
    endpoint = make_destination(tenant=desk.tenant)
    made = [given_up_row(endpoint=endpoint, created_at=now() - A_WEEK * number).pk for number in range(3)]
    assert again(endpoint) == 2
    assert CallbackCall.objects.get(status="dead").pk == made[0]


# -- pages and commands ------------------------------------------------------------------------------------------


def test_an_admin_sends_it_again_on_the_page(desk: Desk) -> None:
    endpoint = make_destination(tenant=desk.tenant)
    page, address = (f"/people/endpoints/callbacks/{endpoint.pk}/{rest}" for rest in ("", "again/"))
    client = Client()
    client.force_login(make_user(desk.tenant, "adam", roles=[Role.ADMIN]))
    assert address not in client.get(page).content.decode()
    given_up_row(endpoint=endpoint)
    assert address in client.get(page).content.decode()
    asked = client.get(address)
    assert "Calls that can be sent again: 1." in asked.content.decode()
    assert (client.post(address, {}).status_code, CallbackCall.objects.get().status) == (200, "dead")  # asks
    answer = client.post(address, {"sure": "yes"}, follow=True)
    assert "Calls that are sent again: 1." in answer.content.decode()
    assert CallbackCall.objects.get().status == "pending"
    assert Event.objects.get(kind="callback.sent_again").performed_by.startswith("user:")
    deactivate_callback(endpoint=endpoint, by=CONSOLE, clock=db_clock)
    refused = client.post(address, {"sure": "yes"})
    assert (refused.status_code, "deactivated" in refused.content.decode()) == (409, True)


def test_only_an_admin_of_that_organisation_may(desk: Desk) -> None:
    endpoint = make_destination(tenant=desk.tenant)
    given_up_row(endpoint=endpoint)
    stranger = make_user(make_tenant(), "eve", roles=[Role.ADMIN])
    auditor = make_user(desk.tenant, "anna", roles=[Role.AUDITOR])
    for user in (stranger, auditor):
        with pytest.raises((RoleMissing, NotAMember)):
            send_given_up_again(endpoint=endpoint, by=person_actor(user.memberships.get()), clock=db_clock)
    assert CallbackCall.objects.get().status == "dead"


def test_the_command_sends_all_or_those_of_one_run(desk: Desk) -> None:
    endpoint = make_destination(tenant=desk.tenant)
    rows = [given_up_row(endpoint=endpoint) for _ in range(3)]
    out = StringIO()
    call_command("callback", "again", desk.tenant.slug, "crm", "--run", str(rows[1].run_id), stdout=out)
    assert [row.status for row in CallbackCall.objects.order_by("id")] == ["dead", "pending", "dead"]
    call_command("callback", "again", desk.tenant.slug, "crm", stdout=out)
    assert out.getvalue().splitlines() == [
        "Calls that are sent again: 1. At most 200 go at a time.",
        "Calls that are sent again: 2. At most 200 go at a time.",
    ]


# -- what is over goes -------------------------------------------------------------------------------------------


def old(row: CallbackCall, days: int) -> CallbackCall:
    """As if it had ended so long ago."""
    CallbackCall.objects.filter(pk=row.pk).update(ended_at=now() - timedelta(days=days))
    return row


def test_what_has_ended_goes_after_a_while(desk: Desk, settings: Any) -> None:
    settings.PLACET_CALLBACK_DAYS = 30
    endpoint = make_destination(tenant=desk.tenant)
    for made in (delivered_row, superseded_row, given_up_row):
        old(made(endpoint=endpoint), 31)
        old(made(endpoint=endpoint), 29)
    waiting = call_row(endpoint, created_at=now() - timedelta(days=99))
    waiting.save()
    assert (forget_old_calls(clock=db_clock, limit=2), forget_old_calls(clock=db_clock)) == (2, 1)
    assert CallbackCall.objects.count() == 4
    assert CallbackCall.objects.filter(pk=waiting.pk).exists()
    settings.PLACET_CALLBACK_DAYS = 0  # a day at least, as the database has it
    assert forget_old_calls(clock=db_clock) == 3
    given_up_row(endpoint=endpoint)
    assert forget_old_calls(clock=db_clock) == 0


def test_the_sweep_does_it(desk: Desk) -> None:
    row = old(delivered_row(endpoint=make_destination(tenant=desk.tenant)), 91)
    sweep.look_around()
    assert not CallbackCall.objects.filter(pk=row.pk).exists()


def test_what_ended_today_or_waits_is_deleted_by_nobody(desk: Desk) -> None:
    endpoint = make_destination(tenant=desk.tenant)
    call_row(endpoint).save()
    delivered_row(endpoint=endpoint)
    for row in CallbackCall.objects.all():
        with pytest.raises(DatabaseError, match="not deleted"):
            CallbackCall.objects.filter(pk=row.pk).delete()


def test_the_page_of_a_run_does_not_say_that_nothing_was_told(desk: Desk, receiver: Receiver) -> None:
    register(desk, receiver.url)
    run = ended(desk)
    send()
    old(CallbackCall.objects.get(), 91)
    assert "delivered" in callback_line(run)
    sweep.look_around()
    assert "the history" in callback_line(Run.objects.get(pk=run.pk))
