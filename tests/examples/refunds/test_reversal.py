"""The counter-action of a refund against the real provider: once, whole, in time, and found again by its key."""

from dataclasses import replace
from typing import Any

import pytest

from common.deadline import Deadline
from examples.refunds.arguments import ReversalArguments
from examples.refunds.operation import IssueRefund
from examples.refunds.policy import ReversalPolicy
from examples.refunds.reversal import ReverseRefund
from tests.examples.refunds.conftest import RunningProvider, Seen
from tests.examples.refunds.shop import Shop
from workflows.classify import Meaning, Observation, classify
from workflows.operations import Call, OperationRefused, Site

OPERATION = ReverseRefund()


def refunded(provider: RunningProvider, key: str, amount: str = "10.00") -> dict[str, Any]:
    """A refund of a fresh order, as the body that calls it back."""
    order = provider.new_order()
    made = provider.refund(order, amount, key).json
    return {"refund": made["id"], "order": order, "amount": amount, "currency": "EUR"}


def reverse(provider: RunningProvider, body: dict[str, Any], key: str, **headers: str) -> Seen:
    return provider.call("POST", "/reversals", body, Idempotency_Key=key, **headers)


def meaning(seen: Seen) -> Meaning:
    body = seen.json
    reference = str(body.get("id", "")) if seen.status < 300 else ""
    observed = Observation(sent=True, status=seen.status, code=body.get("code", ""), reference=reference)
    return classify(observed, ReverseRefund.outcomes)


# -- the provider ---------------------------------------------------------------------------------------------------


def test_a_refund_is_called_back_once_and_the_journal_knows(provider: RunningProvider) -> None:
    body = refunded(provider, "undo-a")
    seen = reverse(provider, body, "undo-a-back")
    assert (seen.status, seen.json["refund"], meaning(seen)) == (201, body["refund"], Meaning.CONFIRMED)
    again = reverse(provider, body, "undo-a-back")
    assert (again.json, again.headers["idempotent-replayed"]) == (seen.json, "true")
    assert provider.deliveries("undo-a-back") == (2, 1)
    order = provider.call("GET", f"/orders/{body['order']}")
    assert (order.json["refunded"], order.json["remaining"]) == ("0.00", "100.00")
    [refund] = order.json["refunds"]
    assert (refund["status"], refund["reversal"]) == ("reversed", seen.json["id"])
    assert order.headers["etag"] == f'"{body["order"]}-v3"'
    assert provider.call("GET", "/reversals?key=undo-a-back").json["reversals"] == [seen.json]


@pytest.mark.parametrize(
    ("status", "code", "changes"),
    [
        (404, "unknown_refund", {"refund": "re_999998"}),
        (404, "unknown_refund", {"order": "9001"}),
        (422, "amount_mismatch", {"amount": "9.99"}),
        (422, "amount_mismatch", {"currency": "USD"}),
        (422, "invalid_request", {"refund": ""}),
    ],
)
def test_a_definite_no_has_no_effect(
    provider: RunningProvider, status: int, code: str, changes: dict[str, str]
) -> None:
    key = f"undo-{code}-{'-'.join(changes)}"
    seen = reverse(provider, refunded(provider, f"{key}-first") | changes, key)
    assert (seen.status, seen.json["code"], meaning(seen)) == (status, code, Meaning.REFUSED)
    assert provider.deliveries(key) == (1, 0)


def test_not_twice_not_late_and_not_on_another_version(provider: RunningProvider) -> None:
    body = refunded(provider, "undo-b")
    stale = reverse(provider, body, "undo-b-stale", If_Match='"some-other-version"')
    assert (stale.status, stale.json["code"]) == (412, "stale_order")
    assert reverse(provider, body, "undo-b-back").status == 201
    second = reverse(provider, body, "undo-b-second")
    assert (second.status, second.json["code"], meaning(second)) == (409, "already_reversed", Meaning.REFUSED)
    late = provider.call("GET", "/orders/9004").json["refunds"][0]
    paid = {"refund": late["id"], "order": "9004", "amount": late["amount"], "currency": "EUR"}
    seen = reverse(provider, paid, "undo-late")
    assert (seen.status, seen.json["code"], meaning(seen)) == (422, "paid_out", Meaning.REFUSED)
    assert provider.deliveries("undo-b-second") == provider.deliveries("undo-late") == (1, 0)


