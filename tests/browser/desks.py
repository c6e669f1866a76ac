"""What the browser tests of runs, repair and history share: a session, one scene of everything, a critical look."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page

from access.models import User
from audit.actors import worker_actor
from audit.sealer import seal
from common.clock import db_clock
from tests import factories
from tests.browser.shots import SHAPE, objections, shoot, sideways, violations
from tests.workflows.conftest import Desk
from tests.workflows.toy import NOTHING_CAME
from workflows.authoring import Observation
from workflows.enums import CommandStatus, RunStatus
from workflows.models import Command
from workflows.operations import Finding
from workflows.worker import reconcile as reconciler

NARROW = {"width": 320, "height": 800}
REFUSED = Observation(sent=True, status=422, detail="over the limit", code="over_limit")


def sign_in(page: Page, address: str, user: User) -> None:
    """Give the browser a session of ``user``."""
    client = Client()
    client.force_login(user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": address}])


@contextmanager
def without_script(browser: Browser, address: str, user: User) -> Iterator[Page]:
    """A page of a browser that runs no script."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
    page = context.new_page()
    sign_in(page, address, user)
    try:
        yield page
    finally:
        context.close()


def look_at(page: Page, name: str) -> None:
    """No axe violation in light or dark; nothing to scroll sideways on a narrow phone, and nothing hidden there."""
    shoot(page, name)
    assert objections(page) == []
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    assert sideways(page) == 0
    assert violations(page, SHAPE) == []
    page.set_viewport_size({"width": 1280, "height": 900})


def scene(desk: Desk) -> dict[str, Any]:
    """Runs in every kind of state, by name, made by the real engine and worker where that is quick."""
    done = desk.approved(order="1001")
    desk.work()
    desk.advance()
    made: dict[str, Any] = {
        "done": done.run_id,
        "waiting": desk.proposed(order="1002", record="crm:7", sequence=4).run_id,
    }
    unknown = desk.approved(order="1003")
    desk.till.answers.append(NOTHING_CAME)
    desk.work()
    desk.till.findings.append(Finding("not_found", detail="no booking with this key"))
    reconciler.reconcile(unknown.pk, by=worker_actor("w-2"), clock=db_clock, worker="w-2")
    refused = desk.approved(order="1004")
    desk.till.answers.append(REFUSED)
    desk.work()
    declined = desk.proposed(order="1005")
    desk.decide(declined, "reject")
    desk.advance()
    made |= {"unknown": unknown.run_id, "refused": refused.run_id, "declined": declined.run_id}
    made["held"] = held(desk, "order:1006").run_id
    odd = factories.make_run(
        desk.tenant, source_event_id="mail \u202e77\u200b31 <b>", source_system="helpdesk"
    )
    made["odd"] = odd.pk
    lost = factories.make_run(desk.tenant, status=RunStatus.MANUAL_REPAIR)
    factories.make_packet(
        lost, cause="stalled", owner="toy-desk", summary="The action has been ready for too long."
    )
    seal(db_clock)
    return made


def held(desk: Desk, target: str) -> Command:
    """A command that a freeze holds back; nothing in this release makes one by itself."""
    run = factories.make_run(desk.tenant, status=RunStatus.DEGRADED)
    proposal = factories.make_proposal(run, status="approved", target=target, business_key=f"hmac:{target}")
    return factories.make_command(proposal, status=CommandStatus.HELD)
