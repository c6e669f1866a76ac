"""Incoming webhooks: nothing is believed that is not proven, and nothing proven has more than one effect.

Security list S18 and S19, field reports N1 and N3.
"""

import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from access.models import Agent
from audit.actors import clock_actor
from audit.models import Event
from common.clock import db_clock
from common.signed_webhooks import key_of, sign
from tests.api.callers import ROOT, refused
from tests.workflows.conftest import Desk, desk
from tests.workflows.together import in_threads
from workflows.actions.endpoints import create_endpoint, deactivate_endpoint, rotate_secret
from workflows.actions.hooks import MOST_TRIES, take_in_due
from workflows.models import Delivery, Endpoint, EndpointSecret, Run
from workflows.webhooks import Names, Scheme

__all__ = ["desk"]
pytestmark = pytest.mark.django_db


class Sender:
    """An outside system with the address and the secret of an endpoint."""

    def __init__(self, desk: Desk, **options: Any) -> None:
        from access.management.operator import at_the_console

        self.console = at_the_console()
        self.agent = Agent.objects.create(tenant=desk.tenant, name="helpdesk", acts_for=desk.ben)
        self.secret, self.endpoint = create_endpoint(
            agent=self.agent, name="tickets", workflow="toy-pay", system="helpdesk", by=self.console, clock=db_clock,
            **options,
        )  # fmt: skip

    def post(
        self, body: Any = None, *, identity: str = "msg_1", at: float | None = None, secret: str = "",
        address: str = "", signed: bytes | None = None, **headers: str,
    ) -> HttpResponse:  # fmt: skip
        raw = body if isinstance(body, bytes) else json.dumps(body or {"order": "1042"}).encode()
        stamp = int(db_clock().timestamp() if at is None else at)
        signature = sign(
            key_of(secret or self.secret), identity=identity, timestamp=stamp, body=signed or raw
        )
        sent = {"webhook-id": identity, "webhook-timestamp": str(stamp), "webhook-signature": signature}
        return self.send(raw, sent | headers, address)

    def send(self, raw: bytes, headers: dict[str, str], address: str = "") -> HttpResponse:
        url = f"{ROOT}/hooks/{address or self.endpoint.address}"
        return Client().post(url, raw, content_type="application/json", headers=headers)


@pytest.fixture
def sender(desk: Desk) -> Sender:
    return Sender(desk)


def take_in(clock: Any = db_clock) -> int:
    return take_in_due(by=clock_actor("test"), clock=clock)


def kinds(thing: str) -> list[str]:
    return list(
        Event.objects.filter(kind__startswith=thing).order_by("at", "id").values_list("kind", flat=True)
    )


# -- proven, stored, answered; worked on later ----------------------------------------------------------------


def test_a_proven_webhook_is_stored_and_answered_and_becomes_a_run_later(sender: Sender) -> None:
    answer = sender.post()
    delivery = Delivery.objects.get()
    assert (answer.status_code, answer.json()) == (202, {"delivery_id": str(delivery.pk)})
    assert not Run.objects.exists()
    assert bytes(delivery.body or b"").count(b"1042") == 0
    assert delivery.raw_body() == b'{"order": "1042"}'
    assert take_in() == 1
    run = Run.objects.get()
    delivery.refresh_from_db()
    assert (delivery.outcome, delivery.run_id) == ("accepted", run.pk)
    assert (run.source_system, run.source_event_id, run.requested_by) == ("helpdesk", "msg_1", "api:helpdesk")
    assert run.excluded_users == [str(sender.agent.acts_for_id)]
    assert kinds("delivery") == ["delivery.received", "delivery.accepted"]
    assert take_in() == 0


def test_a_second_delivery_gets_the_same_answer_and_has_no_effect(sender: Sender) -> None:
    """Invariant of the list S19: the id is unique in PostgreSQL, whatever Redis forgot, and for ever."""
    first = sender.post()
    take_in()
    for _ in range(3):
        again = sender.post()
        assert (again.status_code, again.content) == (first.status_code, first.content)
    assert (Delivery.objects.get().repeats, take_in(), Run.objects.count()) == (3, 0, 1)


def test_deliveries_at_the_same_time_are_one(sender: Sender) -> None:
    answers = in_threads(8, lambda _: sender.post())
    assert {(answer.status_code, answer.content) for answer in answers} == {(202, answers[0].content)}
    assert (Delivery.objects.count(), Delivery.objects.get().repeats) == (1, 7)


def test_the_same_id_with_another_body_is_a_conflict_that_is_counted(sender: Sender) -> None:
    sender.post()
    details = refused(sender.post({"order": "6666"}), 422, "event_conflict")
    delivery = Delivery.objects.get()
    assert details == {"delivery_id": str(delivery.pk)}
    assert (delivery.conflicts, delivery.raw_body()) == (1, b'{"order": "1042"}')


# -- not proven -----------------------------------------------------------------------------------------------


