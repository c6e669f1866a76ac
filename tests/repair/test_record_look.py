"""Look at the related record now: read once, kept with the case, and nothing else changes."""

from typing import Any

import pytest

from audit.models import Event
from repair.packet.case import case_of
from repair.packet.record import record_part
from repair.selectors import get_packet
from tests.repair.choosing import Operator, now, operator, packet_of, refused, unknown
from tests.workflows.conftest import Desk
from tests.workflows.later import end_of
from tests.workflows.test_worker_answers import UNKNOWN
from tests.workflows.toy import ToyPay
from workflows.models import Document
from workflows.results import SourceDown

pytestmark = pytest.mark.django_db


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


def record_of(packet: Any) -> dict[str, Any]:
    row = get_packet(packet.tenant_id, packet.pk)
    found = record_part(case_of(row), row.opened_at)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("tag", "changed", "told"), [("v1", "no", "as the reviewer saw it"), ("v2", "yes", "order:")]
)
def test_what_is_found_stands_beside_what_the_reviewer_saw(
    desk: Desk, opal: Operator, tag: str, changed: str, told: str
) -> None:
    command, packet = unknown(desk)
    assert record_of(packet)["changed_since"] == "not known"
    desk.till.tags["1042"] = tag
    answer = opal.choose(packet, "look_at_record", words="")
    assert answer.status_code == 302
    [pin] = record_of(packet)["pins"]
    assert (pin["then"], pin["now"], pin["same"]) == ("v1", tag, tag == "v1")
    assert pin["now_at"] > pin["then_at"]
    assert record_of(packet)["changed_since"] == changed
    assert told in opal.client.get(f"/repair/{packet.pk}/").content.decode()
    # It was a look: the case stays open, and nothing was sent.
    assert (now(packet).status, end_of(command), len(desk.till.calls)) == ("open", UNKNOWN, 1)
    [event] = Event.objects.filter(kind="run.record_looked", run_id=command.run_id)
    assert event.body["same"] is (tag == "v1")
    assert tag not in str(event.body)  # a version may be anything: it is kept under the run's key


def test_the_newest_look_counts(desk: Desk, opal: Operator) -> None:
    _, packet = refused(desk)
    for tag in ("v2", "v3"):
        desk.till.tags["1043"] = tag
        assert opal.choose(packet, "look_at_record", words="").status_code == 302
    [pin] = record_of(packet)["pins"]
    assert pin["now"] == "v3"
    assert Document.objects.filter(kind="record.look").count() == 2


def test_a_source_that_does_not_answer_leaves_all_as_it_was(
    desk: Desk, opal: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any) -> Any:
        raise SourceDown("till")

    _, packet = unknown(desk)
    monkeypatch.setattr(ToyPay, "look", down)
    answer = opal.choose(packet, "look_at_record", words="")
    assert answer.status_code == 503
    assert "source_unavailable" in answer.content.decode()
    assert not Document.objects.filter(kind="record.look").exists()
    assert record_of(packet)["changed_since"] == "not known"


def test_it_is_not_offered_where_nothing_is_rested_on(desk: Desk, opal: Operator) -> None:
    def broken(context: Any) -> Any:
        raise ZeroDivisionError

    desk.till.stages["read"] = broken
    run = desk.start()
    desk.advance()
    assert opal.offered(packet_of(run.pk))["look_at_record"] == "no_record"
    assert opal.choose(packet_of(run.pk), "look_at_record", words="").status_code == 409
