"""Callbacks, against a real receiver: signed, at least once, newest state only, and never where nobody registered.

Security list S18 and S20, field reports N1 and S1.
"""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from access.management.operator import at_the_console
from audit.models import Event
from common.clock import Clock, db_clock
from tests.factories import make_tenant
from tests.workflows.conftest import AGENT, Desk, state
from tests.workflows.receiver import Heard, Receiver, receiving
from tests.workflows.test_engine_waits import ASK, GOOD, answer
from tests.workflows.together import in_threads
from workflows.actions import calling_back
from workflows.actions.callbacks import (
    BadCallback,
    CallbackEnded,
    CallbackTaken,
    deactivate_callback,
    register_callback,
    rotate_callback_secret,
)
from workflows.actions.calling_back import call_back_due, claim_calls, make_calls
from workflows.actions.cancelling import cancel_run
from workflows.actions.outbox import BY, CallbackNotRegistered
from workflows.actions.runs import Source, start_run
from workflows.authoring import Done, Fail
from workflows.models import CallbackCall, CallbackEndpoint, CallbackSecret, Run
from workflows.models.callbacks import TRIES_AT_A_TIME as MOST_TRIES

pytestmark = pytest.mark.django_db
CONSOLE = at_the_console()
NO_SUCH_PERSON = "kanarienvogel@person.example"


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    with receiving() as made:
        settings.OUTGOING_TOLD_HOSTS = [made.authority]
        yield made


def register(desk: Desk, url: str, name: str = "crm") -> tuple[str, CallbackEndpoint]:
    return register_callback(tenant_id=desk.tenant.pk, name=name, url=url, by=CONSOLE, clock=db_clock)


def start(desk: Desk, event: str = "e-1", callback: str = "crm", order: str = "1042") -> Run:
    return start_run(
        tenant_id=desk.tenant.pk, workflow="toy-pay", input={"order": order}, source=Source("test", event), by=AGENT,
        clock=db_clock, callback=callback,
    ).run  # fmt: skip


def ended(desk: Desk, event: str = "e-1", callback: str = "crm") -> Run:
    """A run that has failed by its exception table."""
    desk.till.stages["judge"] = Fail("unknown_order")
    run = start(desk, event, callback)
    desk.advance()
    run.refresh_from_db()
    assert run.status == "failed"
    return run


def later(**delta: int) -> Clock:
    return lambda: db_clock() + timedelta(**delta)


def send(clock: Clock = db_clock) -> int:
    return call_back_due(by=BY, clock=clock)


def outcomes() -> list[tuple[str, str, int]]:
    rows = CallbackCall.objects.order_by("created_at", "id")
    return [(row.run_status, row.status, row.tries) for row in rows]


def kinds(thing: str = "callback") -> list[str]:
    return list(
        Event.objects.filter(kind__startswith=thing).order_by("at", "id").values_list("kind", flat=True)
    )


# -- what is sent ------------------------------------------------------------------------------------------------


def test_the_end_of_a_run_is_told_signed_and_without_content(desk: Desk, receiver: Receiver) -> None:
    secret, endpoint = register(desk, receiver.url)
    run = ended(desk)
    assert outcomes() == [("failed", "pending", 0)]
    assert send() == 1
    [heard] = receiver.heard
    assert heard.signed_with(secret)
    assert not heard.signed_with("whsec_" + "A" * 43 + "=")
    assert "." not in heard.id
    assert heard.id == str(CallbackCall.objects.get().pk)
    assert abs(int(heard.headers["webhook-timestamp"]) - db_clock().timestamp()) < 60
    assert (heard.body["type"], heard.body["attempt"]) == ("run.failed", 1)
    assert heard.data == {
        "run_id": str(run.pk), "kind": "original", "workflow": "toy-pay", "workflow_version": 1, "status": "failed",
        "outcome": "no_action", "original_outcome": None, "waiting": None, "next_action": "stop", "retry_after": None,
        "started_at": heard.data["started_at"], "finished_at": heard.data["finished_at"],
        "state_version": run.state_version, "cancel_requested": False, "questions": [],
    }  # fmt: skip
    assert outcomes() == [("failed", "delivered", 1)]
    assert kinds() == ["callback_endpoint.created", "callback.delivered"]
    endpoint.refresh_from_db()
    assert endpoint.last_delivered_at is not None
    assert send() == 0


