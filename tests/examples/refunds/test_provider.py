"""The provider when it behaves: orders, keys, refunds once per key, look-ups, journal, durability."""

import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from examples.refunds.provider.money import InvalidAmount, to_minor, to_text
from examples.refunds.provider.seed import last_noon
from tests.examples.refunds.conftest import ROOT, RunningProvider, start_provider, stop_provider


def test_it_says_when_it_is_ready(provider: RunningProvider) -> None:
    assert provider.call("GET", "/healthz").json == {"status": "ok"}


def test_an_order_with_its_etag(provider: RunningProvider) -> None:
    seen = provider.call("GET", "/orders/9004")
    order = seen.json
    assert (seen.status, seen.headers["etag"]) == (200, '"9004-v1"')
    assert (order["paid"], order["refunded"], order["remaining"]) == ("80.00", "30.00", "50.00")
    assert [refund["amount"] for refund in order["refunds"]] == ["30.00"]
    again = provider.call("GET", "/orders/9004", If_None_Match='"9004-v1"')
    assert (again.status, again.raw) == (304, b"")


@pytest.mark.parametrize(
    ("order", "currency", "paid", "status"),
    [
        ("9001", "EUR", "49.90", "delivered"),
        ("9003", "EUR", "25.00", "refunded"),
        ("9007", "JPY", "5400", "delivered"),
        ("9008", "KWD", "12.750", "delivered"),
        ("9010", "EUR", "0.00", "cancelled"),
        ("1001", "EUR", "5.00", "delivered"),
        ("1400", "KWD", None, "delivered"),
    ],
)
def test_seed_orders(
    provider: RunningProvider, order: str, currency: str, paid: str | None, status: str
) -> None:
    found = provider.call("GET", f"/orders/{order}").json
    assert (found["currency"], found["status"]) == (currency, status)
    assert paid in (None, found["paid"])
    assert sum(to_minor(item["price"], currency) * item["quantity"] for item in found["items"]) == to_minor(
        found["paid"], currency
    )


def test_a_customer(provider: RunningProvider) -> None:
    assert provider.call("GET", "/customers/c-7").json["name"] == "temp org mail"
    assert provider.call("GET", "/customers/c-6").json["status"] == "blocked"
    assert provider.call("GET", "/customers/c-999").status == 404


@pytest.mark.parametrize(
    ("key", "status", "code"),
    [
        ("nobody", 401, "invalid_key"),
        ("expired-provider-key", 401, "key_expired"),
        ("revoked-provider-key", 403, "key_revoked"),
    ],
)
def test_keys_that_open_nothing(provider: RunningProvider, key: str, status: int, code: str) -> None:
    seen = provider.call("GET", "/orders/9001", key=key)
    assert (seen.status, seen.json["code"]) == (status, code)


def test_tenants_do_not_see_each_other(provider: RunningProvider) -> None:
    assert provider.call("GET", "/orders/9001", key="other-provider-key").json["customer"] == "o-1"
    assert provider.call("GET", "/orders/9002", key="other-provider-key").status == 404
    assert provider.call("GET", "/orders/9101").status == 404
    provider.refund("9002", "1.00", "tenants-1", currency="USD")
    assert provider.call("GET", "/refunds?key=tenants-1").json["refunds"]
    assert provider.call("GET", "/refunds?key=tenants-1", key="other-provider-key").json == {"refunds": []}


def test_a_key_revoked_while_running(provider: RunningProvider) -> None:
    provider.call("PUT", "/_admin/keys", {"passing-key": "demo"})
    assert provider.call("GET", "/orders/9001", key="passing-key").status == 200
    provider.call("PUT", "/_admin/keys", {"passing-key": {"revoked": True}})
    assert provider.call("GET", "/orders/9001", key="passing-key").status == 403


def test_a_refund_changes_the_order(provider: RunningProvider) -> None:
    order = provider.new_order()
    seen = provider.refund(order, "40.00", "plain-1", If_Match=f'"{order}-v1"')
    assert seen.status == 201
    assert seen.json["id"].startswith("re_")
    after = provider.call("GET", f"/orders/{order}")
    assert (after.json["remaining"], after.headers["etag"]) == ("60.00", f'"{order}-v2"')
    assert provider.call("GET", f"/orders/{order}/refunds").json == {"refunds": [seen.json]}
    assert provider.call("GET", f"/refunds?order={order}").json == {"refunds": [seen.json]}
    assert provider.call("GET", "/refunds?key=plain-1").json == {"refunds": [seen.json]}


