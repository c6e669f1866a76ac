"""The runs desk through its URLs: what it shows to whom, and that looking changes nothing."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from audit.models import Event
from common.ids import new_id
from tests import factories, rows
from tests.pages import timeless
from tests.workflows.conftest import Desk
from tests.workflows.toy import NOTHING_CAME
from workflows.enums import RunStatus
from workflows.models import Document, Run, Step
from workflows.results import WaitForData

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def operator(desk: Desk, client: Client) -> Client:
    client.force_login(
        factories.make_user(desk.tenant, "omar", roles=[Role.OPERATOR], display_name="Omar T.")
    )
    return client


def page(client: Client, address: str, status: int = 200, **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == status
    return answer.content.decode()


def addresses(html: str, pattern: str) -> list[str]:
    return [found.replace("&amp;", "&") for found in re.findall(pattern, html)]


# -- the list -------------------------------------------------------------------------------------------------


def test_the_list_says_what_each_run_waits_for_until_when_and_what_then(operator: Client, desk: Desk) -> None:
    desk.proposed(order="77")
    html = page(operator, "/runs/")
    assert "Toy payments, <bdi>order:77</bdi>" in html
    assert "a person&#x27;s decision" in html
    assert "a person looks at it" in html
    assert "2 of 4" in html


@pytest.mark.parametrize("count", [1, 3])
def test_the_list_asks_the_database_equally_often_however_long_it_is(
    operator: Client, desk: Desk, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        desk.proposed(order=str(number))
    with django_assert_num_queries(15):
        operator.get("/runs/")


def test_pages_hold_every_run_once_while_new_ones_come_in(
    operator: Client, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.cursors.page.__kwdefaults__", {"cursor": "", "size": 2})
    made = {str(factories.make_run(desk.tenant).pk) for _ in range(5)}
    found: list[str] = []
    address = "/runs/"
    while address:
        html = page(operator, address)
        found += re.findall(r'class="stretch" href="/runs/([0-9a-f-]+)/"', html)
        factories.make_run(desk.tenant)
        older = addresses(html, r'href="([^"]+)" rel="next"')
        address = older[0] if older else ""
    assert sorted(found) == sorted(made)


def test_views_and_filters_share_their_conditions(operator: Client, desk: Desk) -> None:
    factories.make_run(desk.tenant, status=RunStatus.UNKNOWN, source_event_id="ev-lost")
    factories.make_run(desk.tenant, status=RunStatus.MANUAL_REPAIR, requested_by="api:other")
    factories.make_run(desk.tenant, status=RunStatus.FAILED, outcome="declined")
    assert re.findall(r'>([A-Z][a-z ]+) <span class="n">(\d+)</span></a>', page(operator, "/runs/"))[-4:] == [
        ("Open", "2"), ("Outcome unknown", "1"), ("Needs a person", "1"), ("Held", "0"),
    ]  # fmt: skip
    for query, count in (
        ("view=unknown", 1), ("view=ended", 1), ("view=held", 0), ("status=failed", 1), ("q=ev-lo", 1),
        ("requester=api%3Aother", 1), ("workflow=toy-pay", 0), ("view=nonsense", 3), ("cursor=nonsense", 3),
        ("status=nonsense", 3),
    ):  # fmt: skip
        assert page(operator, f"/runs/?{query}").count('class="stretch"') == count, query


def test_a_run_is_found_by_its_id_its_order_and_its_event(operator: Client, desk: Desk) -> None:
    proposal = desk.proposed(order="4711", event_id="mail-9")
    desk.proposed(order="4712")
    run_id = str(proposal.run_id)
    for words in (
        run_id,
        f"{run_id[:8]}…{run_id[-4:]}",
        "order:4711",
        "4711",
        "mail-9",
        str(proposal.pk),
        proposal.digest,
    ):
        found = re.findall(
            r'class="stretch" href="/runs/([^/]+)/', operator.get("/runs/", {"q": words}).content.decode()
        )
        assert run_id in found, words


def test_the_list_alone_is_the_answer_to_a_swap(operator: Client, desk: Desk) -> None:
    desk.start()
    fragment = page(operator, "/runs/?view=open", **HTMX, **{"HX-Target": "runs"})
    assert "<!doctype" not in fragment
    assert timeless(fragment) in timeless(page(operator, "/runs/?view=open"))


# -- one run --------------------------------------------------------------------------------------------------


def test_a_finished_run_shows_its_whole_life(operator: Client, desk: Desk) -> None:
    command = desk.approved(order="1042")
    desk.work()
    desk.advance()
    html = page(operator, f"/runs/{command.run_id}/")
    for text in (
        "Completed: paid.", "It was paid.", "Attempt 1", "Claimed", "Sent", "Answered", command.idempotency_key, "re_1",
        f'href="/review/{command.proposal_id}/"', "ada approved", f'href="/runs/{command.run_id}/receipts/pay/"',
        "command.<wbr>confirmed", "nothing; the result is there", "order:1042", "It happened once.",
    ):  # fmt: skip
        assert text in html, text
    assert ">Result of Pay, by reference</a>" in html
    assert "Receipt of Pay</a>" in html
    assert "approve: acts after a person&#x27;s approval" in html
    assert "hx-trigger" not in html.partition('id="run"')[2].partition(">")[0]


def test_a_run_that_waits_asks_again_and_is_answered_only_when_something_moved(
    operator: Client, desk: Desk
) -> None:
    proposal = desk.proposed()
    html = page(operator, f"/runs/{proposal.run_id}/")
    [ask] = addresses(html, r'id="run" hx-get="([^"]+)" hx-trigger="every 2s"')
    polls = HTMX | {"HX-Target": "run"}
    assert operator.get(ask, headers=polls).status_code == 204
    desk.decide(proposal)
    moved = page(operator, ask, **polls)
    assert "Executing" in moved
    assert "<!doctype" not in moved


def test_the_fragment_is_what_a_fresh_page_holds(operator: Client, desk: Desk) -> None:
    run = desk.approved().run
    desk.work()
    desk.advance()
    fragment = page(operator, f"/runs/{run.pk}/?version=old", **HTMX, **{"HX-Target": "run"})
    assert timeless(fragment) in timeless(page(operator, f"/runs/{run.pk}/"))


def test_an_unknown_outcome_is_called_unknown_and_links_its_packet(operator: Client, desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers.append(NOTHING_CAME)
    desk.work()
    html = page(operator, f"/runs/{command.run_id}/")
    packet = command.run.packets.get()
    assert f'href="/repair/{packet.pk}/"' in html
    assert "No answer" in html
    assert "Effect unknown" in html
    assert "silent" in html
    assert 'data-tone="bad"' not in html


def test_a_run_that_waits_for_data_says_what_was_asked(operator: Client, desk: Desk) -> None:
    desk.till.stages["read"] = WaitForData("Which order is it?", {"type": "object"}, timedelta(days=1))
    run = desk.start()
    desk.advance()
    for address in ("/runs/", f"/runs/{run.pk}/"):
        assert "data from the requester: Which order is it?" in page(operator, address)


def test_a_wish_for_changes_is_told_and_every_page_says_the_same(operator: Client, desk: Desk) -> None:
    """Its words are on the proposal's page, for roles that are shown personal data; an operator is not."""
    proposal = desk.proposed()
    desk.decide(proposal, "request_changes", reason="only EUR 25")
    html = page(operator, f"/runs/{proposal.run_id}/")
    assert "ada asked for changes" in html
    assert "only EUR 25" not in html
    assert "A person asks anew for what is wanted, or cancels this run." in html
    assert "goes on by itself" not in html.replace("It does not go on by itself", "")
    asked = page(operator, f"/review/{proposal.pk}/")
    assert "Nothing is sent for this version" in asked
    assert "only EUR 25" not in asked
    assert "takes its place" not in asked