def test_another_tenant_cannot_call_it_back(provider: RunningProvider) -> None:
    body = refunded(provider, "undo-c")
    seen = provider.call("POST", "/reversals", body, key="other-provider-key", Idempotency_Key="undo-c-back")
    assert (seen.status, seen.json["code"]) == (404, "unknown_refund")


def test_a_key_that_comes_with_another_body_is_told(provider: RunningProvider) -> None:
    first, second = refunded(provider, "undo-d"), refunded(provider, "undo-e")
    assert reverse(provider, first, "undo-d-back").status == 201
    seen = reverse(provider, second, "undo-d-back")
    assert meaning(seen) is Meaning.KEY_REUSED
    assert provider.deliveries("undo-d-back") == (2, 1)


def test_what_is_called_back_may_be_refunded_anew(provider: RunningProvider) -> None:
    body = refunded(provider, "undo-f", "100.00")
    assert provider.refund(body["order"], "1.00", "undo-f-more").json["code"] == "exceeds_paid"
    assert reverse(provider, body, "undo-f-back").status == 201
    assert provider.refund(body["order"], "100.00", "undo-f-again").status == 201


# -- the operation --------------------------------------------------------------------------------------------------


def call(shop: Shop, body: dict[str, Any]) -> Call[ReversalArguments]:
    tenant = shop.tenants["harbour"]
    return Call(
        site=Site(tenant.pk, tenant.slug), arguments=ReversalArguments.model_validate(body),
        idempotency_key=f"undo-call-{body['refund']}", pins={}, deadline=Deadline.after(5),
    )  # fmt: skip


@pytest.mark.django_db
def test_it_is_sent_and_looked_up_by_its_key(shop: Shop) -> None:
    asked = call(shop, refunded(shop.provider, "undo-g"))
    assert OPERATION.reconcile(asked).finding == "not_found"
    made = OPERATION.execute(asked)
    found = OPERATION.reconcile(asked)
    assert (found.finding, found.reference, made.status) == ("happened", made.reference, 201)
    assert OPERATION.earlier_effects(asked.site, asked.arguments) == (made.reference,)
    other = replace(asked, arguments=call(shop, refunded(shop.provider, "undo-h")).arguments)
    assert OPERATION.reconcile(other).finding == "no_answer"


@pytest.mark.django_db
def test_nobody_is_asked_about_what_the_provider_would_refuse(shop: Shop) -> None:
    body = refunded(shop.provider, "undo-i")
    for changes, code in (
        ({"refund": "re_999997"}, "unknown_refund"),
        ({"amount": "1.00"}, "amount_mismatch"),
    ):
        asked = call(shop, body | changes)
        with pytest.raises(OperationRefused) as refused:
            OPERATION.check(asked.arguments, OPERATION.look(asked.site, asked.arguments))
        assert refused.value.code == code
    reverse(shop.provider, body, "undo-i-back")
    asked = call(shop, body)
    with pytest.raises(OperationRefused) as refused:
        OPERATION.check(asked.arguments, OPERATION.look(asked.site, asked.arguments))
    assert refused.value.code == "already_reversed"


@pytest.mark.parametrize(
    ("amount", "verdict", "group"), [("1.00", "ask_one", "Refund desk"), ("500.01", "ask_two", "Finance")]
)
def test_a_person_always_decides(amount: str, verdict: str, group: str) -> None:
    arguments = ReversalArguments.model_validate(
        {"order": "1", "refund": "re_1", "amount": amount, "currency": "EUR"}
    )
    judged = ReversalPolicy().judge(arguments, {})
    assert (judged.verdict, judged.group) == (verdict, group)


def test_the_refund_names_it_as_what_takes_it_back() -> None:
    assert IssueRefund.counter is ReverseRefund
    assert "called back" in IssueRefund.undo
