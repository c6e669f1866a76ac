"""Replays on pages: the form and what it would do, marks and links, and two runs beside each other."""

from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.test import Client

from access.enums import Role
from access.management.operator import at_the_console
from approvals.models import Proposal
from common.clock import db_clock
from common.disclosure import Recipient
from common.sealed import is_erased
from repair.comparing import Weight, compare_runs
from repair.marks import marks_of
from repair.replay.rules import CannotReplay
from tests import factories
from tests.api.callers import as_json, automation, token_for
from tests.repair.replaying import advance, anew, dry, given_up, operator_of, paid, replayed, through
from tests.workflows.conftest import Desk
from tests.workflows.later import age, look_up, recover
from tests.workflows.toy import NOTHING_CAME
from workflows.actions.erasing import erase_content
from workflows.authoring import Finding, Propose
from workflows.enums_replays import Versions
from workflows.models import Command, Replay, Run
from workflows.screens.story import story_of

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script> \u202egnp.exe"


@pytest.fixture
def omar(desk: Desk, client: Client) -> Client:
    client.force_login(operator_of(desk))
    return client


def post(client: Client, run: Run, decision: str = "do", **fields: str) -> HttpResponse:
    data = {"versions": "now", "effects": "dry", "reason": "to see it", "decision": decision} | fields
    return client.post(f"/repair/run/{run.pk}/replay/", data)


