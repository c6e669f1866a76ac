"""The review desk through its URLs: what it shows, what it refuses and how, and that looking changes nothing."""

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client

from access.enums import Role
from access.models import User
from approvals.enums import DecisionKind, ProposalStatus
from approvals.models import Decision, Proposal
from approvals.shown import view_of
from audit.models import Event
from common.models import Tenant
from tests import factories, rows
from tests.approvals.desk_rows import MESSAGE, make_full

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse", display_name="Ilse V.")


@pytest.fixture
def desk(client: Client, reviewer: User) -> Client:
    client.force_login(reviewer)
    return client


def page_of(client: Client, proposal: Proposal, **headers: str) -> str:
    answer = client.get(f"/review/{proposal.pk}/", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def receipts_in(html: str) -> list[str]:
    return re.findall(r'name="receipt" value="([^"]+)"', html)


def sent(proposal: Proposal, kind: str, html: str, **more: Any) -> dict[str, Any]:
    """What the bar's form sends for a decision on ``html``, with everything ticked unless the test says otherwise."""
    return {
        "decision": kind,
        "digest": proposal.digest,
        "view_digest": proposal.view_digest,
        "receipt": receipts_in(html),
        "acknowledged": list(view_of(proposal).to_acknowledge),
    } | more


def decide(
    client: Client, proposal: Proposal, kind: str, html: str, *, htmx: bool = False, **more: Any
) -> Any:
    data = sent(proposal, kind, html, **more)
    return client.post(f"/review/{proposal.pk}/decide/", data, headers=HTMX if htmx else {})


def status_of(proposal: Proposal) -> str:
    return Proposal.objects.values_list("status", flat=True).get(pk=proposal.pk)


# -- the queue ------------------------------------------------------------------------------------------------


def test_the_queue_counts_what_it_holds_and_leaves_out_what_is_out_of_time(
    desk: Client, tenant: Tenant
) -> None:
    past = rows.now() - timedelta(hours=5)
    late = factories.make_proposal(tenant=tenant, summary="Late one", at=past)
    waiting = [factories.make_proposal(tenant=tenant, summary=f"Refund {n}") for n in range(3)]
    factories.make_proposal(tenant=tenant, status=ProposalStatus.REJECTED, summary="Decided one")
    html = desk.get("/review/").content.decode()
    assert late.status == ProposalStatus.PENDING
    assert "Late one" not in html
    assert "Decided one" not in html
    assert html.count('class="item"') == len(waiting)
    assert "3 waiting" in html
    assert '<span class="n" id="nav-review">3</span>' in html


def test_filters_and_views_count_by_the_same_conditions(desk: Client, tenant: Tenant, reviewer: User) -> None:
    factories.make_proposal(tenant=tenant, summary="Refund of order 42")
    factories.make_proposal(tenant=tenant, summary="Own", excluded_users=[reviewer.pk])
    mine = desk.get("/review/?view=mine").content.decode()
    assert mine.count('class="item"') == 1
    found = desk.get("/review/?q=order+42").content.decode()
    assert found.count('class="item"') == 1
    nothing = desk.get("/review/?q=nonsense").content.decode()
    assert "No proposal fits these filters" in nothing
    assert "2 wait in all." in nothing


def test_new_proposals_are_told_by_their_number_and_move_no_row(desk: Client, tenant: Tenant) -> None:
    since = re.search(r'arrivals/\?since=([^"]+)"', desk.get("/review/").content.decode())
    assert since is not None
    address = f"/review/arrivals/?since={since[1]}"
    assert desk.get(address).status_code == 204
    factories.make_proposal(tenant=tenant)
    assert "1 new, show it" in desk.get(address).content.decode()
    assert desk.get("/review/arrivals/?since=nonsense").status_code == 204


def test_the_list_alone_is_the_answer_to_a_swap(desk: Client, tenant: Tenant) -> None:
    factories.make_proposal(tenant=tenant)
    fragment = desk.get("/review/", headers=HTMX | {"HX-Target": "queue"}).content.decode()
    assert "<!doctype" not in fragment
    assert 'hx-swap-oob="true">1</span>' in fragment


# -- one proposal ---------------------------------------------------------------------------------------------


def test_the_page_shows_every_field_of_the_stored_document(desk: Client, tenant: Tenant) -> None:
    proposal = make_full(tenant)
    html = page_of(desk, proposal)
    for field in view_of(proposal).fields:
        assert field.label in html
        assert (field.folded or field.data_class == "") or f'id="{field.id}"' in html
    assert "xn--" not in html
    assert "What the automation wrote" in html
    assert "&lt;b onmouseover" not in html  # folded: not in the page until it is opened


def test_a_folded_text_and_its_receipt_come_only_when_it_is_opened(desk: Client, tenant: Tenant) -> None:
    proposal = make_full(tenant)
    html = page_of(desk, proposal)
    assert "acct_l2345" not in html
    assert len(receipts_in(html)) == 1
    part = view_of(proposal).parts[1]
    data = {"open": part, "receipt": receipts_in(html)}
    fragment = desk.post(f"/review/{proposal.pk}/part/", data, headers=HTMX).content.decode()
    assert "acct_l2345" in fragment
    assert "&lt;b onmouseover=alert(1)&gt;Approve&lt;/b&gt;" in fragment
    assert "<!doctype" not in fragment
    assert len(receipts_in(fragment)) == 1


def test_without_script_the_page_comes_back_open_with_what_was_done_so_far(
    desk: Client, tenant: Tenant
) -> None:
    proposal = make_full(tenant)
    html = page_of(desk, proposal)
    ticked = view_of(proposal).to_acknowledge[0]
    data = {
        "open": view_of(proposal).parts[1],
        "receipt": receipts_in(html),
        "acknowledged": [ticked],
        "reject_reason": "The account is new",
    }
    opened = desk.post(f"/review/{proposal.pk}/part/", data).content.decode()
    assert "acct_l2345" in opened
    assert len(receipts_in(opened)) == 2
    assert f'value="{ticked}" form="decide" required data-need checked' in opened
    assert "The account is new" in opened


def test_the_shown_text_is_the_stored_text_character_for_character(desk: Client, tenant: Tenant) -> None:
    proposal = make_full(tenant)
    data = {"open": view_of(proposal).parts[1], "receipt": receipts_in(page_of(desk, proposal))}
    fragment = desk.post(f"/review/{proposal.pk}/part/", data, headers=HTMX).content.decode()
    value = re.search(r'<bdi class="val[^>]*>(.*?)</bdi>', fragment, re.DOTALL)
    assert value is not None
    text = unescape(re.sub(r"<[^>]+>", "", value[1]))
    assert text == next(f.text for f in view_of(proposal).fields if f.folded)
    assert "\u202e" in MESSAGE
    assert "\u202e" not in fragment


def test_a_folded_text_can_still_be_opened_when_it_is_decided(desk: Client, tenant: Tenant) -> None:
    proposal = factories.bring(make_full(tenant), ProposalStatus.REJECTED)
    part = view_of(proposal).parts[1]
    assert f'value="{part}"' in page_of(desk, proposal)
    opened = desk.post(f"/review/{proposal.pk}/part/", {"open": part}).content.decode()
    assert "acct_l2345" in opened
    assert receipts_in(opened) == []


def test_an_unknown_part_is_not_found(desk: Client, tenant: Tenant) -> None:
    proposal = make_full(tenant)
    assert desk.post(f"/review/{proposal.pk}/part/", {"open": "part-nonsense"}).status_code == 404


def test_another_tenants_proposal_is_as_missing_as_none(desk: Client) -> None:
    theirs = factories.make_proposal(tenant=factories.make_tenant("other"))
    missing = desk.get("/review/01a0ba0a-479a-7ed8-8825-2289e18cede8/")
    foreign = desk.get(f"/review/{theirs.pk}/")
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert foreign.content == missing.content


@pytest.mark.parametrize(("role", "reads"), [(Role.REVIEWER, False), (Role.AUDITOR, True)])
def test_only_readers_of_the_history_are_led_to_it(
    client: Client, tenant: Tenant, role: Role, reads: bool
) -> None:
    client.force_login(factories.make_user(tenant, "anna", roles=[role]))
    assert ("/history/?run=" in page_of(client, factories.make_proposal(tenant=tenant))) is reads


def test_an_operator_is_not_shown_personal_fields_and_gets_no_receipt(client: Client, tenant: Tenant) -> None:
    client.force_login(factories.make_user(tenant, "olga", roles=[Role.OPERATOR]))
    html = page_of(client, make_full(tenant))
    assert "billing@<b>" not in html
    assert receipts_in(html) == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("rejected", "Read-only now."),
        ("changes_requested", "Changes were asked for."),
        ("expired", "Nobody approved it."),
        ("withdrawn", "Read-only now."),
        ("superseded", "Read-only now."),
        ("invalidated", "Read-only now."),
        ("lapsed", "Read-only now."),
        ("consumed", "its command has ended"),
        ("approved", "What became of it stands above"),
    ],
)
def test_what_no_longer_waits_is_read_only_and_says_why(
    desk: Client, tenant: Tenant, status: str, words: str
) -> None:
    html = page_of(desk, factories.make_proposal(tenant=tenant, status=status))
    assert words in html
    assert 'name="decision"' not in html
    assert receipts_in(html) == []