def test_nobody_is_called_for_a_run_that_named_nobody(desk: Desk, receiver: Receiver) -> None:
    register(desk, receiver.url)
    ended(desk, callback="")
    assert (send(), outcomes(), receiver.heard) == (0, [], [])


def test_data_that_is_asked_for_is_told_and_later_what_came_of_it(desk: Desk, receiver: Receiver) -> None:
    register(desk, receiver.url)
    desk.till.stages["judge"] = ASK
    run = start(desk, callback=receiver.url)  # by its address, which is a registered one
    desk.advance()
    run.refresh_from_db()
    send()
    waiting = receiver.heard[0].data["waiting"]
    assert waiting["wait_id"] == str(run.wait_id)
    assert set(waiting) == {"wait_id", "for", "until", "on_expiry"}  # what is asked for stays here
    assert receiver.heard[0].data["next_action"] == "provide_data"
    desk.till.stages["judge"] = Done({})
    answer(desk, run, GOOD)
    desk.advance()
    assert send() == 0  # it waits for a person of ours
    cancel_run(tenant_id=desk.tenant.pk, run_id=run.pk, reason="enough", by=AGENT, clock=db_clock)
    send()
    versions = [heard.data["state_version"] for heard in receiver.heard]
    assert [heard.data["status"] for heard in receiver.heard] == ["waiting_for_data", "cancelled"]
    assert versions == sorted(set(versions))


def test_an_action_that_was_confirmed_in_a_batch_is_told(desk: Desk, receiver: Receiver) -> None:
    register(desk, receiver.url)
    run = start(desk)
    desk.advance()
    from approvals.models import Proposal

    desk.decide(Proposal.objects.get(run_id=run.pk))
    desk.work()
    desk.advance()
    assert state(run.pk)[0] == "completed"
    send()
    assert [(heard.body["type"], heard.data["outcome"]) for heard in receiver.heard] == [
        ("run.completed", "paid")
    ]


