"""Incidents through their addresses: finding, opening, freezing exactly those, marking, closing, comparing."""

import re
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from common.clock import db_clock
from repair.models_incidents import Incident, IncidentRun
from tests import factories as f
from tests.repair.choosing import CAUSE, Operator, operator, refused
from tests.repair.leading import TROUBLE, here, marks, now, opened_by
from tests.workflows.conftest import Desk
from tests.workflows.later import fresh
from tests.workflows.test_freezing import hold_back, release
from workflows.models import Hold, Step

pytestmark = pytest.mark.django_db
NEW = "/repair/incidents/new/"
HOSTILE = "<script>alert(1)</script> \u202e{{ 7 }}"


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


def page(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return answer.content.decode()


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def post(client: Client, address: str, status: int = 302, **data: Any) -> Any:
    answer = client.post(address, data)
    assert answer.status_code == status, words(answer.content.decode())[:600]
    return answer


# -- finding and opening --------------------------------------------------------------------------------------------


def test_an_empty_search_asks_for_nothing_and_a_search_writes_nothing(desk: Desk, opal: Operator) -> None:
    desk.start()
    assert "Open an incident" not in page(opal.client, NEW)
    html = page(opal.client, f"{NEW}?workflow=toy-pay")
    assert 'Touched <span class="n">1</span>' in html
    assert not Incident.objects.exists()


def test_the_list_holds_every_run_once_over_its_pages(
    desk: Desk, opal: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {str(f.make_run(desk.tenant, workflow="toy-pay").pk) for _ in range(53)}
    f.make_run(f.make_tenant("quay"), workflow="toy-pay")
    address, found = f"{NEW}?workflow=toy-pay", []
    while address:
        html = page(opal.client, address)
        found += re.findall(r'class="stretch" href="/runs/([^/]+)/"', html)
        more = re.search(r'href="([^"]+)" rel="next"', html)
        address = more[1].replace("&amp;", "&") if more else ""
    assert sorted(found) == sorted(runs)


def test_opening_leads_to_its_page_and_keeps_what_was_typed_where_it_is_refused(
    desk: Desk, opal: Operator
) -> None:
    run = desk.start()
    address = f"{NEW}?workflow=toy-pay"
    html = post(opal.client, address, 422, trouble="", hypothesis="It was rounded").content.decode()
    assert "Say in one line what looks wrong." in html
    assert "It was rounded" in html
    answer = post(opal.client, address, trouble=HOSTILE, hypothesis=HOSTILE)
    incident = Incident.objects.get()
    assert answer["Location"] == here(incident)
    html = page(opal.client, here(incident))
    assert "<script>alert" not in html
    assert "⟦U+202E⟧" in html
    assert f'href="/runs/{run.pk}/"' in html
    assert page(opal.client, "/repair/incidents/").count(here(incident)) == 1


def test_nothing_that_fits_opens_nothing(desk: Desk, opal: Operator) -> None:
    html = post(opal.client, f"{NEW}?target=order:none", 422, trouble=TROUBLE).content.decode()
    assert "No run fits this" in html
    assert not Incident.objects.exists()


def test_too_long_a_time_is_said_beside_its_field(opal: Operator) -> None:
    html = page(opal.client, f"{NEW}?since=2020-01-01T00:00:00", 422)
    assert "That is longer than 90 days." in html


def test_from_a_run_and_from_a_case_it_is_one_click(desk: Desk, opal: Operator) -> None:
    command, packet = refused(desk)
    for address in (f"/runs/{command.run_id}/", f"/repair/{packet.pk}/"):
        html = page(opal.client, address)
        link = re.search(r'href="(/repair/incidents/(?:new|like)/[^"]+)"', html)
        assert link, address
        answer = opal.client.get(link[1].replace("&amp;", "&"), follow=True)
        assert 'Touched <span class="n">1</span>' in answer.content.decode()
    html = page(opal.client, "/repair/causes/")
    assert "/repair/incidents/new/?workflow=toy-pay&amp;cause=command_refused" in html


# -- freezing -----------------------------------------------------------------------------------------------------


def test_exactly_its_runs_are_frozen_and_a_worker_that_goes_on_sends_the_others(
    desk: Desk, opal: Operator
) -> None:
    """Field report T3, end to end: find by a model, freeze those, let a worker run until nothing is due."""
    commands = [desk.approved(order=str(number)) for number in range(4)]
    wrong = commands[:2]
    for command in wrong:
        step = Step.objects.filter(run_id=command.run_id).order_by("position").first()
        assert step is not None
        step.notes = ["classifier:rules@2"]
        step.save()
    post(opal.client, f"{NEW}?model=rules@2", trouble=TROUBLE)
    incident = Incident.objects.get()
    assert set(marks(incident)) == {command.run_id for command in wrong}
    html = page(opal.client, here(incident, "freeze_incident"))
    text = words(html)
    assert "Exactly the 2 runs" in text
    assert "2 more approved actions would wait" in text
    assert "Everything of this organisation" in text
    answer = post(opal.client, here(incident, "freeze_incident"), way="runs", why="the rate is wrong")
    hold = Hold.objects.get()
    assert answer["Location"] == f"/runs/freezes/{hold.pk}/"
    hold_back()
    while desk.work():
        pass
    assert {fresh(command).status for command in wrong} == {"held"}
    assert {fresh(command).status for command in commands[2:]} == {"confirmed"}
    assert len(desk.till.calls) == 2
    html = page(opal.client, here(incident))
    assert f"/runs/freezes/{hold.pk}/" in html
    assert "2 held now" in words(html)
    assert "Exactly 2 named runs" in words(html)
    assert "1 freeze of it is in force." in words(html)
    opal.client.post(f"/runs/freezes/{hold.pk}/lift/", {"why": "version 3 is in"})
    while release():
        desk.work()
    assert {fresh(command).status for command in wrong} == {"confirmed"}


def test_what_a_freeze_can_name_is_offered_as_such_and_says_what_else_it_holds(
    desk: Desk, opal: Operator
) -> None:
    desk.approved(order="1")
    incident = opened_by(opal, workflow="toy-pay", workflow_version=1)
    text = words(page(opal.client, here(incident, "freeze_incident")))
    assert "Everything of workflow toy-pay, workflow version 1" in text
    assert "It holds what came before the time of this incident too" in text
    assert "smallest that covers" not in text
    post(opal.client, here(incident, "freeze_incident"), way="scope", why="stop it")
    hold = Hold.objects.get()
    assert (hold.workflow, hold.workflow_version, hold.runs) == ("toy-pay", 1, None)


def test_what_joins_later_is_frozen_in_its_turn(desk: Desk, opal: Operator) -> None:
    first = desk.start(order="1")
    incident = opened_by(opal)
    for _ in range(2):  # the same form twice is one freeze
        post(
            opal.client,
            here(incident, "freeze_incident"),
            way="runs",
            why="stop it",
            status=302 if _ == 0 else 422,
        )
    assert Hold.objects.get().runs == [first.pk]
    second = desk.start(order="2")
    post(opal.client, here(incident, "look_incident"))
    assert "1 of its 2 runs is in no freeze of runs." in words(page(opal.client, here(incident)))
    post(opal.client, here(incident, "freeze_incident"), way="runs", why="stop it")
    assert [hold.runs for hold in Hold.objects.order_by("placed_at")] == [[first.pk], [second.pk]]


def test_without_a_reason_nothing_is_frozen(desk: Desk, opal: Operator) -> None:
    desk.start()
    incident = opened_by(opal)
    assert "Say why" in post(opal.client, here(incident, "freeze_incident"), 422, way="runs").content.decode()
    assert not Hold.objects.exists()


# -- working off --------------------------------------------------------------------------------------------------


def tab_counts(html: str) -> dict[str, int]:
    tabs = html.partition('aria-label="Runs by what was found"')[2].partition("</nav>")[0]
    return {
        word: int(number)
        for word, number in re.findall(r'>([A-Z][a-z, ]+) <span class="n">(\d+)</span>', tabs)
    }


def test_each_number_is_the_length_of_its_list(desk: Desk, opal: Operator) -> None:
    runs = [f.make_run(desk.tenant, workflow="toy-pay").pk for _ in range(53)]
    incident = opened_by(opal)
    mark = here(incident, "mark_incident")
    post(opal.client, mark, mark="fine", item=[f"{run}.1" for run in runs[:50]])
    post(opal.client, mark, mark="repaired", words="Paid back by hand.", item=[f"{runs[50]}.1"])
    html = page(opal.client, here(incident))
    counts = tab_counts(html)
    assert counts == {
        "All": 53,
        "Not looked at": 2,
        "Looked at, fine": 50,
        "Repaired": 1,
        "Handled outside": 0,
    }
    for view, word in (("unlooked", "Not looked at"), ("fine", "Looked at, fine"), ("repaired", "Repaired")):
        assert listed(opal.client, f"{here(incident)}?mark={view}") == counts[word], view
    assert listed(opal.client, here(incident)) == 53
    assert "2 runs nobody has looked at." in html


def listed(client: Client, address: str) -> int:
    number = 0
    while address:
        html = page(client, address)
        number += html.count('name="item"')
        more = re.search(r'href="([^"]+)" rel="next"', html)
        address = more[1].replace("&amp;", "&") if more else ""
    return number


def test_what_is_refused_keeps_what_was_typed(desk: Desk, opal: Operator) -> None:
    run = desk.start()
    incident = opened_by(opal)
    mark = here(incident, "mark_incident")
    html = post(opal.client, mark, 422, mark="repaired", words="paid").content.decode()
    assert "Tick the runs that you mean." in html
    post(opal.client, mark, 422, mark="repaired", words="", item=f"{run.pk}.1")
    post(opal.client, mark, mark="repaired", words="paid", item=f"{run.pk}.1")
    html = post(opal.client, mark, 409, mark="fine", words="It was fine", item=f"{run.pk}.1").content.decode()
    assert "Somebody else has marked this run" in html
    assert "It was fine" in html
    for item in ("x", f"{run.pk}.", "é.1", f"{run.pk}.x"):
        post(opal.client, mark, 422, mark="fine", item=item)
    assert IncidentRun.objects.get().words == "paid"


def test_the_words_about_it_its_end_and_what_is_left(desk: Desk, opal: Operator) -> None:
    command, _ = refused(desk)
    incident = opened_by(opal)
    post(opal.client, here(incident, "note_incident"), words="Called the provider.")
    post(opal.client, here(incident, "note_incident"), 422, words="")
    post(opal.client, here(incident, "describe_incident"), trouble="The rate", hypothesis="Rounded twice",
         remedy="Version 3", signal="No refund above 100", owner=str(opal.user.pk), seen="1")  # fmt: skip
    html = post(
        opal.client, here(incident, "contain_incident"), 409, words="Quiet.", seen="1"
    ).content.decode()
    assert "This incident has moved since you looked at it" in html
    assert "Quiet." in html
    post(opal.client, here(incident, "contain_incident"), words="Quiet.", seen="2")
    html = page(opal.client, here(incident, "close_incident"))
    assert "1 run nobody has looked at." in html
    assert "1 case of its runs is open at the repair desk." in html
    post(opal.client, here(incident, "close_incident"), 422, cause="", words="", seen="3")
    post(opal.client, here(incident, "close_incident"), cause=CAUSE, words="Round once.", seen="3")
    assert now(incident).status == "closed"
    html = page(opal.client, here(incident))
    for said in (
        "Called the provider.",
        "Rounded twice",
        "Version 3",
        "No refund above 100",
        "Quiet.",
        CAUSE,
    ):
        assert said in html
    assert 'name="item"' not in html
    assert f"/runs/{command.run_id}/" in html


def test_two_of_its_runs_are_compared_down_to_the_first_difference(desk: Desk, opal: Operator) -> None:
    clean = desk.approved(order="1")
    desk.work()
    desk.advance()
    refused(desk, "2")
    incident = opened_by(opal)
    html = page(opal.client, here(incident))
    link = re.search(r'href="([^"]+compare/[^"]+)"', html)
    assert link
    text = words(page(opal.client, link[1].replace("&amp;", "&")))
    assert "The first difference that means something" in text
    assert str(clean.run_id)[-8:] in text or str(clean.run_id)[:8] in text
    page(opal.client, f"{here(incident, 'compare_incident')}?left=clean&right=corrected", 404)
    page(opal.client, f"{here(incident, 'compare_incident')}?left=x", 404)


def test_the_runs_that_stand_for_the_others_are_chosen_among_its_own(desk: Desk, opal: Operator) -> None:
    command, other = desk.approved(order="1"), desk.start(order="2")
    desk.work()
    desk.advance()
    incident = opened_by(opal)
    elsewhere = f.make_run(desk.tenant, workflow="toy-quiet", status="completed")
    html = page(opal.client, here(incident, "describe_incident"))
    clean = re.search(r'<select name="clean".*?</select>', html, re.DOTALL)
    assert clean
    fits, _, others = clean[0].partition('<optgroup label="Other runs of it">')
    assert f'<option value="{command.run_id}">order:1, ' in fits
    assert f'<option value="{other.pk}">' in others
    assert str(elsewhere.pk) not in html
    form = {"trouble": TROUBLE, "owner": str(opal.user.pk), "seen": "1"}
    for text in (str(elsewhere.pk), "x"):
        answer = post(opal.client, here(incident, "describe_incident"), 422, **form, clean=text)
        assert "Choose one of its runs." in answer.content.decode()
    post(opal.client, here(incident, "describe_incident"), **form, clean=str(command.run_id))
    assert now(incident).trace_clean_id == command.run_id
    assert (
        "selected"
        in page(opal.client, here(incident, "describe_incident")).partition('name="clean"')[2][:900]
    )


def test_auditors_read_and_others_do_not(desk: Desk, opal: Operator) -> None:
    desk.start()
    incident = opened_by(opal)
    auditor = operator(desk, "aud", (Role.AUDITOR,))
    html = page(auditor.client, here(incident))
    assert "<button" not in html.partition("<main")[2].partition("</main>")[0]
    page(auditor.client, NEW, 403)
    reviewer = operator(desk, "rev", (Role.REVIEWER,))
    for address in (here(incident), "/repair/incidents/", here(incident, "incident_report"), NEW):
        page(reviewer.client, address, 403)


def test_the_looked_at_time_is_said(desk: Desk, opal: Operator) -> None:
    desk.start()
    incident = opened_by(opal)
    assert "what fits joins about once a minute" in page(opal.client, here(incident))
    assert incident.looked_at <= db_clock()
