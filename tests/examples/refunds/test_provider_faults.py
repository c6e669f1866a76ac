"""The provider when it misbehaves: what the product's own calls are told, and what really happened."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from common.deadline import Deadline
from common.outgoing import Answer, NoAnswer, NoAnswerKind, NotSent, NotSentKind, Outcome
from examples.refunds import client
from tests.examples.refunds.conftest import KEY, RunningProvider

Issue = Callable[..., Outcome]


@pytest.fixture
def api(provider: RunningProvider, settings: Settings) -> client.Provider:
    settings.OUTGOING_TRUSTED_HOSTS = [f"127.0.0.1:{provider.port}"]
    return client.Provider(provider.url, KEY)


@pytest.fixture
def issue(api: client.Provider, provider: RunningProvider) -> Issue:
    """Issue a refund of 10.00 on ``order`` under ``key``, within a second unless told otherwise."""

    def call(order: str, key: str, *, seconds: float = 1.0, if_match: str | None = None) -> Outcome:
        refund = client.Refund(order, "10.00", "EUR", "damaged")
        return client.issue_refund(api, refund, key=key, if_match=if_match, deadline=Deadline.after(seconds))

    return call


def until(condition: Callable[[], bool], seconds: float = 5) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_the_calls_of_the_client(api: client.Provider, provider: RunningProvider, issue: Issue) -> None:
    order, soon = provider.new_order(), Deadline.after(5)
    read = client.get_order(api, order, deadline=soon)
    assert isinstance(read, Answer)
    etag = read.headers["etag"]
    assert isinstance(issue(order, "client-1", if_match=etag), Answer)
    unchanged = client.get_order(api, order, deadline=soon, etag=f'"{order}-v2"')
    assert isinstance(unchanged, Answer)
    assert unchanged.status == 304
    stale = issue(order, "client-2", if_match=etag)
    assert isinstance(stale, Answer)
    assert stale.status == 412
    for outcome in (
        client.get_refunds(api, order, deadline=soon),
        client.lookup_refund(api, "client-1", deadline=soon),
    ):
        assert isinstance(outcome, Answer)
        assert outcome.body.count(b'"amount":"10.00"') == 1
    customer = client.get_customer(api, "c-5", deadline=soon)
    assert isinstance(customer, Answer)
    assert "Zoë Müller-Łukasik" in customer.body.decode()
    mail = client.Message("zoe@example.com", "Erstattung", "Schöne Grüße")
    sent = client.send_message(api, mail, key="client-mail", deadline=soon)
    found = client.lookup_message(api, "client-mail", deadline=soon)
    assert isinstance(sent, Answer)
    assert isinstance(found, Answer)
    assert (sent.status, found.body.count(b"msg_")) == (201, 1)


def test_ids_cannot_leave_their_place_in_the_path(api: client.Provider) -> None:
    for order in ("../_admin/journal", "9001/refunds", "9001?x=y", "9001#", "", "ü", "a b"):
        outcome = client.get_order(api, order, deadline=Deadline.after(5))
        assert isinstance(outcome, Answer)
        assert outcome.status == 404


def test_a_provider_that_is_not_there(settings: Settings) -> None:
    settings.OUTGOING_TRUSTED_HOSTS = ["127.0.0.1:9"]
    outcome = client.get_order(client.Provider("http://127.0.0.1:9", KEY), "1", deadline=Deadline.after(1))
    assert isinstance(outcome, NotSent)
    assert outcome.kind is NotSentKind.CONNECT


def test_a_provider_that_nobody_vouches_for(provider: RunningProvider, settings: Settings) -> None:
    settings.OUTGOING_TRUSTED_HOSTS = []
    outcome = client.get_order(client.Provider(provider.url, KEY), "9001", deadline=Deadline.after(1))
    assert isinstance(outcome, NotSent)
    assert outcome.kind is NotSentKind.ADDRESS


@pytest.mark.parametrize(
    ("rule", "kind", "effects"),
    [
        ({"fault": "accept_then_hang"}, NoAnswerKind.TIMEOUT, 1),
        ({"fault": "accept_then_hang", "execute": False}, NoAnswerKind.TIMEOUT, 0),
        ({"fault": "drop_connection"}, NoAnswerKind.RESET, 0),
        ({"fault": "drop_connection", "execute": True}, NoAnswerKind.RESET, 1),
        ({"fault": "half_body"}, NoAnswerKind.TRUNCATED, 1),
        ({"fault": "trickle"}, NoAnswerKind.TIMEOUT, 1),
        ({"fault": "flood"}, NoAnswerKind.OVERSIZED, 1),
        ({"fault": "delay", "seconds": 1.5}, NoAnswerKind.TIMEOUT, 1),
    ],
)
def test_no_answer(
    provider: RunningProvider, issue: Issue, rule: dict[str, Any], kind: NoAnswerKind, effects: int
) -> None:
    order = provider.new_order()
    key = f"no-answer-{order}"
    provider.switch("dedup", {**rule, "next": 1})
    started = time.monotonic()
    outcome = issue(order, key)
    assert time.monotonic() - started < 1.4
    assert isinstance(outcome, NoAnswer)
    assert outcome.kind is kind
    assert until(lambda: provider.deliveries(key) == (1, effects))
    assert isinstance(issue(order, key), Answer)
    assert provider.deliveries(key) == (2, 1)


@pytest.mark.parametrize(
    ("rule", "status", "effects"),
    [
        ({"fault": "status", "status": 429, "retry_after": 7}, 429, 0),
        ({"fault": "status", "status": 503}, 503, 0),
        ({"fault": "status", "status": 503, "execute": True}, 503, 1),
        ({"fault": "status", "status": 401}, 401, 0),
        ({"fault": "status", "status": 500, "execute": True}, 500, 1),
        ({"fault": "garbled"}, 201, 1),
        ({"fault": "other_document"}, 201, 1),
        ({"fault": "delay", "seconds": 0.2}, 201, 1),
    ],
)
def test_answers_of_another_kind(
    provider: RunningProvider, issue: Issue, rule: dict[str, Any], status: int, effects: int
) -> None:
    order = provider.new_order()
    provider.switch("dedup", rule)
    outcome = issue(order, f"other-{order}")
    assert isinstance(outcome, Answer)
    assert outcome.status == status
    assert outcome.headers.get("retry-after") == ("7" if status == 429 else None)
    assert provider.deliveries(f"other-{order}") == (1, effects)


def test_what_is_applied_late_happens_once_with_dedup(provider: RunningProvider, issue: Issue) -> None:
    order = provider.new_order()
    provider.switch("dedup", {"fault": "apply_late", "seconds": 0.8, "next": 1})
    assert isinstance(issue(order, "late-1", seconds=0.3), NoAnswer)
    assert provider.deliveries("late-1") == (1, 0)
    assert isinstance(issue(order, "late-1"), Answer)
    time.sleep(1.0)
    assert provider.deliveries("late-1") == (2, 1)


def test_what_is_applied_late_happens_twice_without(provider: RunningProvider, issue: Issue) -> None:
    order = provider.new_order()
    provider.switch("lookup_only", {"fault": "apply_late", "seconds": 0.6, "next": 1})
    assert isinstance(issue(order, "late-2", seconds=0.3), NoAnswer)
    assert isinstance(issue(order, "late-2"), Answer)
    assert until(lambda: provider.deliveries("late-2") == (2, 2))
    row = provider.call("GET", "/_admin/journal?key=late-2").json["arrivals"][0]
    assert (row["fault"], row["effect"]) == ("apply_late", True)
    assert row["effect_at"] > row["first_byte_at"]


def test_look_up_only_acts_twice_and_can_be_asked(provider: RunningProvider) -> None:
    order = provider.new_order()
    provider.switch("lookup_only")
    provider.refund(order, "10.00", "twice-1")
    provider.refund(order, "10.00", "twice-1")
    assert provider.deliveries("twice-1") == (2, 2)
    assert len(provider.call("GET", "/refunds?key=twice-1").json["refunds"]) == 2


def test_blind_acts_twice_and_cannot_be_asked(provider: RunningProvider) -> None:
    order = provider.new_order()
    provider.switch("blind")
    provider.refund(order, "10.00", "blind-1")
    provider.refund(order, "10.00", "blind-1")
    assert provider.deliveries("blind-1") == (2, 2)
    seen = provider.call("GET", "/refunds?key=blind-1")
    assert (seen.status, seen.json["code"]) == (501, "lookup_not_supported")
    assert "key" not in provider.call("GET", f"/orders/{order}").json["refunds"][0]


def test_a_look_up_that_lags(provider: RunningProvider) -> None:
    order = provider.new_order()
    provider.switch("dedup", lookup_lag_seconds=0.5)
    provider.refund(order, "10.00", "lag-1")
    assert provider.call("GET", "/refunds?key=lag-1").json == {"refunds": []}
    assert until(lambda: len(provider.call("GET", "/refunds?key=lag-1").json["refunds"]) == 1)


def test_rules_choose_their_requests(provider: RunningProvider) -> None:
    struck, spared = provider.new_order(), provider.new_order()
    provider.switch("dedup", {"fault": "status", "status": 503, "order": struck, "next": 2})
    assert [provider.refund(struck, "1.00", f"choose-{n}").status for n in range(3)] == [503, 503, 201]
    assert provider.refund(spared, "1.00", "choose-other").status == 201
    provider.switch("dedup", {"fault": "status", "status": 500, "key": "choose-key"})
    assert provider.refund(spared, "1.00", "choose-key").status == 500
    assert provider.refund(spared, "1.00", "choose-free").status == 201
    provider.switch("dedup", {"fault": "status", "status": 503, "on": "/orders", "order": struck})
    assert provider.call("GET", f"/orders/{struck}").status == 503
    assert provider.call("GET", f"/orders/{spared}").status == 200
    assert provider.call("GET", "/_admin/switches").json["rules"][0]["hits"] == 1


def test_a_share_is_the_same_choice_each_time(provider: RunningProvider) -> None:
    order = provider.new_order()
    seen = []
    for attempt in ("a", "b"):
        provider.switch("dedup", {"fault": "status", "status": 503, "share": 0.5, "seed": 4})
        seen.append([provider.refund(order, "0.01", f"share-{attempt}{n}").status for n in range(20)])
    assert seen[0] == seen[1]
    assert set(seen[0]) == {201, 503}


@pytest.mark.parametrize(
    "wanted",
    [
        {"mode": "other"},
        {"rules": [{"fault": "nothing"}]},
        {"rules": [{"fault": "delay", "hits": 3}]},
        {"a": 1},
        [],
    ],
)
def test_switches_that_do_not_exist_are_refused(provider: RunningProvider, wanted: object) -> None:
    assert provider.call("PUT", "/_admin/switches", wanted).status == 422


def test_a_rule_can_be_added_and_all_reset(provider: RunningProvider) -> None:
    provider.call("POST", "/_admin/switches", {"fault": "delay", "seconds": 0.1})
    assert provider.call("GET", "/_admin/switches").json["rules"][0]["fault"] == "delay"
    assert provider.call("DELETE", "/_admin/switches").json == {
        "mode": "dedup",
        "lookup_lag_seconds": 0.0,
        "rules": [],
    }


def test_orders_and_customers_can_be_changed(provider: RunningProvider) -> None:
    order = provider.new_order()
    changed = provider.call("POST", "/_admin/orders", {"id": order, "customer": "c-2"})
    assert (changed.json["customer"], changed.json["paid"], changed.headers["etag"]) == (
        "c-2",
        "100.00",
        f'"{order}-v2"',
    )
    customer = {"id": f"c-{order}", "name": "New", "email": "new@example.com"}
    assert provider.call("POST", "/_admin/customers", customer).status == 201
    assert (
        provider.call("POST", "/_admin/customers", {"id": f"c-{order}", "status": "blocked"}).json["name"]
        == "New"
    )
    assert (
        provider.call("POST", "/_admin/orders", {"id": "bad", "customer": "c", "currency": "XXX"}).status
        == 422
    )
    assert provider.call("POST", "/_admin/customers", {"id": "bad"}).status == 422