def bad(answer: HttpResponse) -> str:
    """What a refused sender is told, without what differs by nature."""
    assert refused(answer, 401, "hook_refused") == {}
    document = answer.json()
    return json.dumps(
        {name: document[name] for name in ("type", "title", "detail", "status", "code", "details")}
    )


def test_whatever_is_wrong_is_refused_in_the_same_words_and_nothing_is_stored(sender: Sender) -> None:
    now = db_clock().timestamp()
    raw = b'{"order": "1042"}'
    stamped = {"webhook-id": "msg_1", "webhook-timestamp": str(int(now))}
    said = {
        bad(sender.post(address="A" * 43)),
        bad(sender.post(address="x" * 900)),
        bad(sender.post(secret="whsec_" + "A" * 44)),
        bad(sender.post(signed=b"{}")),
        bad(sender.post(at=now - 302)),
        bad(sender.post(at=now + 302)),
        bad(sender.post(identity="a.b")),
        bad(sender.post(identity="")),
        bad(sender.post(identity="x" * 191)),
        bad(sender.send(raw, {})),
        bad(sender.send(raw, stamped)),
        bad(sender.send(raw, stamped | {"webhook-signature": "v1,%%% v1a,AAAA v2,"})),
        bad(sender.post(**{"webhook-timestamp": "1e9"})),
        bad(sender.post(**{"webhook-timestamp": "١٢٣"})),
        bad(sender.post(**{"webhook-timestamp": "-1"})),
        bad(sender.post(**{"webhook-id": "msg_2"})),
    }
    assert len(said) == 1
    assert not Delivery.objects.exists()


def test_a_signature_counts_for_five_minutes_on_the_databases_clock(sender: Sender) -> None:
    now = db_clock().timestamp()
    assert sender.post(at=now - 297).status_code == 202
    assert sender.post(at=now + 297, identity="msg_2").status_code == 202


def test_an_attempt_that_proves_nothing_is_in_the_history_once_a_minute(sender: Sender) -> None:
    """Field report N3: audited; and who knows the address cannot fill the history with it."""
    for _ in range(5):
        sender.post(signed=b"{}")
    [event] = Event.objects.filter(kind="endpoint.delivery_refused")
    assert (event.subject_id, event.reason, event.tenant_id) == (
        sender.endpoint.pk, "signature", sender.endpoint.tenant_id,
    )  # fmt: skip


def test_the_body_is_not_read_before_it_is_proven_nor_when_it_is_too_long(sender: Sender) -> None:
    bad(sender.send(b"not json \xff", {}))
    refused(sender.post(b"x" * 262_145), 413, "too_large")
    refused(sender.post(**{"content-encoding": "gzip"}), 415, "unsupported_media_type")


def test_other_methods_are_refused(sender: Sender) -> None:
    answer = Client().get(f"{ROOT}/hooks/{sender.endpoint.address}")
    refused(answer, 405, "method_not_allowed")


# -- secrets --------------------------------------------------------------------------------------------------


def test_both_secrets_count_during_a_rotation_and_the_old_one_no_longer_afterwards(sender: Sender) -> None:
    new = rotate_secret(
        endpoint=sender.endpoint, overlap=timedelta(hours=1), by=sender.console, clock=db_clock
    )
    assert sender.post(identity="m1").status_code == 202
    assert sender.post(identity="m2", secret=new).status_code == 202
    rotate_secret(endpoint=sender.endpoint, overlap=timedelta(0), by=sender.console, clock=db_clock)
    bad(sender.post(identity="m3"))
    bad(sender.post(identity="m4", secret=new))
    take_in()
    assert EndpointSecret.objects.filter(sealed__isnull=False).count() == 1
    assert kinds("endpoint.secret") == ["endpoint.secret_rotated"] * 2


def test_a_message_with_the_signatures_of_both_keys_is_taken(sender: Sender) -> None:
    """Standard Webhooks: who rotates signs with both."""
    stamp, raw = int(db_clock().timestamp()), b'{"order": "1"}'
    other = "v1," + "A" * 43 + "="
    ours = sign(key_of(sender.secret), identity="m", timestamp=stamp, body=raw)
    headers = {
        "webhook-id": "m",
        "webhook-timestamp": str(stamp),
        "webhook-signature": f"{other} v1a,xx {ours}",
    }
    assert sender.send(raw, headers).status_code == 202


def test_secrets_lie_sealed_and_open_only_for_their_own_row(sender: Sender, desk: Desk) -> None:
    row = EndpointSecret.objects.get()
    assert sender.secret.encode() not in bytes(row.sealed or b"")
    assert row.key() == key_of(sender.secret)
    from common.sealing import CannotOpen

    other = EndpointSecret(tenant=desk.tenant, endpoint=sender.endpoint, sealed=row.sealed)
    with pytest.raises(CannotOpen):
        other.key()
    assert sender.secret not in json.dumps(list(Event.objects.values("body", "reason")))


