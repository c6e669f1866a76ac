"""What is alike: one meaning for the queue that puts it together and for the list in which it is decided."""

import re
from datetime import timedelta
from typing import Annotated, Any

import pytest
from django.test import Client

from access.models import User
from approvals.alike import shape_of
from approvals.models import Claim, Proposal
from approvals.shown import view_of
from approvals.viewdoc import ViewDocument, ViewEvidence, ViewRow, build_view
from common.fields import Arguments, ChoiceType, Currency, Identifier, Money, arg
from common.ids import new_id
from common.models import Tenant
from tests import factories, rows
from tests.workflows.conftest import Desk
from tests.workflows.conftest import desk as toy

__all__ = ["toy"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse")


@pytest.fixture
def desk(client: Client, reviewer: User) -> Client:
    client.force_login(reviewer)
    return client


class Paid(Arguments):
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    order: Identifier = arg(label="Order", data_class="business")
    why: Annotated[str, ChoiceType(("damaged", "late"))] = arg(label="Why", data_class="business")
    note: Identifier | None = arg(None, label="Note", data_class="business")


ONE: dict[str, Any] = {"amount": "12.50", "currency": "EUR", "order": "order:1", "why": "late", "note": None}


def view(**said: Any) -> ViewDocument:
    arguments = Paid.normalize(ONE | said).material
    return build_view(
        operation="refunds.issue", operation_version=1, contract_digest="0" * 64, headline="Refund",
        consequence="Money goes back.", schema=Paid, arguments=arguments,
    )  # fmt: skip


def proposal(tenant: Tenant, **fields: Any) -> Proposal:
    run = rows.run_row(tenant)
    return rows.proposal_row(run, rows.step_row(run), **fields)


def shape(tenant: Tenant, said: dict[str, Any] | None = None, **fields: Any) -> str:
    return shape_of(proposal(tenant, **fields), view(**(said or {})))


@pytest.mark.parametrize("said", [{"amount": "900.00"}, {"order": "order:2"}])
def test_amounts_and_names_may_differ(tenant: Tenant, said: dict[str, Any]) -> None:
    assert shape(tenant, said) == shape(tenant)


@pytest.mark.parametrize("said", [{"currency": "USD"}, {"why": "damaged"}, {"note": "x"}])
def test_what_is_chosen_or_is_there_counts(tenant: Tenant, said: dict[str, Any]) -> None:
    assert shape(tenant, said) != shape(tenant)


OTHER: list[dict[str, Any]] = [
    {"workflow": "other"}, {"operation": "refunds.void"}, {"operation_version": 9}, {"mode": "shadow"}, {"needed": 2},
    {"risk": 2}, {"warning_count": 1}, {"supersedes_id": new_id()}, {"group_id": new_id()},
    {"policy": {"rule": "other", "version": 1}}, {"policy": {"rule": "refund.limit", "version": 2}},
]  # fmt: skip


@pytest.mark.parametrize("fields", OTHER, ids=lambda fields: next(iter(fields)))
def test_what_is_asked_of_whom_counts(tenant: Tenant, fields: dict[str, Any]) -> None:
    assert shape(tenant, **fields) != shape(tenant)


@pytest.mark.parametrize(
    "shown",
    [
        {"bound": (ViewRow(label="Order today", text="open"),)},
        {"unbound": (ViewRow(label="Said", text="please"),)},
        {"evidence": (ViewEvidence(kind="mail", title="m", source="s", captured_at="now", digest="0"),)},
    ],
    ids=["bound", "unbound", "evidence"],
)
def test_what_stands_beside_the_arguments_counts(tenant: Tenant, shown: dict[str, Any]) -> None:
    made = proposal(tenant)
    assert shape_of(made, view().model_copy(update=shown)) != shape_of(made, view())


def test_another_organisation_has_other_marks(tenant: Tenant) -> None:
    assert shape(factories.make_tenant("other")) != shape(tenant)


def test_it_is_stored_when_a_proposal_is_made(toy: Desk) -> None:
    made = toy.proposed()
    assert made.shape == shape_of(made, view_of(made))


# -- the queue and the list say the same ---------------------------------------------------------------------------


def refunds(tenant: Tenant, *orders: int, **fields: Any) -> list[Proposal]:
    return [
        factories.make_proposal(tenant=tenant, arguments=dict(rows.REFUND) | {"order": str(order)}, **fields)
        for order in orders
    ]


def queue_says(client: Client, like: Proposal) -> set[int]:
    """How many are alike: by a row of the queue, by the row for all of them, and by the list of its kind."""
    by_row = re.search(r"(\d+) alike</a>", client.get("/review/").content.decode())
    for_all = re.search(r"(\d+) alike, such as", client.get("/review/?by=alike").content.decode())
    kind = re.search(r"<p>(\d+) waiting", client.get("/review/", {"alike": like.shape}).content.decode())
    assert by_row is not None
    assert for_all is not None
    assert kind is not None
    return {int(by_row[1]), int(for_all[1]), int(kind[1])}


def list_says(client: Client, like: Proposal) -> tuple[int, int, str]:
    """How many wait, how many stand in the list, and where the others are."""
    page = client.get(f"/review/{like.pk}/alike/").content.decode()
    told = re.search(
        r"In all (\d+) of this kind wait\.(?: Not here: ([^<]*)\.)?<", page.replace("waits.", "wait.")
    )
    assert told is not None
    return int(told[1]), page.count('name="chosen"'), told[2] or ""


def test_the_queue_and_the_list_count_the_same(desk: Client, tenant: Tenant) -> None:
    like, *_ = refunds(tenant, 1, 2, 3)
    refunds(tenant, 4, risk=2)
    assert queue_says(desk, like) == {3}
    assert list_says(desk, like) == (3, 3, "")


def test_the_list_says_where_the_others_are(desk: Client, tenant: Tenant, reviewer: User) -> None:
    like, read, _ = refunds(tenant, 1, 2, 3)
    refunds(tenant, 4, excluded_users=[reviewer.pk])
    other = factories.make_user(tenant, "noor")
    Claim.objects.create(
        tenant=tenant, proposal=read, user=other, since=rows.now(), until=rows.now() + timedelta(minutes=5)
    )
    assert queue_says(desk, like) == {4}
    others = "1 not for you to decide, 1 held by somebody, asked about, or like one that was rejected"
    assert list_says(desk, like) == (4, 2, others)


def test_a_mark_that_somebody_copied_puts_nothing_into_the_list(desk: Client, tenant: Tenant) -> None:
    """What stands in the list is looked at itself: the stored mark is bound by nobody."""
    [like] = refunds(tenant, 1)
    refunds(tenant, 2, risk=3, shape=like.shape)
    refunds(tenant, 3, group=factories.make_group(tenant), shape=like.shape)
    assert list_says(desk, like)[1] == 1


def test_what_has_no_mark_is_alike_to_none(desk: Client, tenant: Tenant) -> None:
    first, _ = refunds(tenant, 1, 2, shape="")
    assert list_says(desk, first)[:2] == (1, 1)
