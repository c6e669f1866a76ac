"""Deciding in one list: only what is alike and low, each for itself, on exactly what the list showed."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client, override_settings

from access.enums import Role
from access.models import User
from approvals.alike import LONGEST, MOST, digest_of, listed_in, same_in_all
from approvals.enums import ProposalStatus
from approvals.models import Claim, Decision, Proposal, Rejection
from approvals.shown import view_of
from audit.models import Event
from common.models import Tenant
from tests import factories, rows
from tests.approvals.desk_rows import make_full
from tests.database import captured_queries, statements

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse", display_name="Ilse V.")


@pytest.fixture
def desk(client: Client, reviewer: User) -> Client:
    client.force_login(reviewer)
    cache.clear()
    return client


def refund(tenant: Tenant, order: int, **fields: Any) -> Proposal:
    arguments = dict(rows.REFUND) | {"order": str(order)}
    until = rows.now() + timedelta(minutes=30, seconds=order % 100)
    return factories.make_proposal(
        tenant=tenant, arguments=arguments, decide_by=fields.pop("decide_by", until), **fields
    )


def some(tenant: Tenant, count: int = 3, **fields: Any) -> list[Proposal]:
    return [refund(tenant, 2000 + number, **fields) for number in range(count)]


def address(proposal: Proposal) -> str:
    return f"/review/{proposal.pk}/alike/"


def form_of(page: str) -> dict[str, Any]:
    """What the page's form sends back without anything ticked."""
    hidden = re.findall(r'<input type="hidden" name="(list|item)" value="([^"]*)"', page)
    form: dict[str, Any] = {"item": []}
    for name, value in hidden:
        if name == "item":
            form["item"].append(unescape(value))
        else:
            form[name] = unescape(value)
    return form


def send(desk: Client, like: Proposal, ticked: list[Proposal], **changed: Any) -> Any:
    form = form_of(desk.get(address(like)).content.decode())
    sent = {"decision": "approve", "chosen": [str(row.pk) for row in ticked]} | form | changed
    return desk.post(address(like), sent)


def status_of(*proposals: Proposal) -> list[str]:
    return [Proposal.objects.values_list("status", flat=True).get(pk=row.pk) for row in proposals]


def offered(desk: Client, like: Proposal) -> set[str]:
    return {item.split()[0] for item in form_of(desk.get(address(like)).content.decode())["item"]}


def test_each_is_decided_for_itself_and_the_rest_stays(desk: Client, tenant: Tenant, reviewer: User) -> None:
    """Field report L5: bound to the versions that the list showed."""
    first, second, third = some(tenant)
    answer = send(desk, first, [first, third])
    assert answer.status_code == 200
    assert "2 of 2 recorded" in answer.content.decode()
    assert status_of(first, second, third) == ["approved", "pending", "approved"]
    votes = Decision.objects.order_by("at")
    assert [(vote.user_id, vote.parts_seen) for vote in votes] == [(reviewer.pk, ["main"])] * 2
    for row in (first, third):
        vote = votes.get(proposal=row)
        assert (vote.digest, vote.view_digest) == (row.digest, row.view_digest)


def test_the_history_says_that_it_was_in_a_list_and_in_which(desk: Client, tenant: Tenant) -> None:
    proposals = some(tenant)
    form = form_of(desk.get(address(proposals[0])).content.decode())
    desk.post(address(proposals[0]), form | {"decision": "approve", "chosen": [str(proposals[1].pk)]})
    body = Event.objects.get(kind="proposal.vote").body
    assert body["decided_in"] == "bulk list"
    assert body["bulk_list"] == digest_of(listed_in(form["item"]))


def test_the_list_shows_the_whole_document_of_each(desk: Client, tenant: Tenant) -> None:
    proposals = some(tenant)
    page = unescape(desk.get(address(proposals[0])).content.decode())
    plain = re.sub(r"<[^>]*>", "", page)
    for row in proposals:
        view = view_of(row)
        assert plain.count(view.consequence) >= len(proposals)
        for field in view.fields:
            assert (field.text or "") in plain
            assert all(sub in plain for sub in field.sub)
    # What differs stands in each row, what does not once.
    assert [len(re.findall(rf">{number}<", page)) for number in ("2000", "2001", "2002")] == [1, 1, 1]
    assert "checked" not in page


def test_the_same_and_what_differs() -> None:
    one, two = (view_with(order) for order in ("1", "2"))
    assert same_in_all([one]) == (False, False)
    assert same_in_all([one, one]) == (True, True)
    assert sorted(same_in_all([one, two])) == [False, True]


def view_with(order: str, **changed: Any) -> Any:
    return rows.view_for("0" * 64, dict(rows.REFUND) | {"order": order}).model_copy(update=changed)


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("not of low risk", {"risk": 2}),
        ("asks for two people", {"needed": 2}),
        ("with a warning", {"warning_count": 1}),
        ("by another version", {"operation_version": 9}),
        ("of another workflow", {"workflow": "other"}),
        ("in another mode", {"mode": "shadow"}),
    ],
)
def test_what_is_not_alike_is_not_offered_and_not_decided(
    desk: Client, tenant: Tenant, what: str, fields: dict[str, Any]
) -> None:
    like, other = refund(tenant, 2000), refund(tenant, 2001, **fields)
    assert offered(desk, like) == {str(like.pk)}
    assert str(like.pk) not in offered(desk, other)
    # Also with everything right but the kind: somebody puts it into the list by hand.
    assert send(desk, like, [other]).status_code == 409
    assert status_of(other) == ["pending"]


