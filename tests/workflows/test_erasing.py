"""The end of what a run held: erased for good, kept by a hold, or due; and whatever comes by afterwards copes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from access.management.operator import at_the_console
from access.models import Membership
from access.policies import RoleMissing
from approvals.actions_rejections import lift
from approvals.models import Decision, Evidence, Proposal, Rejection
from audit.actors import clock_actor
from audit.models import Event
from common.clock import db_clock
from common.content_errors import ERASED_TEXT, AlreadyErased, ContentErased, ContentInUse, ContentOnHold
from common.models import ContentKey
from tests import factories
from tests.api.callers import as_json, automation, refused, signed_in, token_for
from tests.workflows import toy
from tests.workflows.conftest import Desk, person
from tests.workflows.later import as_superuser
from workflows.actions.erasing import (
    Erasure,
    erase_content,
    erase_due,
    hold_content,
    release_content,
)
from workflows.actions.settle import UnknownRun
from workflows.models import Command, Document, Run

pytestmark = pytest.mark.django_db


def ended(desk: Desk, order: str = "1042") -> Run:
    """A run that was decided, executed and completed."""
    command = desk.approved(order=order)
    desk.work()
    desk.advance()
    run = Run.objects.get(pk=command.run_id)
    assert run.status == "completed"
    return run


def erase(desk: Desk, run: Run, **changes: Any) -> Erasure:
    about: dict[str, Any] = {"tenant_id": desk.tenant.pk, "run_id": run.pk, "by": at_the_console()} | changes
    return erase_content(why="file-17", clock=db_clock, **about)


def hold(desk: Desk, run: Run) -> bool:
    return hold_content(
        tenant_id=desk.tenant.pk, run_id=run.pk, reason="file-18", by=at_the_console(), clock=db_clock
    )


def sweep() -> int:
    return erase_due(by=clock_actor(), clock=db_clock)


def test_what_a_run_held_is_gone_and_the_proof_stays(desk: Desk) -> None:
    run = ended(desk)
    before = Proposal.objects.get(run_id=run.pk)
    assert erase(desk, run) == Erasure(done=True)
    after = Proposal.objects.get(run_id=run.pk)
    for name in ("contract", "view", "volatile"):
        with pytest.raises(ContentErased):
            getattr(after, name)
    assert (after.consequence, after.affected) == (ERASED_TEXT, [])
    for document in Document.objects.filter(run_id=run.pk):
        with pytest.raises(ContentErased):
            _ = document.content
    assert not Evidence.objects.filter(proposal=after, content__isnull=False).exists()
    kept = ("digest", "view_digest", "material_digest", "idempotency_key", "summary", "status")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    event = Event.objects.get(kind="run.content_erased")
    assert (event.run_id, event.reason, event.body) == (run.pk, "file-17", {"left_plain": 0})


def test_again_it_is_not_done_twice(desk: Desk) -> None:
    run = ended(desk)
    erase(desk, run)
    assert erase(desk, run) == Erasure(done=False)
    assert Event.objects.filter(kind="run.content_erased").count() == 1


@pytest.mark.parametrize("at", ["queued", "proposed", "ready", "unknown"])
def test_nothing_is_erased_while_anything_of_it_lives(desk: Desk, at: str) -> None:
    if at == "queued":
        run = desk.start()
    elif at == "proposed":
        run = Run.objects.get(pk=desk.proposed().run_id)
    else:
        command = desk.approved()
        if at == "unknown":
            desk.till.answers.append(toy.NOTHING_CAME)
            desk.work()
            assert Command.objects.get(pk=command.pk).status == "unknown"
        run = Run.objects.get(pk=command.run_id)
    with pytest.raises(ContentInUse):
        erase(desk, run)
    assert ContentKey.objects.get(run_id=run.pk).wrapped is not None


def test_a_hold_keeps_it_and_its_end_lets_it_go(desk: Desk) -> None:
    run = ended(desk)
    assert hold(desk, run)
    assert not hold(desk, run)
    with pytest.raises(ContentOnHold):
        erase(desk, run)
    assert release_content(tenant_id=desk.tenant.pk, run_id=run.pk, reason="over", by=at_the_console())
    assert erase(desk, run).done
    with pytest.raises(AlreadyErased):
        hold(desk, run)
    kinds = Event.objects.filter(kind__startswith="run.content").order_by("at").values_list("kind", flat=True)
    assert list(kinds) == ["run.content_held", "run.content_released", "run.content_erased"]


def test_another_tenants_run_is_missing_and_reviewers_may_not(desk: Desk) -> None:
    run, other = ended(desk), factories.make_tenant("lagoon")
    with pytest.raises(UnknownRun):
        erase(desk, run, tenant_id=other.pk)
    with pytest.raises(RoleMissing):
        erase(desk, run, by=person(desk.ada))


# -- retention ----------------------------------------------------------------------------------------------------


@contextmanager
def retention(span: timedelta | None) -> Iterator[None]:
    before = toy.ToyFlow.contract
    toy.ToyFlow.contract = replace(before, retention=span)
    try:
        yield
    finally:
        toy.ToyFlow.contract = before


def older(run: Run, days: int) -> None:
    """As if it had ended, and begun, so many days ago."""
    age = f"interval '{days} days'"
    as_superuser(f"UPDATE workflows_run SET finished_at = finished_at - {age} WHERE id = %s", run.pk)
    as_superuser(f"UPDATE common_contentkey SET created_at = created_at - {age} WHERE run_id = %s", run.pk)


def erased(*runs: Run) -> list[bool]:
    return [ContentKey.objects.get(run_id=run.pk).erased_at is not None for run in runs]


def test_the_sweep_erases_what_is_due_and_nothing_else(desk: Desk) -> None:
    old, held, young = ended(desk, "1"), ended(desk, "2"), ended(desk, "3")
    live = Run.objects.get(pk=desk.proposed(order="4").run_id)
    for run in (old, held):
        older(run, 31)
    older(young, 29)
    hold(desk, held)
    with retention(timedelta(days=30)):
        assert sweep() == 1
        assert sweep() == 0
    assert erased(old, held, young, live) == [True, False, False, False]
    assert Event.objects.get(kind="run.content_erased").performed_by == "clock:sweep"


def test_without_a_retention_nothing_is_erased_and_the_installation_may_set_one(
    desk: Desk, settings: Any
) -> None:
    run = ended(desk)
    older(run, 400)
    assert sweep() == 0
    settings.PLACET_RETENTION_DAYS = 365
    with retention(timedelta(days=3650)):
        assert sweep() == 0  # what the workflow says goes before
    assert sweep() == 1


def test_a_round_is_bounded(desk: Desk) -> None:
    runs = [ended(desk, str(number)) for number in range(3)]
    for run in runs:
        older(run, 31)
    with retention(timedelta(days=30)):
        assert erase_due(by=clock_actor(), clock=db_clock, limit=2) == 2
        assert erase_due(by=clock_actor(), clock=db_clock, limit=2) == 1


# -- whoever comes by afterwards ------------------------------------------------------------------------------------


def test_every_page_and_every_answer_copes_and_says_so(desk: Desk) -> None:
    command = desk.approved()
    desk.work()
    desk.advance()
    run, proposal = Run.objects.get(pk=command.run_id), Proposal.objects.get(pk=command.proposal_id)
    erase(desk, run)
    Membership.objects.filter(user=desk.ada).update(
        roles=["reviewer", "operator", "auditor", "owner", "admin"]
    )
    client = Client()
    client.force_login(desk.ada)
    page = client.get(f"/review/{proposal.pk}/")
    assert (page.status_code, "Its content was erased." in page.content.decode()) == (200, True)
    document = Document.objects.filter(run_id=run.pk).first()
    assert document is not None
    for address in (
        f"/runs/{run.pk}/",
        f"/runs/{run.pk}/documents/{document.pk}/",
        "/runs/",
        "/review/",
        "/history/",
    ):
        answer = client.get(address)
        assert answer.status_code == 200, address
    opened = client.post(f"/runs/{run.pk}/documents/{document.pk}/")
    assert "Its content was erased." in opened.content.decode()
    agent, ada = automation(token_for(desk.tenant, "reader")), signed_in(desk.ada)
    whole = as_json(agent.get(f"/proposals/{proposal.pk}"))
    assert (whole["contract"], whole["content_erased"], whole["digest"]) == ("", True, proposal.digest)
    refused(agent.get(f"/results/{run.input_ref}"), 410, "content_erased")
    refused(ada.get(f"/proposals/{proposal.pk}/view"), 410, "content_erased")
    for path in (
        f"/runs/{run.pk}",
        "/proposals",
        "/runs",
        f"/commands/{command.pk}",
        f"/receipts/{run.pk}/pay",
    ):
        as_json(agent.get(path))


def test_what_people_wrote_is_erased_too_and_never_was_in_the_history(desk: Desk) -> None:
    proposal = desk.proposed()
    desk.decide(proposal, "reject", reason="Jane Roe told me so.")
    desk.advance()
    run = Run.objects.get(pk=proposal.run_id)
    assert Decision.objects.get(proposal=proposal).reason == "Jane Roe told me so."
    told = [f"{event.reason} {event.body}" for event in Event.objects.filter(run_id=run.pk)]
    assert not any("Jane" in words for words in told)
    erase(desk, run)
    assert Decision.objects.get(proposal=proposal).reason == ERASED_TEXT


def test_a_remembered_rejection_is_lifted_all_the_same(desk: Desk) -> None:
    """It was refused, because the words could not be kept: the rejection answered on until its time was over."""
    proposal = desk.proposed()
    desk.decide(proposal, "reject", remember="week", reason_code="wrong_amount")
    desk.advance()
    erase(desk, Run.objects.get(pk=proposal.run_id))
    lift(
        tenant_id=desk.tenant.pk,
        proposal_id=proposal.pk,
        why="Jane is right.",
        by=person(desk.ada),
        clock=db_clock,
    )
    found = Rejection.objects.get(proposal=proposal)
    assert (found.lifted_by_id, found.lifted_why) == (desk.ada.pk, "")


def test_a_story_of_what_was_erased_names_it_once_and_says_so(desk: Desk) -> None:
    run = ended(desk)
    summary = Proposal.objects.get(run_id=run.pk).summary
    erase(desk, run)
    Membership.objects.filter(user=desk.ada).update(roles=["auditor"])
    client = Client()
    client.force_login(desk.ada)
    story = client.get(f"/history/runs/{run.pk}/").content.decode()
    assert (story.count("What it said was erased."), summary in story) == (1, True)


# -- at the command line --------------------------------------------------------------------------------------------


def content(*arguments: str) -> str:
    out = StringIO()
    call_command("content", *arguments, "--why", "file-17", stdout=out)
    return out.getvalue().strip()


def test_the_commands(desk: Desk) -> None:
    run = ended(desk)
    about = ("harbour", str(run.pk))
    assert content("hold", *about) == "Held."
    with pytest.raises(CommandError, match="legal hold"):
        content("erase", *about)
    assert content("release", *about) == "Released."
    assert content("erase", *about) == "Erased."
    assert content("erase", *about) == "It was erased before."
    with pytest.raises(CommandError, match="no such thing"):
        content("erase", "harbour", str(uuid4()))


def test_a_new_wrapping_key_is_taken_by_the_command(desk: Desk, settings: Any) -> None:
    from tests.common.test_sealed import key

    run = ended(desk)
    settings.PLACET_CONTENT_KEYS = key()
    out = StringIO()
    call_command("rotate_content_key", stdout=out)
    assert out.getvalue().startswith("1 keys wrapped anew")
    assert Document.objects.filter(run_id=run.pk)[0].content
    settings.PLACET_CONTENT_KEYS = key()
    with pytest.raises(CommandError, match="PLACET_CONTENT_KEYS"):
        call_command("rotate_content_key", stdout=out)
