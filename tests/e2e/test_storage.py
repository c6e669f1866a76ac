"""I27: a database that takes no changes, or is away. Nothing is sent, everybody is told, and work goes on by itself."""

import json
from pathlib import Path

import pytest
from django.db.models import QuerySet

from approvals.models import Decision
from common.ids import new_id
from tests.api.callers import token_for
from tests.approvals.test_views import sent
from tests.e2e import outages
from tests.e2e.fleet import Fleet, eventually
from tests.e2e.web import Answer, Web
from workflows.doorbell import ring
from workflows.models import Command

pytestmark = pytest.mark.django_db
WORDS = "The parcel arrived after all."


class Desk:
    """A web server with a page that is open in a browser, and an automation."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.agent = {"Authorization": f"Bearer {token_for(fleet.tenant)}"}
        self.proposal = fleet.proposed()
        self.web = Web(fleet.processes)
        self.web.sign_in(fleet.reviewer)
        self.page = self.web.get(f"/review/{self.proposal.pk}/")
        assert self.page.status == 200

    def ready(self) -> tuple[int, str]:
        answer = self.web.get("/readyz", Cookie="")
        return answer.status, answer.json["database"]

    def propose(self, event: str) -> Answer:
        body = {
            "workflow": "refund-desk-agent", "source": {"system": "test", "event_id": event}, "key": "1",
            "operation": "refunds.issue", "arguments": self.fleet.arguments(), "reason": "It is damaged.",
        }  # fmt: skip
        headers = {"Cookie": "", **self.agent}
        return self.web.post_json("/api/v1/proposals", body, **headers)

    def reject(self) -> Answer:
        form = sent(self.proposal, "reject", self.page.text, reason_code="other", reject_reason=WORDS)
        return self.web.post_form(f"/review/{self.proposal.pk}/decide/", form, self.page)


@pytest.fixture
def desk(fleet: Fleet) -> Desk:
    return Desk(fleet)


def refused_everywhere(desk: Desk, event: str) -> None:
    """Whoever wants something changed hears *not now*, and keeps their words."""
    answer = desk.propose(event)
    assert answer.is_problem(503, "unavailable"), answer.text
    assert answer.headers["retry-after"] == "5"
    answer = desk.reject()
    assert answer.status == 503, answer.text
    assert WORDS in answer.text


def it_goes_on(desk: Desk, commands: list[Command]) -> None:
    """Without anybody's help: what was approved is done once, and requests are taken again."""
    eventually(lambda: desk.ready() == (200, "ok"), seconds=30)
    desk.fleet.wait_until_ended(commands, seconds=90, between=ring)
    desk.fleet.each_took_effect_once(commands)
    assert desk.propose("afterwards").status == 201
    assert desk.reject().status == 302
    assert Decision.objects.filter(proposal=desk.proposal, kind="reject").count() == 1
    assert " 500" not in desk.fleet.processes.log("web")


def tried_in_vain(fleet: Fleet, times: int) -> None:
    """Worker and sweep have tried, and are still there. A sweep that has just begun does not come to a round."""

    def tries() -> int:
        log = fleet.processes.log("sweep")
        return log.count("left_to_the_next_round") + log.count("database_away")

    before = tries()
    eventually(
        lambda: tries() >= before + times,
        seconds=150,
        between=ring,
        what=lambda: fleet.processes.log("sweep")[-3000:],
    )
    assert all(process.poll() is None for process in fleet.processes.running)


def start(fleet: Fleet) -> None:
    fleet.start_worker()
    fleet.processes.sweep("--every", "0.2")


def test_a_read_only_database_sends_nothing(desk: Desk) -> None:
    with outages.read_only():
        start(desk.fleet)  # they begin where nothing can be written, and are not started again
        assert desk.ready() == (503, "read only")
        refused_everywhere(desk, "read-only")
        assert desk.web.get("/review/").status == 200  # what can be read is shown
    commands = desk.fleet.approve(3)
    eventually(lambda: Command.objects.filter(status="confirmed").count() == 3, seconds=90, between=ring)
    more = desk.fleet.approve(3)
    it_goes_on(desk, commands + more)


def not_sent() -> QuerySet[Command]:
    return Command.objects.filter(status__in=("ready", "claimed"))


def each_effect_has_its_sent(fleet: Fleet) -> None:
    """What the provider did was first written down; a page that is there may have taken a few rows more."""
    done = set(fleet.effects())
    assert done.isdisjoint(not_sent().values_list("idempotency_key", flat=True))


def test_a_full_disk_sends_nothing(desk: Desk) -> None:
    """More actions than the pages that are there have room for: at some point none can be written down any more."""
    with outages.small_disk() as disk:
        commands = desk.fleet.approve(30)
        disk.fill()
        start(desk.fleet)
        tried_in_vain(desk.fleet, 3)
        eventually(lambda: desk.propose(new_id().hex).status == 503, seconds=60)
        assert desk.ready() == (503, "disk full")
        refused_everywhere(desk, "full")
        each_effect_has_its_sent(desk.fleet)
        assert not_sent().exists()
        disk.free()
        it_goes_on(desk, commands)


def test_a_server_that_is_gone_is_waited_for(desk: Desk) -> None:
    """Worker and sweep lose their connections, keep trying, and need nobody to start them again."""
    start(desk.fleet)
    eventually(lambda: " ready." in desk.fleet.processes.log("worker"), seconds=90)
    commands = desk.fleet.approve(4)
    with outages.no_connections():
        assert desk.ready() == (503, "down")
        answer = desk.propose("gone")
        assert answer.is_problem(503, "unavailable"), answer.text
        answer = desk.reject()
        assert answer.status == 503, answer.text
        assert desk.web.get("/review/").status == 503
        assert desk.web.get("/healthz", Cookie="").status == 200
        tried_in_vain(desk.fleet, 3)
    outages.crash()
    it_goes_on(desk, commands)


def test_no_statement_lock_or_transaction_lasts_for_ever(fleet: Fleet, tmp_path: Path) -> None:
    """S40, in each kind of process, as its connections themselves say."""
    seen = tmp_path / "seen"
    seen.mkdir()
    fleet.processes.env |= {
        "DJANGO_SETTINGS_MODULE": "tests.e2e.watched.settings",
        "PLACET_TEST_SEEN": str(seen),
    }
    Web(fleet.processes)
    start(fleet)
    eventually(lambda: len(list(seen.iterdir())) >= 3, seconds=90, between=ring)
    shown = [json.loads(line) for file in seen.iterdir() for line in file.read_text().splitlines()]
    wanted = {
        "statement_timeout": "15s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "30s",
        "synchronous_commit": "on",
    }  # fmt: skip
    assert all(wanted.items() <= found.items() for found in shown), shown
    assert {found["session_user"] for found in shown} <= {"placet_app", "placet_system"}