@pytest.mark.parametrize("fields", [{"operation_version": 9}, {"workflow": "other"}, {"mode": "shadow"}])
def test_a_list_of_another_kind_is_not_decided_here(
    desk: Client, tenant: Tenant, fields: dict[str, Any]
) -> None:
    like, other = refund(tenant, 2000), refund(tenant, 2001, **fields)
    form = form_of(desk.get(address(other)).content.decode())
    page = desk.post(
        address(like), form | {"decision": "approve", "chosen": [str(other.pk)]}
    ).content.decode()
    assert "0 of 1 recorded" in page
    assert "not_alike" in page
    assert status_of(other) == ["pending"]


def test_a_group_is_alike_within_itself(desk: Client, tenant: Tenant, reviewer: User) -> None:
    group = factories.make_group(tenant)
    like, theirs = refund(tenant, 2000), refund(tenant, 2001, group=group)
    assert offered(desk, like) == {str(like.pk)}
    assert offered(desk, theirs) == set()


def test_what_has_more_to_look_at_than_a_row_is_not_offered(desk: Client, tenant: Tenant) -> None:
    like, odd = refund(tenant, 2000), make_full(tenant)
    assert offered(desk, like) == {str(like.pk)}
    page = desk.get(address(odd)).content.decode()
    assert "decided on its own page" in page
    long = view_with("2001")
    wide = long.model_copy(
        update={"fields": (long.fields[0].model_copy(update={"text": "x" * (LONGEST + 1)}), *long.fields[1:])}
    )
    refund(tenant, 2001, view=wide.to_bytes(), view_digest=wide.digest)
    assert offered(desk, like) == {str(like.pk)}


def test_what_others_read_ask_about_or_refused_is_left_out(
    desk: Client, tenant: Tenant, reviewer: User
) -> None:
    like, read, mine, refused = some(tenant, 4)
    other = factories.make_user(tenant, "noor")
    for row, user in ((read, other), (mine, reviewer)):
        Claim.objects.create(
            tenant=tenant, proposal=row, user=user, since=rows.now(), until=rows.now() + timedelta(minutes=5)
        )
    earlier = factories.make_proposal(tenant=tenant, status="rejected")
    Rejection.objects.create(
        tenant=tenant, proposal=earlier, operation=refused.operation, target=refused.target, rejected_by=other,
        material_digest="hmac:0", rejected_at=rows.now(), until=rows.now() + timedelta(days=1),
    )  # fmt: skip
    assert offered(desk, like) == {str(like.pk), str(mine.pk)}


def test_their_own_and_others_questions_are_not_in_it(desk: Client, tenant: Tenant, reviewer: User) -> None:
    like = refund(tenant, 2000)
    own = refund(tenant, 2001, excluded_users=[reviewer.pk])
    voted = refund(tenant, 2002)
    factories.make_decision(voted, reviewer)
    late = refund(
        tenant, 2003, decide_by=rows.now() - timedelta(seconds=1), at=rows.now() - timedelta(hours=1)
    )
    assert offered(desk, like) == {str(like.pk)}
    assert status_of(own, voted, late) == ["pending"] * 3


def test_one_that_is_refused_stops_none_of_the_others(desk: Client, tenant: Tenant) -> None:
    first, second, third = some(tenant)
    form = form_of(desk.get(address(first)).content.decode())
    factories.bring(second, ProposalStatus.REJECTED, reason="")
    chosen = [str(row.pk) for row in (first, second, third)]
    page = desk.post(address(first), form | {"decision": "approve", "chosen": chosen}).content.decode()
    assert "2 of 3 recorded" in page
    assert "already_decided" in page
    assert status_of(first, second, third) == ["approved", "rejected", "approved"]


def test_sent_again_it_answers_the_same_and_decides_nothing_twice(desk: Client, tenant: Tenant) -> None:
    first, second, _ = some(tenant)
    form = form_of(desk.get(address(first)).content.decode())
    sent = form | {"decision": "approve", "chosen": [str(first.pk), str(second.pk)]}
    assert "2 of 2 recorded" in desk.post(address(first), sent).content.decode()
    assert "2 of 2 recorded" in desk.post(address(first), sent).content.decode()
    assert Decision.objects.count() == 2


def test_the_same_thing_twice_is_begun_once(desk: Client, tenant: Tenant) -> None:  # field report A13
    first, again = refund(tenant, 2000), refund(tenant, 2000)
    page = send(desk, first, [first, again]).content.decode()
    assert "1 of 2 recorded" in page
    assert "action_in_progress" in page
    assert status_of(first, again) == ["approved", "pending"]


