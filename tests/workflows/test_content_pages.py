"""What is kept, on the page of those who answer for it: found, held, erased, and said in words why not."""

from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from access.models import User
from approvals.models import Decision, Proposal
from audit.models import Event
from common.content_errors import ERASED_TEXT
from common.models import ContentKey
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import Desk
from tests.workflows.test_endpoint_pages import at
from tests.workflows.test_erasing import ended, hold
from workflows.models import LegalHold, Run

pytestmark = pytest.mark.django_db
PAGE = "/people/contents/"


@pytest.fixture
def admin(desk: Desk) -> User:
    return make_user(desk.tenant, "adam", roles=[Role.ADMIN])


def rejected(desk: Desk, words: str, order: str = "1042") -> Run:
    proposal = desk.proposed(order=order)
    desk.decide(proposal, "reject", reason=words)
    desk.advance()
    return Run.objects.get(pk=proposal.run_id)


def text(answer: Any) -> str:
    return str(answer.content.decode())


def look(client: Client, word: str) -> str:
    answer = client.post(f"{PAGE}find/", {"word": word, "why": "request-7"})
    assert answer.status_code == 200
    return text(answer)


def test_a_persons_data_is_found_listed_and_erased_from_the_page(desk: Desk, admin: User) -> None:
    mine, other = rejected(desk, "Jane ROE told me so."), rejected(desk, "No.", "1043")
    live = Run.objects.get(pk=desk.proposed(order="1044").run_id)
    client = at(admin)
    found = look(client, "jane roe")
    assert (str(mine.pk) in found, str(other.pk) in found) == (True, False)
    assert "told me so" not in found
    ids = [str(mine.pk), str(live.pk)]
    asked = text(client.post(f"{PAGE}erase/", {"run": ids}))
    assert "Erase what one run held?" in asked
    assert "it is not over" in asked
    assert not Event.objects.filter(kind="run.content_erased").exists()
    assert client.post(f"{PAGE}erase/", {"run": ids, "sure": "yes", "why": ""}).status_code == 422
    done = text(client.post(f"{PAGE}erase/", {"run": ids, "sure": "yes", "why": "request-7"}, follow=True))
    assert "1 of 2 erased. Not erased:" in done
    assert Decision.objects.get(proposal__run_id=mine.pk).reason == ERASED_TEXT
    event = Event.objects.get(kind="run.content_erased")
    assert (event.run_id, event.performed_by, event.reason) == (mine.pk, f"user:{admin.pk}", "request-7")
    assert "Nothing is kept under that" in look(client, "jane roe")


def test_that_somebody_looked_is_written_down_and_the_word_is_not(desk: Desk, admin: User) -> None:
    rejected(desk, "Jane Roe told me so.")
    look(at(admin), "Jane Roe")
    event = Event.objects.get(kind="tenant.contents_searched")
    assert (event.reason, event.body) == ("request-7", {"found": 1})
    assert "Jane" not in f"{event.reason}{event.body}{event.request_id}"


def test_runs_are_found_by_what_they_are_about(desk: Desk, admin: User) -> None:
    run = ended(desk)
    target = Proposal.objects.get(run_id=run.pk).target
    for about in (str(run.pk), target, "1042", run.source_event_id):
        assert str(run.pk) in text(at(admin).get(PAGE, {"about": about})), about
    assert f"toy-pay, <bdi>{target}</bdi>" in text(at(admin).get(PAGE, {"about": str(run.pk)}))
    assert "Nothing is kept" in text(at(admin).get(PAGE, {"about": "order:none"}))


def test_a_hold_is_placed_seen_and_lifted(desk: Desk, admin: User) -> None:
    run, client = ended(desk), at(admin)
    bad = client.post(f"{PAGE}holds/new/", {"about": "target", "value": "", "why": "file-18"})
    assert (bad.status_code, "Say which." in text(bad)) == (422, True)
    client.post(f"{PAGE}holds/new/", {"about": "target", "value": "order:1042", "why": "file-18"})
    found = LegalHold.objects.get()
    assert "Target order:1042" in text(client.get(PAGE))
    assert "a legal hold keeps it" in text(client.get(PAGE, {"about": str(run.pk)}))
    client.post(f"{PAGE}holds/{found.pk}/lift/", {"sure": "yes", "why": "over"})
    assert LegalHold.objects.get().lift_why == "over"
    client.post(f"{PAGE}runs/{run.pk}/hold/", {"sure": "yes", "why": "file-19"})
    assert ContentKey.objects.get(run_id=run.pk).hold_reason == "file-19"
    assert "file-19" in text(client.get(PAGE))
    client.post(f"{PAGE}runs/{run.pk}/release/", {"sure": "yes", "why": "over"})
    assert ContentKey.objects.get(run_id=run.pk).held_at is None
    client.post(f"{PAGE}holds/new/", {"about": "person", "person": _membership(desk), "why": "file-20"})
    assert LegalHold.objects.get(lifted_at=None).person == f"user:{desk.ada.pk}"


def _membership(desk: Desk) -> str:
    from access.models import Membership

    return str(Membership.objects.get(user=desk.ada, tenant=desk.tenant).pk)


def test_auditors_read_and_others_are_not_let_in(desk: Desk) -> None:
    run = ended(desk)
    hold(desk, run)
    auditor = at(make_user(desk.tenant, "anna", roles=[Role.AUDITOR]))
    page = text(auditor.get(PAGE, {"about": str(run.pk)}))
    assert ("a legal hold keeps it" in page, "Look through everything" in page) == (True, False)
    assert auditor.post(f"{PAGE}find/", {"word": "Jane", "why": "x"}).status_code == 403
    assert auditor.post(f"{PAGE}erase/", {"run": [str(run.pk)]}).status_code == 403
    assert at(desk.ada).get(PAGE).status_code == 403


def test_another_organisations_runs_are_missing(desk: Desk) -> None:
    run = rejected(desk, "Jane Roe told me so.")
    stranger = at(make_user(make_tenant("lagoon"), "stan", roles=[Role.ADMIN]))
    assert "Nothing is kept" in text(stranger.get(PAGE, {"about": str(run.pk)}))
    assert "Nothing is kept" in look(stranger, "Jane Roe")
    assert stranger.post(f"{PAGE}erase/", {"run": [str(run.pk)]}).status_code == 404
    assert stranger.post(f"{PAGE}runs/{run.pk}/hold/", {"sure": "yes", "why": "x"}).status_code == 404


def test_nothing_ticked_is_nothing_done(desk: Desk, admin: User) -> None:
    assert "Nothing was ticked" in text(at(admin).post(f"{PAGE}erase/", {}, follow=True))