def test_the_same_key_and_body_gets_the_same_answer(provider: RunningProvider) -> None:
    order = provider.new_order()
    first = provider.refund(order, "60.00", "same-1", If_Match=f'"{order}-v1"')
    again = provider.refund(order, "60.00", "same-1", If_Match=f'"{order}-v1"')
    assert (again.status, again.raw) == (first.status, first.raw)
    assert again.headers["idempotent-replayed"] == "true"
    assert provider.deliveries("same-1") == (2, 1)


def test_the_same_key_with_another_body_is_refused(provider: RunningProvider) -> None:
    order = provider.new_order()
    provider.refund(order, "10.00", "reused-1")
    seen = provider.refund(order, "20.00", "reused-1")
    assert (seen.status, seen.json["code"]) == (422, "idempotency_key_reused")
    assert provider.deliveries("reused-1") == (2, 1)


def test_many_at_once_under_one_key_act_once(provider: RunningProvider) -> None:
    order = provider.new_order()
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: provider.refund(order, "5.00", "race-1"), range(24)))
    assert {one.raw for one in seen} == {seen[0].raw}
    assert provider.deliveries("race-1") == (24, 1)


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"amount": "100.01"}, 422, "exceeds_paid"),
        ({"amount": "0.00"}, 422, "invalid_amount"),
        ({"amount": "10"}, 422, "invalid_amount"),
        ({"amount": "10.000"}, 422, "invalid_amount"),
        ({"amount": "-1.00"}, 422, "invalid_amount"),
        ({"amount": "１.00"}, 422, "invalid_amount"),
        ({"amount": 10.0}, 422, "invalid_request"),
        ({"currency": "USD"}, 422, "currency_mismatch"),
        ({"order": "nowhere"}, 404, "unknown_order"),
        ({"order": "9010"}, 422, "not_refundable"),
        ({"reason": ""}, 422, "invalid_request"),
        ({"more": "x"}, 422, "invalid_request"),
    ],
)
def test_refusals_are_journaled_and_change_nothing(
    provider: RunningProvider, changes: dict[str, object], status: int, code: str
) -> None:
    order = provider.new_order()
    body = {"order": order, "amount": "10.00", "currency": "EUR", "reason": "late"} | changes
    seen = provider.call("POST", "/refunds", body, Idempotency_Key=f"refused-{order}")
    assert (seen.status, seen.json["code"]) == (status, code)
    assert provider.deliveries(f"refused-{order}") == (1, 0)
    assert provider.call("GET", f"/orders/{order}").headers["etag"] == f'"{order}-v1"'


def test_a_stale_order_and_a_missing_key_are_refused(provider: RunningProvider) -> None:
    order = provider.new_order()
    assert provider.call("POST", "/_admin/orders", {"id": order, "status": "shipped"}).status == 200
    seen = provider.refund(order, "10.00", "stale-1", If_Match=f'"{order}-v1"')
    assert (seen.status, seen.json["code"], seen.json["etag"]) == (412, "stale_order", f'"{order}-v2"')
    body = {"order": order, "amount": "1.00", "currency": "EUR", "reason": "late"}
    assert provider.call("POST", "/refunds", body).json["code"] == "idempotency_key_required"


def test_a_message_is_sent_once_per_key(provider: RunningProvider) -> None:
    body = {"to": "mara.lindqvist@example.com", "subject": "Your refund", "text": "It is on its way."}
    first = provider.call("POST", "/messages", body, Idempotency_Key="mail-1")
    again = provider.call("POST", "/messages", body, Idempotency_Key="mail-1")
    assert (first.status, first.raw) == (201, again.raw)
    assert provider.call("GET", "/messages?key=mail-1").json == {"messages": [first.json]}
    assert provider.deliveries("mail-1") == (2, 1)


