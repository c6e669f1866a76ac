"""The report: what is in it, that it verifies offline, that texts mean nothing in it, and what never leaves."""

import json
from base64 import b64encode

import pytest

from access.enums import Role
from audit.models import Event
from common import signing, verify_packet
from common.clock import db_clock
from repair.enums import Mark
from repair.incidents.acting import Texts, mark, note, open_incident
from repair.incidents.criteria import Criteria
from repair.models_incidents import Incident
from tests.api.conftest import world
from tests.repair.choosing import Operator, operator, refused
from tests.repair.leading import about, criteria, here, opened_by
from tests.repair.test_packet_canaries import signed_in
from tests.security.test_canaries import Planted, hits, personal, planted
from tests.security.test_hostile_text import log
from tests.workflows.conftest import Desk, desk, person
from tests.workflows.secrets_file import secrets_file

__all__ = ["desk", "log", "planted", "secrets_file", "world"]
pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]
HOSTILE = "`# x` | <b>y</b> ![z](http://evil.example) \u202e\n## new"


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


def taken(who: Operator, incident: Incident, kind: str) -> bytes:
    page = {"json": "incident_json", "md": "incident_markdown"}[kind]
    answer = who.client.post(here(incident, page))
    assert answer.status_code == 200
    return bytes(answer.content)


def test_it_says_what_was_done_and_what_is_left(desk: Desk, opal: Operator) -> None:
    clean = desk.approved(order="1")
    desk.work()
    desk.advance()
    failed, _ = refused(desk, "2")
    incident = opened_by(opal)
    opal.client.post(here(incident, "freeze_incident"), {"way": "runs", "why": "stop"})
    found = json.loads(taken(opal, incident, "json"))
    assert found["format"] == "placet.incident.v1"
    assert {row["run"] for row in found["affected"]} == {str(clean.run_id), str(failed.run_id)}
    assert found["runs"] == {
        "total": 2, "more_fit": False,
        "by_mark": {"unlooked": 2, "fine": 0, "repaired": 0, "handled_outside": 0},
    }  # fmt: skip
    assert found["unfinished"] == [
        "2 runs nobody has looked at.", "1 case of its runs is open at the repair desk.", "1 freeze of it is in force.",
        "Nobody has said that it is contained.",
    ]  # fmt: skip
    assert [row["what"] for row in found["history"]] == ["opened", "frozen"]
    assert found["freezes"][0]["scope"] == "exactly 2 named runs"
    [pair] = found["differences"]
    assert (pair["left"], pair["right"]) == ("clean", "failed")
    assert pair["first"]["left"] != pair["first"]["right"]
    html = opal.client.get(here(incident, "incident_report")).content.decode()
    assert "Where clean and failed part" in html
    assert "2 runs nobody has looked at." in html


def test_who_took_it_is_written_down_and_the_file_verifies_offline(desk: Desk, opal: Operator) -> None:
    desk.start()
    incident = opened_by(opal)
    made = taken(opal, incident, "json")
    keys = verify_packet.read_keys(b64encode(signing.public_key()))
    assert verify_packet.check(made, keys)[0]
    assert not verify_packet.check(made.replace(b'"unlooked":1', b'"unlooked":0'), keys)[0]
    assert not verify_packet.check(made.replace(b"placet.incident.v1", b"placet.packet.v1"), keys)[0]
    taken(opal, incident, "md")
    events = Event.objects.filter(subject_id=incident.pk, kind="incident.exported").order_by("at", "id")
    assert [event.body["as"] for event in events] == ["json", "md"]
    assert all(event.digest and event.performed_by == f"user:{opal.user.pk}" for event in events)


def test_texts_mean_nothing_in_the_markdown(desk: Desk, opal: Operator) -> None:
    desk.start()
    incident = opened_hostile(desk, opal)
    text = taken(opal, incident, "md").decode()
    outside = "".join(text.split("`")[::2])
    for mark_ in ("<b>", "![", "evil.example", "## new"):
        assert mark_ not in outside
    assert "⟦U+202E⟧" in text
    assert "\u202e" not in text


def opened_hostile(desk: Desk, opal: Operator) -> Incident:
    return open_incident(
        tenant_id=desk.tenant.pk, criteria=criteria(workflow="toy-pay"), by=person(opal.user), clock=db_clock,
        texts=Texts(HOSTILE, HOSTILE, HOSTILE, HOSTILE),
    )  # fmt: skip


def test_notes_and_words_about_one_run_stay_in_the_house(desk: Desk, opal: Operator) -> None:
    run = desk.start()
    incident, by = opened_by(opal), person(opal.user)
    note(**about(incident, by), words="Jane Roe called.")
    mark(**about(incident, by), rows=[(run.pk, 1)], mark=Mark.REPAIRED, words="Jane Roe was paid.")
    for kind in ("json", "md"):
        text = taken(opal, incident, kind).decode()
        assert "Jane" not in text
        assert "repaired" in text
    assert "Jane Roe was paid." in opal.client.get(here(incident)).content.decode()


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.OWNER, Role.ADMIN, Role.AUDITOR])
def test_no_personal_value_and_no_secret_of_any_run_is_in_it(planted: Planted, role: Role) -> None:
    """Field report S1, I30: whoever takes it, of everything that was planted."""
    desk = planted.world.desk
    opal = operator(desk, "odile")
    incident = opened_wide(desk, opal)
    client = signed_in(planted, role)
    for page in ("incident_json", "incident_markdown"):
        text = client.post(here(incident, page)).content.decode()
        assert personal(text) == []
        assert hits(text, planted.secrets) == []
    for page in ("incident", "incident_report"):
        shown = client.get(here(incident, page)).content.decode()
        assert hits(shown, planted.secrets) == []
        assert personal(shown) == []


def opened_wide(desk: Desk, opal: Operator) -> Incident:
    """Every run of the organisation."""
    since = criteria().since
    return open_incident(
        tenant_id=desk.tenant.pk, criteria=Criteria(since=since), texts=Texts("All of it"), by=person(opal.user),
        clock=db_clock,
    )  # fmt: skip
