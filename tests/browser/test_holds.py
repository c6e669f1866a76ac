"""The kill switch in a real browser: freeze, see it on every page, approve under it, lift it, see it go on."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.enums import Role
from access.models import User
from audit.sealer import seal
from common.clock import db_clock
from tests import factories
from tests.browser.desks import look_at, sign_in, without_script
from tests.browser.shots import PHONE, shoot, sideways, violations
from tests.workflows.conftest import Desk
from tests.workflows.later import age, fresh
from tests.workflows.test_circuit import in_trouble, tend
from tests.workflows.test_freezing import frozen, hold_back, release, unfreeze
from tests.workflows.toy import NOTHING_CAME
from workflows.models import Command, Hold, Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(toy: Desk) -> User:
    roles = [Role.OPERATOR, Role.REVIEWER, Role.ADMIN]
    return factories.make_user(toy.tenant, "omar", roles=roles, display_name="Omar T.")


def freeze_an_operation(page: Page) -> None:
    """Through both steps of the form."""
    page.get_by_label("One operation", exact=False).check()
    page.locator("#id_operation").select_option("toy.pay")
    page.locator("#id_why").fill("The provider reports double bookings.")
    page.get_by_role("button", name="Freeze…").click()
    expect(page.locator("h1")).to_contain_text("No “Pay” (toy.pay) is newly sent")


@pytest.mark.parametrize("shape", ["desktop", "phone"])
def test_freeze_approve_see_it_held_lift_see_it_go(
    page: Page, live_server: Any, toy: Desk, operator: User, shape: str
) -> None:
    if shape == "phone":
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    proposal = toy.proposed(order="1042")
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/runs/")
    page.get_by_role("link", name="Freezes").click()
    freeze_an_operation(page)
    page.get_by_role("button", name="Freeze now").click()
    expect(page.locator(".proof h2")).to_have_text("0 newly sent between the drain and now")
    assert (violations(page), sideways(page)) == ([], 0)

    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    expect(page.locator("aside.freeze")).to_contain_text("Frozen: Operation toy.pay, since")
    expect(page.get_by_text("You may decide; what is approved is held")).to_be_visible()
    if shape == "desktop":
        shoot(page, "holds-proposal", full=False)
    assert (violations(page), sideways(page)) == ([], 0)
    toy.decide(proposal)
    toy.work()
    hold_back()
    page.goto(f"{live_server.url}/runs/{proposal.run_id}/")
    expect(page.locator("#run > header .notice")).to_contain_text("Degraded.")
    page.get_by_role("link", name="What holds it, since when, and why").click()
    expect(page.locator("#hold-now .notice")).to_contain_text("1 action is held by it now.")
    assert toy.till.calls == []

    page.locator("#id_why").fill("They had shown them twice.")
    page.get_by_role("button", name="Lift the freeze").click()
    expect(page.locator("#hold-now .notice")).to_contain_text("Being lifted.")
    expect(page.locator("aside.freeze")).to_have_count(0)
    while release():
        pass
    expect(page.locator("#hold-now .notice")).to_contain_text("Lifted.")
    expect(page.locator("#hold-now")).not_to_have_attribute("hx-trigger", "every 2s")
    expect(page.locator("#hold-rest")).to_contain_text("Let go: a worker checks them once more")
    expect(page.locator(".proof h2")).to_have_text("0 newly sent between the drain and the lift")
    toy.work()
    toy.advance()
    page.goto(f"{live_server.url}/runs/{proposal.run_id}/")
    expect(page.locator("#run > header .notice")).to_contain_text("Completed: paid.")
    assert len(toy.till.calls) == 1


def test_how_the_pages_look(page: Page, live_server: Any, toy: Desk, operator: User) -> None:
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/runs/freezes/")
    look_at(page, "holds-none")
    on_its_way = toy.approved(order="1001")
    toy.till.answers.append(NOTHING_CAME)
    toy.work()
    for number in range(3):
        toy.approved(order=f"20{number}")
    freeze_an_operation(page)
    look_at(page, "holds-confirm")
    page.get_by_role("button", name="Freeze now").click()
    page.wait_for_url("**/runs/freezes/*-*/")
    hold = Hold.objects.get()
    hold_back()
    seal(db_clock)
    page.reload()
    look_at(page, "hold-frozen")
    frozen(toy, target="order:205")
    lapsing = Command.objects.filter(status="held").order_by("created_at").first()
    assert lapsing is not None
    age(lapsing.run_id, 3600, "approvals_proposal")
    unfreeze(hold)
    page.reload()
    look_at(page, "hold-lifting")
    while release():
        pass
    page.reload()
    expect(page.get_by_role("button", name="Ask again about")).to_be_visible()
    look_at(page, "hold-lifted")
    assert fresh(on_its_way).status == "unknown"
    unfreeze(Hold.objects.get(target="order:205"))
    release()
    frozen(toy, tenant_id=None)
    page.goto(f"{live_server.url}/runs/freezes/")
    look_at(page, "holds")
    page.goto(f"{live_server.url}/runs/")
    shoot(page, "holds-runs", full=False)
    page.goto(f"{live_server.url}/review/")
    shoot(page, "holds-review", full=False)


def test_a_form_with_mistakes_and_an_open_circuit(
    page: Page, live_server: Any, toy: Desk, operator: User
) -> None:
    in_trouble(toy, 5)
    toy.approved(order="next")
    hold_back()
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/runs/freezes/")
    page.get_by_label("One target", exact=False).check()
    page.get_by_role("button", name="Freeze…").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    look_at(page, "holds-mistakes")
    page.goto(f"{live_server.url}/runs/freezes/{Hold.objects.get().pk}/")
    look_at(page, "hold-circuit")
    tend()
    page.reload()
    look_at(page, "hold-trial")


def test_everything_works_without_script(
    browser: Browser, live_server: Any, toy: Desk, operator: User
) -> None:
    command = toy.approved(order="1042")
    with without_script(browser, live_server.url, operator) as page:
        page.goto(f"{live_server.url}/runs/freezes/")
        freeze_an_operation(page)
        page.get_by_role("button", name="Go back").click()
        expect(page.locator("#id_why")).to_have_value("The provider reports double bookings.")
        expect(page.locator("#id_operation")).to_have_value("toy.pay")
        page.get_by_role("button", name="Freeze…").click()
        page.get_by_role("button", name="Freeze now").click()
        hold_back()
        age(command.run_id, 3600, "approvals_proposal")
        page.reload()
        expect(page.locator("#hold-rest")).to_contain_text("it will lapse, not be sent")
        page.locator("#id_why").fill("They had shown them twice.")
        page.get_by_role("button", name="Lift the freeze").click()
        while release():
            pass
        page.reload()
        page.get_by_role("button", name="Ask again about order:1042").click()
        expect(page.locator("#toasts")).to_contain_text("A new version waits for a decision.")
        assert Run.objects.get(pk=command.run_id).status == "waiting_for_approval"