def test_the_journal_has_every_arrival_with_its_first_byte(provider: RunningProvider) -> None:
    order = provider.new_order()
    before = time.time()
    provider.refund(order, "1.00", "journal-1")
    provider.refund(order, "1.00", "journal-1")
    rows = provider.call("GET", "/_admin/journal?key=journal-1").json["arrivals"]
    assert [(row["effect"], row["status"], row["path"]) for row in rows] == [
        (True, 201, "/refunds"),
        (False, 201, "/refunds"),
    ]
    assert rows[0]["body_hash"] == rows[1]["body_hash"]
    assert rows[0]["ref"].startswith("re_")
    first, second = (datetime.fromisoformat(row["first_byte_at"]).timestamp() for row in rows)
    assert before <= first <= second <= time.time()
    assert datetime.fromisoformat(rows[0]["effect_at"]).timestamp() >= first


def test_half_a_request_is_in_the_journal(provider: RunningProvider) -> None:
    with socket.create_connection(("127.0.0.1", provider.port)) as sock:
        head = (
            "POST /refunds HTTP/1.1\r\nAuthorization: Bearer demo-provider-key\r\nIdempotency-Key: half-1\r\n"
        )
        sock.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    for _ in range(50):
        rows = provider.call("GET", "/_admin/journal?key=half-1").json["arrivals"]
        if rows:
            break
        time.sleep(0.02)
    assert [(row["effect"], row["fault"]) for row in rows] == [(False, "incomplete_request")]


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"POST /refunds HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST /refunds HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"413"),
        (b"POST /refunds HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 40_000, b"431"),
    ],
)
def test_requests_that_are_not_understood(provider: RunningProvider, raw: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", provider.port), timeout=5) as sock:
        sock.sendall(raw)
        assert sock.recv(1000).split(b" ")[1] == status


def test_a_restart_keeps_what_happened(tmp_path: Path) -> None:
    provider = start_provider(tmp_path, "--orders", "5")
    first = provider.refund("1001", "2.00", "kept-1")
    assert provider.call("GET", "/orders/1006").status == 404
    provider.process.send_signal(signal.SIGKILL)
    with provider.process:
        provider.process.wait(5)
    again = start_provider(tmp_path, "--orders", "5")
    assert again.refund("1001", "2.00", "kept-1").raw == first.raw
    assert again.deliveries("kept-1") == (2, 1)
    assert stop_provider(again) == 0


def test_keys_from_a_file(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"mine": "demo", "gone": {"tenant": "demo", "revoked": True}}))
    provider = start_provider(tmp_path / "data", "--keys", str(keys), "--orders", "1")
    assert provider.call("GET", "/orders/9001", key="mine").status == 200
    assert provider.call("GET", "/orders/9001", key="gone").status == 403
    assert provider.call("GET", "/orders/9001").status == 401
    assert stop_provider(provider) == 0


def test_it_needs_nothing_but_python() -> None:
    # -S leaves out every installed package, Django included.
    command = [sys.executable, "-S", "-m", "examples.refunds.provider", "--help"]
    seen = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (seen.returncode, seen.stderr) == (0, "")
    assert "--data" in seen.stdout


def test_it_stops_at_once_with_idle_connections_open(tmp_path: Path) -> None:
    provider = start_provider(tmp_path, "--orders", "1")
    with socket.create_connection(("127.0.0.1", provider.port)) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 200")
        started = time.monotonic()
        assert stop_provider(provider) == 0
        assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("text", "currency", "minor"), [("0.05", "EUR", 5), ("5400", "JPY", 5400), ("0.001", "KWD", 1)]
)
def test_amounts_keep_their_scale(text: str, currency: str, minor: int) -> None:
    assert to_minor(text, currency) == minor
    assert to_text(minor, currency) == text


@pytest.mark.parametrize(
    ("text", "currency"), [("1", "EUR"), ("1.0", "JPY"), ("01.00", "EUR"), ("1.00\n", "EUR"), ("1.00", "XXX")]
)
def test_other_texts_are_no_amounts(text: str, currency: str) -> None:
    with pytest.raises(InvalidAmount):
        to_minor(text, currency)


def test_what_was_made_a_day_ago_is_a_day_old_at_every_hour() -> None:
    for hour in (0, 11, 12, 23):
        now = datetime(2026, 12, 1, hour, 59, tzinfo=UTC)
        assert timedelta(0) <= now - last_noon(now) < timedelta(days=1)
