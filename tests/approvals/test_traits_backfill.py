"""What was proposed before traits were kept counts as history, too, once it was remembered."""

from datetime import timedelta
from io import StringIO
from typing import Annotated, Any

import pytest
from django.core.management import call_command

from approvals.actions_traits import remember_all, remember_some
from approvals.models import Proposal, Trait
from approvals.viewdoc import build_view
from common.fields import Arguments, Currency, Money, TextType, arg
from common.ids import id_at, new_id
from common.models import Tenant
from tests import factories, rows

pytestmark = pytest.mark.django_db


class Sent(Arguments):
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    note: Annotated[str, TextType(max_length=200)] = arg(label="Note", data_class="business")


def older(
    tenant: Tenant, days: int, *, status: str = "consumed", note: str = "see https://a.example/x"
) -> Proposal:
    view = build_view(
        operation="refunds.issue", operation_version=1, contract_digest="0" * 64, headline="Refund",
        consequence="Money goes back.", schema=Sent,
        arguments=Sent.normalize({"amount": "12.50", "currency": "EUR", "note": note}).material,
    )  # fmt: skip
    at = rows.now() - timedelta(days=days)
    return factories.make_proposal(
        tenant=tenant, at=at, view=view.to_bytes(), view_digest=view.digest, status=status,
    )  # fmt: skip


def kept() -> set[tuple[Any, str]]:
    return set(Trait.objects.values_list("proposal_id", "kind"))


def test_what_was_or_may_be_carried_out_is_remembered() -> None:
    tenants = [factories.make_tenant("one"), factories.make_tenant("two")]
    made = [
        older(tenant, days, status=status)
        for tenant in tenants
        for days, status in ((9, "pending"), (8, "pending"))
    ]
    older(tenants[0], 7, status="rejected")
    assert remember_all() == 4
    assert {pk for pk, _ in kept()} == {row.pk for row in made}
    assert {kind for _, kind in kept()} >= {"host", "amount"}
    trait = Trait.objects.get(proposal=made[0], kind="amount")
    assert (trait.tenant_id, trait.operation, trait.target) == (
        made[0].tenant_id,
        made[0].operation,
        made[0].target,
    )


def test_again_it_changes_nothing_and_batches_reach_the_end() -> None:
    tenant = factories.make_tenant()
    made = [older(tenant, days, status="pending") for days in (3, 1, 2)]
    place, count = remember_some(tenant.pk, limit=2)
    assert (place, count) == ((made[2].created_at, made[2].pk), 2)
    assert remember_some(tenant.pk, place, limit=2) == (None, 1)
    before = kept()
    assert remember_all() == 0
    assert kept() == before


def test_the_latest_is_still_what_was_made_last() -> None:
    tenant = factories.make_tenant()
    late, early = older(tenant, 1, status="pending"), older(tenant, 5, status="pending")
    remember_all()
    order = list(Trait.objects.filter(kind="amount").order_by("-id").values_list("proposal_id", flat=True))
    assert order == [late.pk, early.pk]


def test_one_that_cannot_be_read_keeps_no_other_from_its_turn() -> None:
    tenant = factories.make_tenant()
    factories.make_proposal(tenant=tenant, view=b"{}", view_digest="0" * 64)
    older(tenant, 1, status="pending")
    out = StringIO()
    call_command("traits", stdout=out)
    assert out.getvalue() == "Proposals whose traits are now kept: 1.\n"


def test_an_id_of_earlier_stands_before_those_of_now() -> None:
    then = rows.now() - timedelta(seconds=5)
    assert id_at(then) < id_at(then + timedelta(milliseconds=2)) < new_id()
    assert id_at(then).version == 7
