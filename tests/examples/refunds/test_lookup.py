"""What a look-up by key settles, against the real provider: only this very refund counts as *it happened*."""

from dataclasses import replace
from typing import Any

import pytest

from common.deadline import Deadline
from examples.refunds.arguments import RefundArguments
from examples.refunds.operation import IssueRefund
from tests.examples.refunds.shop import Shop
from workflows.operations import Call, Site

pytestmark = pytest.mark.django_db
OPERATION = IssueRefund()


def call(shop: Shop, **changes: Any) -> Call[RefundArguments]:
    values = {
        "order": "9001", "amount": "12.50", "currency": "EUR", "reason": "damaged",
        "receipt_to": "mara.lindqvist@example.com",
    }  # fmt: skip
    tenant = shop.tenants["harbour"]
    return Call(
        site=Site(tenant.pk, tenant.slug), arguments=RefundArguments.model_validate(values | changes),
        idempotency_key="A" * 52, pins={}, deadline=Deadline.after(5),
    )  # fmt: skip


def test_nothing_then_this_refund_then_another_under_the_same_key(shop: Shop) -> None:
    asked = call(shop)
    assert OPERATION.reconcile(asked).finding == "not_found"
    made = OPERATION.execute(asked)
    found = OPERATION.reconcile(asked)
    assert (found.finding, found.reference) == ("happened", made.reference)
    other = replace(asked, arguments=call(shop, amount="13.00").arguments)
    assert (OPERATION.reconcile(other).finding, OPERATION.reconcile(other).detail) == (
        "no_answer",
        "another refund stands under this key",
    )


def test_a_provider_without_look_up_says_so(shop: Shop) -> None:
    shop.provider.switch("blind")
    found = OPERATION.reconcile(call(shop))
    assert (found.finding, found.detail) == ("no_answer", "the provider cannot look this up")