def test_texts_from_outside_are_escaped_and_what_hides_is_shown(operator: Client, desk: Desk) -> None:
    run = factories.make_run(
        desk.tenant, source_event_id="<b>77\u202e01", requested_by="api:<i>", source_system="help\u200bdesk"
    )
    for address in ("/runs/", f"/runs/{run.pk}/"):
        html = page(operator, address)
        assert "<b>77" not in html
        assert "<i>" not in html
        assert "\u202e" not in html
        assert "⟦U+202E⟧" in html


def test_duplicates_that_were_prevented_are_counted(operator: Client, desk: Desk) -> None:
    run = desk.start(event_id="twice")
    desk.start(event_id="twice")
    html = page(operator, f"/runs/{run.pk}/")
    assert re.search(r"<dt>Duplicates prevented</dt><dd><bdi>1</bdi></dd>", html)


@pytest.mark.parametrize("role", list(Role))
def test_every_role_may_see_runs_and_only_readers_of_the_history_are_led_to_it(
    desk: Desk, client: Client, role: Role
) -> None:
    client.force_login(factories.make_user(desk.tenant, roles=[role]))
    run = desk.start()
    html = page(client, f"/runs/{run.pk}/")
    assert ("/history/?run=" in html) is (role in (Role.AUDITOR, Role.ADMIN))