def test_nothing_of_a_case_or_a_person_stands_in_it_or_in_the_log(
    desk: Desk, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    register(desk, receiver.url)
    desk.till.stages["judge"] = Fail("unknown_order")
    with caplog.at_level(logging.DEBUG):
        start(desk, event=f"mail of {NO_SUCH_PERSON}", order=NO_SUCH_PERSON)
        desk.advance()
        send()
    sent = receiver.heard[0].raw.decode() + repr(receiver.heard[0].headers)
    for word in ("kanarienvogel", "There is no such order.", "api:tester", "whsec_"):
        assert word not in sent
    assert "kanarienvogel" not in caplog.text


# -- secrets -----------------------------------------------------------------------------------------------------


def test_during_a_rotation_both_secrets_sign_and_afterwards_one(desk: Desk, receiver: Receiver) -> None:
    old, endpoint = register(desk, receiver.url)
    new = rotate_callback_secret(endpoint=endpoint, overlap=timedelta(hours=1), by=CONSOLE, clock=db_clock)
    ended(desk)
    send()
    [both] = receiver.heard
    assert (len(both.signatures), both.signed_with(old), both.signed_with(new)) == (2, True, True)
    ended(desk, "e-2")
    send(later(hours=2))
    assert [len(heard.signatures) for heard in receiver.heard] == [2, 1]
    assert (receiver.heard[1].signed_with(old), receiver.heard[1].signed_with(new)) == (False, True)
    last = rotate_callback_secret(endpoint=endpoint, overlap=timedelta(0), by=CONSOLE, clock=db_clock)
    ended(desk, "e-3")
    send()
    assert receiver.heard[2].signed_with(last)
    assert not receiver.heard[2].signed_with(new)
    assert not bytes(
        CallbackSecret.objects.filter(sealed__isnull=False).latest("created_at").sealed or b""
    ).count(last.encode())


# -- failures ----------------------------------------------------------------------------------------------------


def test_what_fails_is_sent_again_with_the_same_id_and_then_given_up(desk: Desk, receiver: Receiver) -> None:
    secret, endpoint = register(desk, receiver.url)
    receiver.answers = [500, 503, 204]
    run = ended(desk)
    before = state(run.pk)
    assert (send(), send()) == (1, 0)  # not at once
    assert CallbackCall.objects.get().http_status == 500
    due = [CallbackCall.objects.get().due_at]
    send(later(minutes=1))
    due.append(CallbackCall.objects.get().due_at)
    send(later(hours=1))
    assert len({heard.id for heard in receiver.heard}) == 1  # field report N1
    assert [heard.body["attempt"] for heard in receiver.heard] == [1, 2, 3]
    assert all(heard.signed_with(secret) for heard in receiver.heard)
    assert outcomes() == [("failed", "delivered", 3)]
    assert due[0] is not None
    assert due[1] is not None
    assert due[0] - db_clock() < timedelta(seconds=10) < due[1] - db_clock()
    assert state(run.pk) == before

    receiver.answers = [500]
    ended(desk, "e-2")
    for number in range(MOST_TRIES + 3):
        send(later(hours=3 * (number + 1)))
    assert outcomes()[-1] == ("failed", "dead", MOST_TRIES)
    assert kinds("callback.") == ["callback.delivered", "callback.given_up"]
    endpoint.refresh_from_db()
    assert (endpoint.deactivated_at, endpoint.last_problem, endpoint.failures) == (
        None,
        "http_500",
        MOST_TRIES,
    )


def test_who_answers_410_is_never_called_again(desk: Desk, receiver: Receiver) -> None:
    _, endpoint = register(desk, receiver.url)
    desk.till.stages["judge"] = ASK
    start(desk, "other")
    desk.advance()
    CallbackCall.objects.update(due_at=db_clock() + timedelta(hours=1))
    receiver.answers = [410]
    run = ended(desk)
    send()
    endpoint.refresh_from_db()
    assert (endpoint.gone, endpoint.deactivated_at is None) == (True, False)
    assert {status for _, status, _ in outcomes()} == {"dead"}
    assert kinds("callback_endpoint") == ["callback_endpoint.created", "callback_endpoint.gone"]
    assert not CallbackSecret.objects.filter(sealed__isnull=False).exists()
    assert send(later(days=1)) == 0
    assert state(run.pk)[0] == "failed"
    with pytest.raises(CallbackNotRegistered):
        start(desk, "e-9")


def test_a_redirect_is_not_followed(desk: Desk, receiver: Receiver) -> None:
    with receiving() as elsewhere:
        receiver.answers, receiver.headers = [307], {"location": elsewhere.url}
        register(desk, receiver.url)
        ended(desk)
        send()
        assert (len(receiver.heard), elsewhere.heard) == (1, [])
    call = CallbackCall.objects.get()
    assert (call.status, call.problem, call.http_status) == ("pending", "redirect", 307)


def test_an_address_that_is_no_longer_trusted_is_not_called(
    desk: Desk, receiver: Receiver, settings: Any
) -> None:
    """What was registered is checked again at each call (S20)."""
    register(desk, receiver.url)
    settings.OUTGOING_TOLD_HOSTS = []
    ended(desk)
    send()
    assert receiver.heard == []
    assert CallbackCall.objects.get().problem == "not_sent_address"


@pytest.mark.parametrize(
    "url",
    [
        "http://crm.example/", "https://crm.example:8443/", "https://u:p@crm.example/", "https://crm.example/#x",
        "https://127.0.0.1/", "https://10.1.2.3/", "https://169.254.169.254/latest", "https://[::1]/",
        "https://[64:ff9b::a9fe:a9fe]/", "https://[2002:7f00:1::]/", "https://100.64.0.1/", "ftp://crm.example/",
        "https://crm.example/a b", "file:///etc/passwd", "crm",
    ],
)  # fmt: skip
def test_an_address_that_may_not_be_called_is_not_registered(desk: Desk, url: str) -> None:
    with pytest.raises(BadCallback):
        register(desk, url)
    assert not CallbackEndpoint.objects.exists()


def test_what_is_trusted_for_providers_is_no_address_for_callbacks(
    desk: Desk, receiver: Receiver, settings: Any
) -> None:
    """An admin of one organisation would otherwise reach what the operator has opened for connectors (S20)."""
    register(desk, receiver.url)
    settings.OUTGOING_TOLD_HOSTS, settings.OUTGOING_TRUSTED_HOSTS = [], [receiver.authority]
    with pytest.raises(BadCallback):
        register(desk, f"{receiver.url}again", "again")
    ended(desk)
    send()
    assert (receiver.heard, CallbackCall.objects.get().problem) == ([], "not_sent_address")


def test_a_name_that_leads_to_a_private_address_is_not_called(desk: Desk) -> None:
    register(desk, "https://localhost/inside")
    ended(desk)
    send()
    assert CallbackCall.objects.get().problem == "not_sent_address"


def test_who_hangs_or_fails_keeps_nobody_else_waiting(
    desk: Desk, receiver: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling_back, "CALL_WITHIN_S", 1.0)
    with receiving() as slow:
        settings.OUTGOING_TOLD_HOSTS = [receiver.authority, slow.authority]
        slow.hold.clear()
        register(desk, slow.url, "slow")
        register(desk, receiver.url, "quick")
        for number in range(6):
            ended(desk, f"slow-{number}", "slow")
        for number in range(6):
            ended(desk, f"quick-{number}", "quick")
        began = db_clock()
        send()
        assert (len(receiver.heard), len(slow.heard)) == (6, calling_back.CALLS_TO_ONE)
        assert db_clock() - began < timedelta(seconds=5)
        send(later(minutes=1))
        assert len(slow.heard) == calling_back.CALLS_TO_ONE + 1  # one that fails gets a single try at a time
    assert {call.status for call in CallbackCall.objects.filter(endpoint__name="quick")} == {"delivered"}


# -- crashes, races, order ---------------------------------------------------------------------------------------


def test_a_worker_that_dies_between_sending_and_storing_leaves_it_due_again(
    desk: Desk, receiver: Receiver
) -> None:
    register(desk, receiver.url)
    ended(desk)
    [claimed] = claim_calls(by=BY, clock=db_clock)
    lost = calling_back._send(calling_back._prepare(claimed, db_clock()))  # and here it ends
    assert lost.http_status == 204
    assert send() == 0  # the lease keeps others away
    assert send(later(minutes=1)) == 1
    assert len({heard.id for heard in receiver.heard}) == 1
    assert outcomes() == [("failed", "delivered", 2)]
    calling_back.store_seen(
        claimed, calling_back.Seen("refused", 500), by=BY, clock=db_clock
    )  # it was only slow
    assert outcomes() == [("failed", "delivered", 2)]


def test_two_senders_make_one_call(desk: Desk, receiver: Receiver) -> None:
    register(desk, receiver.url)
    for number in range(3):
        ended(desk, f"e-{number}")
    in_threads(4, lambda _: send())
    assert len(receiver.heard) == len({heard.id for heard in receiver.heard}) == 3


def test_only_the_newest_state_is_sent_where_several_wait(desk: Desk, receiver: Receiver) -> None:
    register(desk, receiver.url)
    desk.till.stages["judge"] = ASK
    run = start(desk)
    desk.advance()
    cancel_run(tenant_id=desk.tenant.pk, run_id=run.pk, reason="enough", by=AGENT, clock=db_clock)
    assert outcomes() == [("waiting_for_data", "superseded", 0), ("cancelled", "pending", 0)]
    send()
    assert [heard.data["status"] for heard in receiver.heard] == ["cancelled"]


def test_a_newer_state_does_not_overtake_one_that_is_under_way(desk: Desk, receiver: Receiver) -> None:
    register(desk, receiver.url)
    desk.till.stages["judge"] = ASK
    run = start(desk)
    desk.advance()
    claimed = claim_calls(by=BY, clock=db_clock)
    cancel_run(tenant_id=desk.tenant.pk, run_id=run.pk, reason="enough", by=AGENT, clock=db_clock)
    assert (send(), outcomes()[1]) == (0, ("cancelled", "pending", 0))
    make_calls(claimed, by=BY, clock=db_clock)  # the first answer comes
    assert outcomes()[0] == ("waiting_for_data", "superseded", 1)
    assert send() == 1
    assert [call[1:] for call in outcomes()] == [("superseded", 1), ("delivered", 1)]


def test_what_was_written_while_its_destination_ended_is_given_up(desk: Desk, receiver: Receiver) -> None:
    _, endpoint = register(desk, receiver.url)
    ended(desk)
    CallbackEndpoint.objects.update(deactivated_at=db_clock())
    assert (send(), outcomes()) == (0, [("failed", "dead", 0)])
    assert receiver.heard == []
    assert endpoint.pk == CallbackCall.objects.get().endpoint_id


# -- whose it is -------------------------------------------------------------------------------------------------


def test_a_destination_is_its_tenants_alone(desk: Desk, receiver: Receiver) -> None:
    register_callback(
        tenant_id=make_tenant("reef").pk, name="theirs", url=receiver.url, by=CONSOLE, clock=db_clock
    )
    for given in ("theirs", receiver.url, "https://evil.example/"):
        with pytest.raises(CallbackNotRegistered):
            start(desk, callback=given)
    assert not Run.objects.exists()
    mine, _ = register(desk, receiver.url)  # the same address, with a secret of its own
    ended(desk, callback=receiver.url)
    send()
    assert [heard.signed_with(mine) for heard in receiver.heard] == [True]


def test_a_name_and_an_address_are_taken_once_and_what_ended_never_comes_back(desk: Desk) -> None:
    url = "https://crm.example/placet"
    _, endpoint = register(desk, url)
    for other in ({"url": "https://other.example/"}, {"url": url, "name": "crm2"}):
        with pytest.raises(CallbackTaken):
            register(desk, **other)
    deactivate_callback(endpoint=endpoint, by=CONSOLE, clock=db_clock, reason="moved")
    deactivate_callback(endpoint=endpoint, by=CONSOLE, clock=db_clock)
    assert kinds("callback_endpoint") == ["callback_endpoint.created", "callback_endpoint.deactivated"]
    with pytest.raises(CallbackEnded):
        rotate_callback_secret(endpoint=endpoint, overlap=timedelta(0), by=CONSOLE, clock=db_clock)
    with pytest.raises(CallbackTaken):
        register(desk, "https://third.example/")
    register(desk, url, "crm2")


def test_the_time_is_the_databases(desk: Desk, receiver: Receiver) -> None:
    """The clock is asked for anew in each transaction, and what is due is compared with it."""
    register(desk, receiver.url)
    ended(desk)
    asked: list[datetime] = []

    def clock() -> datetime:
        asked.append(db_clock())
        return asked[-1]

    send(clock)
    assert len(asked) >= 3
    assert isinstance(receiver.heard[0], Heard)