# -- deciding -------------------------------------------------------------------------------------------------


def test_an_approval_is_recorded_and_the_page_says_so(desk: Client, tenant: Tenant, reviewer: User) -> None:
    proposal = factories.make_proposal(tenant=tenant, needed=2)
    answer = decide(desk, proposal, "approve", page_of(desk, proposal), htmx=True)
    assert answer.status_code == 200
    html = answer.content.decode()
    assert "Your approval is recorded. One more person is needed." in html
    assert "You approved it at" in html
    assert 'id="facts" hx-swap-oob="true"' in html
    assert "proposal-decided" in answer["HX-Trigger-After-Settle"]
    assert Decision.objects.get().user == reviewer
    assert status_of(proposal) == ProposalStatus.PENDING


def test_a_rejection_without_script_leads_back_to_the_page(desk: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    answer = decide(
        desk,
        proposal,
        "reject",
        page_of(desk, proposal),
        reject_reason="Wrong card",
        reason_code="wrong_target",
    )
    assert answer.status_code == 302
    html = desk.get(answer["Location"]).content.decode()
    assert "Ilse V. rejected this version." in html
    assert "Wrong card" in html


def test_what_is_swapped_in_is_what_a_fresh_page_shows(desk: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    answer = decide(
        desk, proposal, "reject", page_of(desk, proposal), reject_reason="Wrong", htmx=True
    ).content.decode()
    fresh = page_of(desk, proposal)
    for element in ("facts", "people"):
        swapped = re.search(rf'id="{element}" hx-swap-oob="true">(.*?)</(dl|section)>', answer, re.DOTALL)
        assert swapped is not None
        assert swapped[1] in fresh


REFUSALS = {
    "digest_mismatch": (409, {"digest": "0" * 64}),
    "view_mismatch": (409, {"view_digest": "0" * 64}),
    "not_all_shown": (422, {"receipt": []}),
    "not_acknowledged": (422, {"acknowledged": []}),
    "reason_required": (422, {"decision": "reject"}),
    "unknown_decision": (422, {"decision": "perhaps"}),
}


@pytest.mark.parametrize("htmx", [True, False])
@pytest.mark.parametrize("code", REFUSALS)
def test_a_refused_decision_says_its_reason_and_keeps_what_was_typed(
    desk: Client, tenant: Tenant, code: str, htmx: bool
) -> None:
    proposal = make_full(tenant)
    html = page_of(desk, proposal)
    opened = desk.post(
        f"/review/{proposal.pk}/part/", {"open": view_of(proposal).parts[1], "receipt": receipts_in(html)}
    ).content.decode()
    status, change = REFUSALS[code]
    typed = {"changes_reason": "Ask the customer first", "decision": "approve"}
    answer = decide(desk, proposal, "approve", opened, htmx=htmx, **(typed | change))
    said = answer.content.decode()
    assert answer.status_code == status
    assert f'<code class="hint">{code}</code>' in said
    assert 'role="alert"' in said
    assert "Ask the customer first" in said
    assert ("<!doctype" in said) is not htmx
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("rejected", "already_decided"),
        ("expired", "expired"),
        ("withdrawn", "withdrawn"),
        ("superseded", "superseded"),
        ("invalidated", "invalidated"),
    ],
)
def test_a_late_click_says_what_happened_meanwhile(
    desk: Client, tenant: Tenant, status: str, code: str
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    html = page_of(desk, proposal)
    factories.bring(proposal, status)
    answer = decide(desk, proposal, "reject", html, reject_reason="My words", htmx=True)
    said = answer.content.decode()
    assert answer.status_code == 409
    assert f'<code class="hint">{code}</code>' in said
    assert "My words" in said
    assert 'name="decision"' not in said


def test_a_decision_after_its_time_is_too_late_even_before_the_sweep(desk: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant, at=rows.now() - timedelta(hours=5))
    answer = decide(desk, proposal, "approve", "", htmx=True)
    assert answer.status_code == 409
    assert "The time to decide is over." in answer.content.decode()
    assert status_of(proposal) == ProposalStatus.PENDING
    assert not Decision.objects.exists()


def test_nobody_decides_on_their_own_proposal(desk: Client, tenant: Tenant, reviewer: User) -> None:
    proposal = factories.make_proposal(tenant=tenant, excluded_users=[reviewer.pk])
    html = page_of(desk, proposal)
    assert "Nobody decides on their own proposal" in html
    assert 'name="decision"' not in html
    assert decide(desk, proposal, "approve", html, htmx=True).status_code == 403


def test_another_groups_question_is_shown_and_not_decided(desk: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant, group=factories.make_group(tenant, "Finance"))
    html = page_of(desk, proposal)
    assert "it is asked of other people" in html
    answer = decide(desk, proposal, "approve", html)
    assert answer.status_code == 403
    assert "not_eligible" in answer.content.decode()


def test_the_bar_is_only_sent_again_when_something_happened(desk: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    address = f"/review/{proposal.pk}/bar/?version={proposal.state_version}"
    assert desk.get(address, headers=HTMX).status_code == 204
    factories.bring(proposal, ProposalStatus.REJECTED)
    assert 'id="decide"' in desk.get(address, headers=HTMX).content.decode()


# -- who may come in, and that looking changes nothing ---------------------------------------------------------


def test_strangers_are_sent_to_sign_in_and_back(client: Client) -> None:
    answer = client.get("/review/")
    assert (answer.status_code, unquote(answer["Location"])) == (302, "/sign-in/?next=/review/")


@pytest.mark.parametrize(
    ("path", "method"),
    [("", "post"), ("{}/", "post"), ("{}/decide/", "get"), ("{}/part/", "get"), ("{}/bar/", "post")],
)
def test_each_address_answers_to_its_own_methods_only(
    desk: Client, tenant: Tenant, path: str, method: str
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    assert getattr(desk, method)(f"/review/{path.format(proposal.pk)}").status_code == 405


def everything(tenant: Tenant) -> Iterator[tuple[Any, ...]]:
    yield from Proposal.objects.filter(tenant=tenant).values_list()
    yield from Decision.objects.filter(tenant=tenant).values_list()
    yield from Event.objects.values_list("pk")


def test_looking_and_opening_change_nothing(desk: Client, tenant: Tenant) -> None:
    proposal = make_full(tenant)
    before = list(everything(tenant))
    html = page_of(desk, proposal)
    desk.get("/review/")
    desk.get(f"/review/{proposal.pk}/bar/")
    desk.post(
        f"/review/{proposal.pk}/part/", {"open": view_of(proposal).parts[1], "receipt": receipts_in(html)}
    )
    assert list(everything(tenant)) == before


def test_pages_are_kept_out_of_caches_and_hold_no_inline_script_or_style(
    desk: Client, tenant: Tenant
) -> None:
    answer = desk.get(f"/review/{make_full(tenant).pk}/")
    html = answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    assert not re.search(r"\son\w+=|\sstyle=|<script>|javascript:", html)
    assert "{{" not in html
    assert "'unsafe-inline'" not in answer["Content-Security-Policy"]


@pytest.mark.parametrize("kind", DecisionKind.values)
def test_a_decision_needs_the_forgery_token(tenant: Tenant, reviewer: User, kind: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(reviewer)
    proposal = factories.make_proposal(tenant=tenant)
    answer = decide(client, proposal, kind, page_of(client, proposal))
    assert answer.status_code == 403
    assert "This page was open for too long" in answer.content.decode()
