"""What was written about an incident goes with the last of its runs, or when an admin says so; not while it is open."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from access.management.operator import at_the_console
from audit.actors import clock_actor
from audit.models import Event
from common.clock import db_clock
from common.content_errors import ERASED_TEXT, ContentInUse, ContentOnHold
from repair.incidents.acting import close, contain, note
from repair.incidents.erasing import erase_incident, look
from repair.models_incidents import Incident
from tests.repair.choosing import Operator, operator
from tests.repair.leading import about, here, now, opened_by
from tests.workflows.conftest import Desk, person
from tests.workflows.test_erasing import ended, erase, hold
from workflows.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


def closed(opal: Operator) -> tuple[Incident, Run]:
    run = ended(opal.desk)
    incident = opened_by(opal)
    by = person(opal.user)
    note(**about(incident, by), words="Jane Roe called.")
    close(**about(incident, by), seen=incident.state_version, cause="A rate was wrong", words="Jane agreed.")
    return now(incident), run


def erase_it(incident: Incident) -> bool:
    return erase_incident(
        tenant_id=incident.tenant_id, incident_id=incident.pk, why="file-17", by=at_the_console(), clock=db_clock
    )  # fmt: skip


def test_it_goes_with_the_last_of_its_runs(opal: Operator) -> None:
    incident, run = closed(opal)
    assert look(clock_actor(), db_clock) == 0
    erase(opal.desk, run)
    assert look(clock_actor(), db_clock) == 1
    assert look(clock_actor(), db_clock) == 0
    after = now(incident)
    assert {after.trouble, after.hypothesis, *(one.words for one in after.notes.exclude(words=""))} == {
        ERASED_TEXT
    }
    event = Event.objects.get(kind="incident.content_erased")
    assert (event.subject_id, event.reason, event.performed_by) == (incident.pk, "retention", "clock:sweep")


def test_not_while_it_is_open(opal: Operator) -> None:
    ended(opal.desk)
    incident = opened_by(opal)
    with pytest.raises(ContentInUse):
        erase_it(incident)
    contain(**about(incident, person(opal.user)), seen=1, words="Stopped.")
    with pytest.raises(ContentInUse):
        erase_it(incident)


def test_the_hold_of_one_of_its_runs_keeps_it(opal: Operator) -> None:
    incident, run = closed(opal)
    hold(opal.desk, run)
    with pytest.raises(ContentOnHold):
        erase_it(incident)
    assert now(incident).trouble != ERASED_TEXT


def test_its_pages_say_erased(opal: Operator) -> None:
    incident, _ = closed(opal)
    assert erase_it(incident)
    assert not erase_it(incident)
    for address in (here(incident), here(incident, "incident_report"), "/repair/incidents/"):
        answer: Any = opal.client.get(address)
        assert (answer.status_code, "Jane" in answer.content.decode()) == (200, False), address
        assert "erased" in answer.content.decode()


def test_the_command(opal: Operator) -> None:
    incident, _ = closed(opal)
    out = StringIO()
    call_command("incident", "erase", "harbour", str(incident.pk), "--why", "file-17", stdout=out)
    assert out.getvalue().strip() == "Erased."
    with pytest.raises(CommandError):
        call_command("incident", "erase", "harbour", "nonsense", "--why", "file-17")