def test_who_has_no_role_or_is_not_signed_in_sees_nothing(desk: Desk, client: Client) -> None:
    run = desk.start()
    assert client.get("/runs/").headers["Location"] == "/sign-in/?next=/runs/"
    client.force_login(factories.make_user(desk.tenant, roles=[]))
    assert client.get("/runs/").status_code == 403
    assert client.get(f"/runs/{run.pk}/").status_code == 403


# -- receipts and documents -----------------------------------------------------------------------------------


def test_a_receipt_tells_decision_and_execution_apart(operator: Client, desk: Desk) -> None:
    command = desk.approved()
    address = f"/runs/{command.run_id}/receipts/pay/"
    assert "Not final yet." in page(operator, address)
    desk.work()
    html = page(operator, address)
    assert "approve by ada, as reviewer" in html
    assert "Final." in html
    assert "re_1" in html
    assert "&quot;signature&quot;" in html
    assert page(operator, f"/runs/{command.run_id}/receipts/no-such-step/", 404)


def test_a_step_without_a_decision_has_no_receipt_yet(operator: Client, desk: Desk) -> None:
    proposal = desk.proposed()
    assert "There is no receipt yet." in page(operator, f"/runs/{proposal.run_id}/receipts/pay/")


def test_a_protected_document_shows_its_content_only_when_opened_and_writes_down_by_whom(
    operator: Client, desk: Desk
) -> None:
    run = desk.start(order="1042")
    address = f"/runs/{run.pk}/documents/{run.input_ref}/"
    assert "1042" not in page(operator, address)
    assert "1042" not in page(operator, f"/runs/{run.pk}/")
    assert not Event.objects.filter(kind="document.opened").exists()
    opened = operator.post(address).content.decode()
    assert "1042" in opened
    event = Event.objects.get(kind="document.opened")
    assert (event.subject_id, event.run_id) == (run.input_ref, run.pk)


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.AUDITOR])
def test_a_protected_document_stays_closed_for_other_roles(desk: Desk, client: Client, role: Role) -> None:
    run = desk.start()
    client.force_login(factories.make_user(desk.tenant, roles=[role]))
    address = f"/runs/{run.pk}/documents/{run.input_ref}/"
    assert "/documents/" not in page(client, f"/runs/{run.pk}/").partition('id="envelope-title"')[0]
    assert "Closed for your role." in page(client, address)
    assert client.post(address).status_code == 403
    assert not Event.objects.filter(kind="document.opened").exists()


# -- walls ----------------------------------------------------------------------------------------------------


def test_ids_of_another_tenant_are_missing(operator: Client) -> None:
    other = factories.make_run()
    step = factories.make_step(other)
    for address in (
        f"/runs/{other.pk}/", f"/runs/{other.pk}/documents/{other.input_ref}/",
        f"/runs/{other.pk}/receipts/{step.key}/",
        f"/runs/{new_id()}/",
    ):  # fmt: skip
        page(operator, address, 404)
    for address in ("/runs/", f"/runs/?q={other.pk}", f"/runs/?q={other.source_event_id}"):
        assert 'class="stretch"' not in page(operator, address), address


def test_a_document_of_another_run_is_missing(operator: Client, desk: Desk) -> None:
    first, second = desk.start(), desk.start()
    assert operator.post(f"/runs/{first.pk}/documents/{second.input_ref}/").status_code == 404


def test_looking_changes_nothing(operator: Client, desk: Desk) -> None:
    command = desk.approved()
    run_id = command.run_id

    def state() -> Iterator[Any]:
        for model in (Run, Step, Document, Event):
            yield list(model.objects.order_by("pk").values())

    before = list(state())
    for address in ("/runs/", f"/runs/{run_id}/", f"/runs/{run_id}/receipts/pay/"):
        page(operator, address)
        assert operator.post(address).status_code == 405
    page(operator, f"/runs/{run_id}/documents/{command.run.input_ref}/")
    assert list(state()) == before


def test_a_clock_that_has_run_out_says_so(operator: Client, desk: Desk) -> None:
    run = factories.make_run(desk.tenant, status=RunStatus.WAITING_FOR_DATA)
    Run.objects.filter(pk=run.pk).update(waiting_until=rows.now() - timedelta(minutes=1))
    assert "Time is over" in page(operator, f"/runs/{run.pk}/")
