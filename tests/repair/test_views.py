"""The repair desk through its URLs: what stopped, in which section, with which number, and what is known about it."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from approvals.enums import ProposalStatus
from audit.models import Event
from common.ids import new_id
from repair.models import RepairPacket
from repair.selectors import counts, open_count
from tests import factories, rows
from tests.pages import timeless
from tests.workflows.conftest import Desk
from tests.workflows.toy import NOTHING_CAME
from workflows.enums import CommandStatus, SettledBy, VoidReason
from workflows.models import Command
from workflows.operations import Finding
from workflows.worker import reconcile as reconciler

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def operator(desk: Desk, client: Client) -> Client:
    client.force_login(factories.make_user(desk.tenant, "omar", roles=[Role.OPERATOR]))
    return client


def page(client: Client, address: str, status: int = 200, **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == status
    return answer.content.decode()


def tab_counts(html: str) -> dict[str, int]:
    tabs = html.partition('class="tabs"')[2].partition("</nav>")[0]
    return {
        word: int(number)
        for word, number in re.findall(r'>([A-Z][a-z ]+) <span class="n">(\d+)</span>', tabs)
    }


def make_command(of: Desk, status: str) -> Command:
    """A command of its own run, target and business key."""
    own = new_id()
    proposal = factories.make_proposal(
        tenant=of.tenant, status=ProposalStatus.APPROVED, business_key=f"hmac:{own}", target=f"order:{own}"
    )
    return factories.make_command(proposal, status=status)


def one_of_each(of: Desk) -> None:
    """An unknown outcome, a refusal, a lapsed approval, a hold, a stall."""
    for status, cause in (
        ("unknown", "command_unknown"),
        ("refused", "command_refused"),
        ("void", "command_lapsed"),
    ):
        command = make_command(of, status)
        factories.make_packet(
            command.run, cause=cause, command_id=command.pk, proposal_id=command.proposal_id
        )
    make_command(of, CommandStatus.HELD)
    factories.make_packet(factories.make_run(of.tenant), cause="stalled")


# -- the list -------------------------------------------------------------------------------------------------


def test_everything_that_stopped_stands_in_its_section_and_is_counted_once(
    operator: Client, desk: Desk
) -> None:
    one_of_each(desk)
    html = page(operator, "/repair/")
    assert tab_counts(html) == {
        "All": 5, "Outcome unknown": 1, "Needs a person": 1, "Expired or void": 1, "Held": 1, "Stalled": 1,
    }  # fmt: skip
    assert html.count('class="stretch"') == 5 == open_count(desk.tenant.pk)
    assert "5 cases have stopped" in html


def test_unknown_is_violet_and_is_not_counted_as_failed(operator: Client, desk: Desk) -> None:
    command = make_command(desk, CommandStatus.UNKNOWN)
    factories.make_packet(command.run, cause="command_unknown", command_id=command.pk)
    html = page(operator, "/repair/")
    assert '<span class="badge" data-tone="unknown">' in html
    assert 'data-tone="bad"' not in html
    assert counts(desk.tenant.pk).of("person") == 0


@pytest.mark.parametrize("section", ["unknown", "person", "again", "held", "stalled"])
def test_each_number_is_the_length_of_its_list(operator: Client, desk: Desk, section: str) -> None:
    one_of_each(desk)
    make_command(desk, CommandStatus.UNKNOWN)
    html = page(operator, f"/repair/?view={section}")
    assert (
        html.count('class="stretch"')
        == counts(desk.tenant.pk).of(section)
        == (2 if section == "unknown" else 1)
    )


def test_pages_of_a_section_hold_every_case_once(
    operator: Client, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("repair.listing.PAGE", 2)
    made = {
        f"/repair/{factories.make_packet(factories.make_run(desk.tenant), cause='command_unknown').pk}/"
        for _ in range(3)
    }
    made |= {f"/runs/{make_command(desk, CommandStatus.UNKNOWN).run_id}/" for _ in range(3)}
    found: list[str] = []
    address = "/repair/?view=unknown"
    while address:
        html = page(operator, address)
        found += re.findall(r'class="stretch" href="([^"]+)"', html)
        more = re.search(r'href="([^"]+)" rel="next"', html)
        address = more[1].replace("&amp;", "&") if more else ""
    assert sorted(found) == sorted(made)


def test_settled_packets_leave_the_list_and_stay_readable(operator: Client, desk: Desk) -> None:
    packet = factories.make_packet(factories.make_run(desk.tenant), status="resolved")
    assert "Nothing is stopped" in page(operator, "/repair/")
    assert f'href="/repair/{packet.pk}/"' in page(operator, "/repair/?view=closed")
    assert "Settled" in page(operator, f"/repair/{packet.pk}/")


def test_a_settled_packet_says_how_and_waits_for_nothing(operator: Client, desk: Desk) -> None:
    command, packet = unknown_packet(desk)
    assert "The provider is asked again and again" in page(operator, f"/repair/{packet.pk}/")
    desk.till.findings.append(Finding("happened", "re_9"))
    reconcile(command)
    for address in (f"/repair/{packet.pk}/", "/repair/?view=closed", f"/repair/run/{packet.run_id}/"):
        html = page(operator, address)
        assert "The provider confirmed that it happened." in html, address
        assert "Nobody knows yet" not in html, address
        assert "it is escalated" not in html, address
        assert "The provider is asked again and again" not in html


def test_filters_narrow_rows_and_counts_alike(operator: Client, desk: Desk) -> None:
    one_of_each(desk)
    target = Command.objects.get(status=CommandStatus.HELD).target
    for query, count in (
        ("q=refused", 1),
        (f"q={target}", 1),
        ("q=nonsense", 0),
        ("workflow=toy-pay", 0),
        ("offset=x", 5),
    ):
        html = page(operator, f"/repair/?{query}")
        assert html.count('class="stretch"') == count == tab_counts(html)["All"], query


@pytest.mark.parametrize("count", [1, 3])
def test_the_list_asks_the_database_equally_often_however_long_it_is(
    operator: Client, desk: Desk, count: int, django_assert_num_queries: Any
) -> None:
    for _ in range(count):
        factories.make_packet(factories.make_run(desk.tenant), cause="command_unknown")
    with django_assert_num_queries(14):
        operator.get("/repair/")


def test_the_list_alone_is_the_answer_to_a_swap(operator: Client, desk: Desk) -> None:
    one_of_each(desk)
    fragment = page(operator, "/repair/?view=unknown", **HTMX, **{"HX-Target": "stopped"})
    assert "<!doctype" not in fragment
    whole = page(operator, "/repair/?view=unknown")
    assert timeless(fragment) in timeless(whole)


# -- one packet -----------------------------------------------------------------------------------------------


def unknown_packet(of: Desk) -> tuple[Command, RepairPacket]:
    command = of.approved(order="1042")
    of.till.answers.append(NOTHING_CAME)
    of.work()
    return command, RepairPacket.objects.get(command_id=command.pk)


def test_a_packet_says_what_is_known_and_what_is_not(operator: Client, desk: Desk) -> None:
    command, packet = unknown_packet(desk)
    html = page(operator, f"/repair/{packet.pk}/")
    for text in (
        "“Pay” on order:1042 was sent once. Nobody knows yet whether it happened.", "ada approved exactly this",
        "It left this system with key", command.idempotency_key, "No complete answer came within",
        "Whether the provider carried it out.", "it has not been asked yet", "The last move that worked",
        "command.sent", "No other order was ever made for the same business key.",
        "toy-desk", f'href="/review/{command.proposal_id}/"',
    ):  # fmt: skip
        assert text in html, text


def test_a_wish_for_changes_is_told_without_its_words(operator: Client, desk: Desk) -> None:
    proposal = desk.proposed()
    desk.decide(proposal, "request_changes", reason="only EUR 25")
    packet = RepairPacket.objects.get(proposal_id=proposal.pk)
    html = page(operator, f"/repair/{packet.pk}/")
    assert "ada asked for changes to exactly this, on view" in html
    assert "only EUR 25" not in html


def test_a_provider_without_a_look_up_is_told_from_a_silent_one(operator: Client, desk: Desk) -> None:
    command, packet = unknown_packet(desk)
    desk.till.findings.append(Finding("no_answer", detail="status 501"))
    reconcile(command)
    html = page(operator, f"/repair/{packet.pk}/")
    assert "A look-up told nothing: the provider cannot look this up." in html
    assert "it did not answer" not in html


def test_a_look_up_that_came_too_early_proves_nothing_and_says_so(operator: Client, desk: Desk) -> None:
    command, packet = unknown_packet(desk)
    desk.till.findings.append(Finding("not_found"))
    reconcile(command)
    html = page(operator, f"/repair/{packet.pk}/")
    assert "before the settle time was over: it proves nothing" in html
    assert "Asked before the settle time was over, so it proves nothing." in html


def reconcile(command: Command) -> None:
    from audit.actors import worker_actor
    from common.clock import db_clock

    reconciler.reconcile(command.pk, by=worker_actor("w1"), clock=db_clock, worker="w1")


def test_where_nothing_is_in_doubt_the_page_says_that(operator: Client, desk: Desk) -> None:
    command = factories.make_command(tenant=desk.tenant)
    command.make_void(at=rows.now(), reason=VoidReason.LAPSED, by=SettledBy.CHECK)
    command.save()
    packet = factories.make_packet(command.run, cause="command_lapsed", command_id=command.pk)
    html = page(operator, f"/repair/{packet.pk}/")
    assert "was never sent. Nothing happened by it." in html
    assert "Nothing is in doubt" in html
    assert "Nothing has left this system for it." in html


def test_a_packet_without_a_command_is_shown_too(operator: Client, desk: Desk) -> None:
    proposal = factories.make_proposal(tenant=desk.tenant, status=ProposalStatus.EXPIRED)
    run = rows.Run.objects.get(pk=proposal.run_id)
    packet = factories.make_packet(run, cause="approval_expired", proposal_id=proposal.pk, step="refund")
    html = page(operator, f"/repair/{packet.pk}/")
    assert "Nobody decided in time" in html.replace("nobody decided", "Nobody decided")
    assert "No order to a provider belongs to this stop." in html


def test_personal_values_are_not_on_a_packet(operator: Client, desk: Desk) -> None:
    from tests.approvals.desk_rows import make_full

    proposal = make_full(desk.tenant)
    run = rows.Run.objects.get(pk=proposal.run_id)
    packet = factories.make_packet(run, cause="proposal_invalidated", proposal_id=proposal.pk)
    html = page(operator, f"/repair/{packet.pk}/")
    assert "⟦personal, fingerprint " in html
    assert "1,284.50" in html
    for hidden in ("billing@", "Dear customer", "harbour-lane"):
        assert hidden not in html, hidden


def test_texts_are_escaped(operator: Client, desk: Desk) -> None:
    packet = factories.make_packet(
        factories.make_run(desk.tenant), cause="<b>x", summary="<script>\u202e", owner="<i>me"
    )
    for address in ("/repair/", f"/repair/{packet.pk}/"):
        html = page(operator, address)
        assert "<b>x" not in html and "<script>\u202e" not in html and "<i>me" not in html
        assert "⟦U+202E⟧" in html


# -- walls ----------------------------------------------------------------------------------------------------


def test_ids_of_another_tenant_are_missing_and_uncounted(operator: Client, desk: Desk) -> None:
    other = factories.make_packet()
    factories.make_command(status=CommandStatus.HELD)
    page(operator, f"/repair/{other.pk}/", 404)
    page(operator, f"/repair/{new_id()}/", 404)
    assert page(operator, f"/repair/run/{other.run_id}/").strip() == ""
    assert "Nothing is stopped" in page(operator, "/repair/")
    assert open_count(desk.tenant.pk) == 0


@pytest.mark.parametrize(("roles", "status"), [([Role.REVIEWER], 200), ([Role.AUDITOR], 200), ([], 403)])
def test_every_role_may_look(desk: Desk, client: Client, roles: list[Role], status: int) -> None:
    client.force_login(factories.make_user(desk.tenant, roles=roles))
    assert client.get("/repair/").status_code == status


def test_looking_changes_nothing(operator: Client, desk: Desk) -> None:
    _, packet = unknown_packet(desk)
    RepairPacket.objects.filter(pk=packet.pk).update(waiting_until=rows.now() - timedelta(hours=1))
    before = (list(RepairPacket.objects.values()), Event.objects.count())
    for address in ("/repair/", f"/repair/{packet.pk}/", f"/repair/run/{packet.run_id}/"):
        page(operator, address)
        assert operator.post(address).status_code == 405
    assert (list(RepairPacket.objects.values()), Event.objects.count()) == before