def page(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status
    return answer.content.decode()


def test_the_form_says_what_each_step_would_do_before_it_is_made(omar: Client, desk: Desk) -> None:
    original = paid(desk)
    html = page(omar, f"/repair/run/{original.pk}/replay/")
    assert "is prepared and judged, and nothing is proposed" in html
    assert "It has happened: what was done is not done again." in html
    answer = post(omar, original, "look", effects="propose", reason="")
    html = answer.content.decode()
    assert "None of its effects may be proposed anew." in html
    assert not Replay.objects.exists()
    other = given_up(desk, order="7")
    html = post(omar, other, "look", effects="propose", reason="").content.decode()
    assert "is proposed anew, and done only once it is approved anew" in html
    assert "This field is required" not in html
    assert not Replay.objects.exists()


def test_it_is_made_marked_and_listed_on_both_pages(omar: Client, desk: Desk) -> None:
    original = paid(desk)
    answer = post(omar, original, reason=HOSTILE)
    made = Run.objects.get(kind="replay")
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{made.pk}/")
    advance()
    html = page(omar, f"/runs/{made.pk}/")
    assert "Replayed" in html
    assert f"Replay of {str(original.pk)[:8]}" in html
    assert "prepared_not_proposed" in html
    assert f'href="/runs/{original.pk}/"' in html
    assert f"/repair/run/{made.pk}/compare/" in html
    assert "<script>alert" not in html
    assert "\u202e" not in html
    assert "The requester was told" not in html
    html = page(omar, f"/runs/{original.pk}/")
    assert f'href="/runs/{made.pk}/"' in html
    assert f"/repair/run/{original.pk}/replay/" in html


def test_what_is_refused_is_said_and_what_was_typed_stays(omar: Client, desk: Desk) -> None:
    original = paid(desk)
    answer = post(omar, original, effects="propose", reason="I want it so")
    html = answer.content.decode()
    assert answer.status_code == 409
    assert "nothing_to_propose" in html
    assert "I want it so" in html
    assert post(omar, original, reason="").status_code == 422
    assert post(omar, original, versions="both").status_code == 422
    assert not Replay.objects.exists()


def test_only_the_repair_desk_replays_and_only_its_own_organisation(client: Client, desk: Desk) -> None:
    original = paid(desk)
    theirs = factories.make_run()
    for role, status in ((Role.REVIEWER, 403), (Role.AUDITOR, 403), (Role.OWNER, 200), (Role.ADMIN, 200)):
        client.force_login(factories.make_user(desk.tenant, f"one-{role}", roles=[role]))
        page(client, f"/repair/run/{original.pk}/replay/", status)
        assert ("Replay this run" in page(client, f"/repair/run/{original.pk}/replays/")) is (status == 200)
        for part in ("replays", "compare"):
            page(client, f"/repair/run/{theirs.pk}/{part}/", 404)
        page(client, f"/repair/run/{original.pk}/compare/?with={theirs.pk}", 404)
    assert post(client, theirs).status_code == 404


def test_a_run_is_laid_beside_the_newest_of_another_order(omar: Client, desk: Desk) -> None:
    original = paid(desk)
    older, newer = (desk.proposed(order="1043").run_id for _ in range(2))
    html = page(omar, f"/repair/run/{original.pk}/compare/?with=order:1043")
    assert (str(newer) in html, str(older) in html) == (True, False)
    page(omar, f"/repair/run/{original.pk}/compare/?with=order:1044", 404)


def test_the_comparison_shows_where_they_part_first(omar: Client, desk: Desk) -> None:
    original = paid(desk)
    same = through(desk, original, dry())
    html = page(omar, f"/repair/run/{same.pk}/compare/")
    assert "Nothing differs that means anything" in html
    assert "left out" in html
    desk.till.stages["pay"] = Propose(
        "toy.pay", {"order": "1042", "amount": "12.00", "currency": "EUR"}, "more"
    )
    other = through(desk, original, dry())
    html = page(omar, f"/repair/run/{other.pk}/compare/")
    assert "They part here first:" in html
    assert "EUR 12.00" in html
    page(omar, f"/repair/run/{other.pk}/compare/?with=nonsense", 404)
    page(omar, f"/repair/run/{other.pk}/compare/?with={uuid4()}", 404)


def test_a_dry_replay_is_compared_by_what_it_would_have_proposed(desk: Desk) -> None:
    original = paid(desk)
    desk.till.tags["1042"] = "v2"
    run = through(desk, original, dry())
    found = compare_runs(original, run, reader=Recipient(desk.tenant.pk))
    assert [(it.step, it.code, it.left, it.right) for it in found.differences if it.weight is Weight.SUBSTANCE] == [
        ("pay", "pin", "v1", "v2"),
    ]  # fmt: skip
    ending = next(it for it in found.of_step("pay") if it.code == "ending")
    assert (ending.right, ending.weight) == ("left out", Weight.CIRCUMSTANCE)


def test_marks_are_computed_from_what_happened(desk: Desk) -> None:
    original = paid(desk)
    assert marks_of(story_of(original)) == ("original",)
    assert marks_of(story_of(through(desk, original, dry()))) == ("replayed",)
    command = desk.approved(order="8")
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    desk.till.findings = [Finding("happened", "re_9")]
    age(command.run_id, 60, "workflows_command")
    recover()
    assert look_up(Command.objects.get(pk=command.pk))
    assert marks_of(story_of(Run.objects.get(pk=command.run_id))) == ("original", "reconciled")


def test_the_api_shows_what_a_run_is_and_whose_replay(desk: Desk) -> None:
    original = paid(desk)
    run = through(desk, original, dry())
    caller = automation(token_for(desk.tenant))
    told = as_json(caller.get(f"/runs/{run.pk}"))
    assert (told["kind"], told["original_id"], told["outcome"]) == ("replay", str(original.pk), "dry_run")
    told = as_json(caller.get(f"/runs/{original.pk}"))
    assert (told["kind"], told["original_id"]) == ("original", None)


def test_erased_input_is_refused_in_words_and_goes_with_its_original(omar: Client, desk: Desk) -> None:
    original = paid(desk)
    first = through(desk, original, dry())
    erase_content(
        tenant_id=desk.tenant.pk, run_id=original.pk, why="file 7", by=at_the_console(), clock=db_clock
    )
    assert is_erased(first)
    html = page(omar, f"/repair/run/{original.pk}/replay/")
    assert "What it was given has been erased, or cannot be read any more." in html
    for run in (original, first):
        with pytest.raises(CannotReplay):
            replayed(desk, run, dry())


def test_a_version_that_is_gone_is_named_on_the_page(omar: Client, desk: Desk) -> None:
    original = paid(desk)
    run = replayed(desk, original, dry(versions=Versions.THEN))
    older = factories.make_run(
        desk.tenant, workflow="toy-pay", workflow_version=0, input_ref=original.input_ref
    )
    html = post(omar, older, "look", versions="then").content.decode()
    assert "toy-pay@0" in html
    assert "no longer has these versions" in html
    assert run.workflow_version == 1


def test_a_replays_proposal_says_what_it_is_a_replay_of(omar: Client, desk: Desk) -> None:
    run = through(desk, given_up(desk), anew())
    assert Proposal.objects.get(run_id=run.pk).status == "pending"
    assert "Replayed" in page(omar, f"/repair/run/{run.pk}/replays/")