def test_all_that_is_ticked_is_rejected_with_one_reason(desk: Client, tenant: Tenant) -> None:
    first, second, third = some(tenant)
    answer = send(
        desk, first, [first, second], decision="reject", reason_code="duplicate", reject_reason="Twice."
    )
    assert "2 of 2 recorded" in answer.content.decode()
    assert status_of(first, second, third) == ["rejected", "rejected", "pending"]
    assert {(vote.reason_code, vote.reason) for vote in Decision.objects.all()} == {("duplicate", "Twice.")}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"decision": "reject", "reject_reason": " "}, "reason_required"),
        ({"decision": ""}, "unknown_decision"),
        ({"decision": "request_changes"}, "unknown_decision"),
        ({"decision": "Approve "}, "unknown_decision"),  # field report B11
        ({"chosen": []}, "nothing_chosen"),
        ({"list": "forged"}, "list_mismatch"),
        ({"item": []}, "list_mismatch"),
        ({"chosen": ["not-an-id"]}, "list_mismatch"),
        ({"chosen": [str(number) for number in range(MOST + 1)]}, "too_many_chosen"),
    ],
)
def test_a_refused_form_records_nothing_and_keeps_all(
    desk: Client, tenant: Tenant, changed: dict[str, Any], code: str
) -> None:
    first, second, _ = some(tenant)
    answer = send(desk, first, [second], **({"reason_code": "", "reject_reason": "No, because"} | changed))
    page = answer.content.decode()
    assert answer.status_code in (409, 422)
    assert code in page
    assert Decision.objects.count() == 0
    if "chosen" not in changed:
        assert re.findall(r'value="([^"]*)" data-row checked', page) == [str(second.pk)]
    if "reject_reason" not in changed:
        assert "No, because" in page


def test_a_list_with_other_digests_is_another_list(desk: Client, tenant: Tenant) -> None:
    first, second, _ = some(tenant)
    form = form_of(desk.get(address(first)).content.decode())
    items = [item.replace(first.digest, second.digest) for item in form["item"]]
    answer = desk.post(
        address(first), form | {"item": items, "decision": "approve", "chosen": [str(first.pk)]}
    )
    assert answer.status_code == 409
    assert status_of(first) == ["pending"]


def test_a_list_is_of_the_person_it_was_shown_to(desk: Client, tenant: Tenant) -> None:
    first, *_ = some(tenant)
    form = form_of(desk.get(address(first)).content.decode())
    other = Client()
    other.force_login(factories.make_user(tenant, "noor"))
    answer = other.post(address(first), form | {"decision": "approve", "chosen": [str(first.pk)]})
    assert answer.status_code == 409
    assert "list_mismatch" in answer.content.decode()


def test_a_forged_receipt_decides_nothing(desk: Client, tenant: Tenant) -> None:
    """The list's seal covers the digests; what proves that a document was shown is its own receipt."""
    first, second, _ = some(tenant)
    form = form_of(desk.get(address(first)).content.decode())
    parts = [item.split() for item in form["item"]]
    items = [" ".join([*three[:3], parts[1][3]]) for three in parts]
    page = desk.post(
        address(first),
        form | {"item": items, "decision": "approve", "chosen": [str(first.pk), str(second.pk)]},
    ).content.decode()
    assert "1 of 2 recorded" in page
    assert "not_all_shown" in page
    assert status_of(first, second) == ["pending", "approved"]


def test_reading_it_changes_nothing_and_costs_the_same_for_many(desk: Client, tenant: Tenant) -> None:
    like, *_ = some(tenant, 2)
    costs = []
    for more in (0, 8):
        some_more = [refund(tenant, 2100 + number) for number in range(more)]
        with captured_queries() as seen:
            assert len(offered(desk, like)) == 2 + len(some_more)
        costs.append(len(statements(seen)))
    assert costs[0] == costs[1]
    assert Event.objects.filter(kind__startswith="proposal.").count() == 0


def test_a_list_has_an_end(desk: Client, tenant: Tenant) -> None:
    like, *_ = some(tenant, MOST + 3)
    page = desk.get(address(like)).content.decode()
    assert page.count('name="chosen"') == MOST
    assert "More wait behind these" in page


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR, Role.ADMIN, Role.OWNER])
def test_only_reviewers_have_it(client: Client, tenant: Tenant, role: Role) -> None:
    like, *_ = some(tenant, 2)
    client.force_login(factories.make_user(tenant, "olga", roles=[role]))
    assert client.get(address(like)).status_code == 403
    assert client.post(address(like), {"decision": "approve", "chosen": [str(like.pk)]}).status_code == 403


@override_settings(PLACET_DECISIONS_PER_MINUTE=3)
def test_each_of_a_list_counts_for_the_rate(desk: Client, tenant: Tenant) -> None:
    """Six at once are a full bucket of two minutes; the seventh has to wait."""
    proposals = some(tenant, 7)
    assert "6 of 6 recorded" in send(desk, proposals[6], proposals[:6]).content.decode()
    answer = send(desk, proposals[6], proposals[6:])
    assert answer.status_code == 429
    assert status_of(proposals[6]) == ["pending"]