def test_an_ended_endpoint_takes_nothing_and_forgets_its_secrets(sender: Sender) -> None:
    deactivate_endpoint(endpoint=sender.endpoint, by=sender.console, clock=db_clock, reason="gone")
    deactivate_endpoint(endpoint=sender.endpoint, by=sender.console, clock=db_clock)
    bad(sender.post())
    assert not EndpointSecret.objects.filter(sealed__isnull=False).exists()
    assert kinds("endpoint") == ["endpoint.created", "endpoint.deactivated"]


# -- a scheme of the sender's own ------------------------------------------------------------------------------


def test_a_plain_hmac_header_signs_time_and_body_and_the_body_is_its_id(desk: Desk) -> None:
    secret = "a-secret-that-the-sender-has-chosen"
    sender = Sender(desk, names=Names(Scheme.HMAC, "x-signature-256", "x-timestamp"), secret=secret)
    raw, stamp = b'{"order": "7"}', int(db_clock().timestamp())

    def headers(stamp: int, key: str = secret) -> dict[str, str]:
        signature = hmac.new(key.encode(), f"{stamp}.".encode() + raw, hashlib.sha256).hexdigest()
        return {"x-timestamp": str(stamp), "x-signature-256": f"sha256={signature}"}

    first = sender.send(raw, headers(stamp))
    again = sender.send(raw, headers(stamp + 1))
    assert (first.status_code, again.content) == (202, first.content)
    assert Delivery.objects.get().event_id == "sha256:" + hashlib.sha256(raw).hexdigest()
    bad(sender.send(raw, headers(stamp - 400)))
    bad(sender.send(raw, headers(stamp, "another secret of enough length")))
    bad(sender.send(raw, headers(stamp) | {"x-timestamp": str(stamp + 1)}))
    bad(sender.post(body=raw))


# -- poison ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"not json", "syntax"),
        (b'{"a": 1, "a": 2}', "duplicate_key"),
        (b"[1]", "top_level_not_object"),
        (b'{"order": {"x": 1}}', "invalid_input"),
        (b"[" * 100_000, "too_deep"),
    ],
)
def test_what_no_run_can_be_made_of_is_quarantined_with_its_reason(
    sender: Sender, raw: bytes, code: str
) -> None:
    assert sender.post(raw).status_code == 202
    sender.post(identity="good")
    assert take_in() == 2
    poison, good = Delivery.objects.order_by("received_at")
    assert (poison.outcome, poison.code, poison.run_id) == ("quarantined", code, None)
    assert good.outcome == "accepted"
    assert kinds("delivery.quarantined") == ["delivery.quarantined"]


def test_a_delivery_that_kills_its_worker_is_given_up_after_a_few_tries(sender: Sender) -> None:
    """Invariant I18: the try is counted before it is made."""
    sender.post()
    Delivery.objects.update(tries=MOST_TRIES)
    take_in()
    assert Delivery.objects.values_list("outcome", "code").get() == ("quarantined", "gave_up")


def test_an_event_that_came_another_way_before_is_found_and_not_made_twice(
    sender: Sender, desk: Desk
) -> None:
    from tests.workflows.conftest import AGENT
    from workflows.actions.runs import Source, start_run

    started = start_run(
        tenant_id=desk.tenant.pk, workflow="toy-pay", source=Source("helpdesk", "msg_1"), input={"order": "1042"},
        by=AGENT, clock=db_clock,
    )  # fmt: skip
    sender.post()
    take_in()
    delivery = Delivery.objects.get()
    assert (delivery.outcome, delivery.run_id, Run.objects.count()) == ("duplicate", started.run.pk, 1)


def test_a_workflow_that_is_not_installed_yet_is_tried_again(sender: Sender) -> None:
    Endpoint.objects.using("owner").update(workflow="comes-later")
    sender.post()
    assert take_in() == 0
    delivery = Delivery.objects.get()
    assert (delivery.outcome, delivery.tries) == (None, 1)
    Endpoint.objects.using("owner").update(workflow="toy-pay")
    assert take_in() == 0  # not due before its pause is over
    assert take_in(lambda: db_clock() + timedelta(minutes=2)) == 1


def test_an_automation_that_lost_its_person_starts_nothing(sender: Sender) -> None:
    sender.post()
    sender.agent.is_active = False
    sender.agent.save()
    take_in()
    assert Delivery.objects.values_list("outcome", "code").get() == ("quarantined", "not_a_member")
    assert not Run.objects.exists()


def test_the_input_may_be_one_member_of_the_body(desk: Desk) -> None:
    sender = Sender(desk, input_member="data")
    sender.post({"type": "ticket.created", "data": {"order": "9"}})
    sender.post({"type": "ticket.created"}, identity="m2")
    take_in()
    assert set(Delivery.objects.values_list("outcome", "code")) == {
        ("accepted", ""), ("quarantined", "top_level_not_object"),
    }  # fmt: skip
