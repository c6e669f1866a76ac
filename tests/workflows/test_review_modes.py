"""Whom each mode of review asks, and when: never fewer people than the policy does."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from access import actions
from access.enums import Role
from approvals import sampling
from approvals.models import Decision, Proposal, Sample
from approvals.refusals import NotEligible, OwnProposal, ReasonRequired, TokenCannotDecide
from approvals.sampling import AlreadySaid, UnknownVerdict, counters, is_drawn, say, waiting
from audit.models import Event
from common.clock import db_clock
from common.errors import NotFound
from common.ids import new_id
from tests.access.people import INSTALLER
from tests.factories import make_group, make_user
from tests.tenants.planted import as_superuser
from tests.workflows import modes
from tests.workflows.conftest import AGENT, Desk, person
from workflows import registry
from workflows.authoring import ByException, BySample, Done, Escalate, Observation
from workflows.models import Command
from workflows.operations import Verdict

pytestmark = pytest.mark.django_db


@pytest.fixture
def modal(desk: Desk) -> Desk:
    modes.install()
    registry.register_definitions(clock=db_clock)
    desk.till.verdict = Verdict("auto", "toy.small", "It is small.", group="")
    return desk


def sure(desk: Desk, confidence: str | None) -> None:
    said = Decimal(confidence) if confidence else None
    desk.till.stages["judge"] = Done({"seen": "judge"}, confidence=said)


def test_what_is_no_exception_its_rule_approves_and_says_why(modal: Desk) -> None:
    sure(modal, "0.95")
    proposal = modal.proposed(workflow="toy-exception")
    vote = Decision.objects.get(proposal=proposal)
    assert (vote.rule, vote.rule_version, vote.via, vote.user) == ("toy.small", 1, "rule", None)
    assert vote.reason == ("It is small. No exception: confidence 0.95; impact 1; not sensitive.")
    modal.work()
    assert Command.objects.get().status == "confirmed"


@pytest.mark.parametrize(("confidence", "risk", "order", "because"), [
    ("0.89", 1, "1042", "confidence 0.89"), (None, 1, "1042", "no confidence was said"),
    ("0.95", 2, "1042", "impact 2"), ("0.95", 1, modes.SENSITIVE_ORDER, "the order is a VIP's"),
])  # fmt: skip
def test_an_exception_is_asked_of_a_person(
    modal: Desk, confidence: str | None, risk: int, order: str, because: str
) -> None:
    sure(modal, confidence)
    modal.till.verdict = Verdict("auto", "toy.small", "It is small.", risk=risk)
    proposal = modal.proposed(workflow="toy-exception", order=order)
    assert (proposal.status, proposal.needed, proposal.group.name) == ("pending", 1, "Exceptions")
    assert not Decision.objects.exists()
    assert proposal.policy["review"]["because"] == f"It is an exception: {because}."


def test_the_page_says_what_made_it_an_exception(modal: Desk, client: Any) -> None:
    sure(modal, "0.70")
    proposal = modal.proposed(workflow="toy-exception")
    client.force_login(modal.ada)
    page = client.get(f"/review/{proposal.pk}/").content.decode()
    assert "It is an exception: confidence 0.7." in page
    assert "Confidence is at least 0.90" in page


def test_what_the_policy_asks_is_asked_in_every_mode(modal: Desk) -> None:
    sure(modal, "0.99")
    modal.till.verdict = Verdict("ask_one", "toy.ask", "Somebody must look.")
    for workflow in ("toy-exception", "toy-sampled", "toy-pay"):
        assert modal.proposed(workflow=workflow, order=workflow).status == "pending"
    assert not Sample.objects.exists()


def test_modes_in_which_rules_decide_need_the_stage_for_it() -> None:
    for review in (ByException(), BySample(share=Decimal("0.1"))):
        early = type("Early", (modes.ToyFlow,), {"name": "early", "review": review})
        with pytest.raises(ValueError, match="is for stage execute"):
            registry.register(early)
    assert registry.installed("early") is None


@pytest.mark.parametrize("declare", [
    lambda: BySample(share=Decimal(0)), lambda: BySample(share=Decimal("1.1")),
    lambda: BySample(share=Decimal("0.00001")), lambda: BySample(share=Decimal("0.1"), wrong_limit=Decimal(0)),
    lambda: Escalate(role="owner"), lambda: Escalate(left_share=Decimal("0.5")),
    lambda: Escalate(left_share=Decimal(1), role="owner"),
    lambda: Escalate(left_share=Decimal("0.5"), role="owner", group="x"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_when_it_is_declared(declare: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"share|escalation"):
        declare()


# -- afterwards --------------------------------------------------------------------------------------------------


def sampled(desk: Desk, order: str = "1042", *, work: bool = True) -> Sample:
    run = desk.start(workflow="toy-sampled", order=order)
    desk.advance()
    if work:
        desk.work()
    return Sample.objects.get(proposal__run_id=run.pk)


def test_an_automatic_success_waits_for_a_look_afterwards(modal: Desk) -> None:
    sample = sampled(modal, work=False)
    assert list(waiting(modal.tenant.pk)) == []  # nothing has happened yet
    modal.work()
    assert [row.pk for row in waiting(modal.tenant.pk)] == [sample.pk]
    assert (sample.command_id, sample.share) == (Command.objects.get().pk, Decimal(1))
    assert Event.objects.get(kind="sample.drawn").body == {
        "command_id": str(sample.command_id), "share": "1",
    }  # fmt: skip


def test_what_did_not_succeed_is_no_success(modal: Desk) -> None:
    modal.till.answers.append(Observation(sent=True, status=422))
    sample = sampled(modal)
    assert Command.objects.get().status == "refused"
    assert not waiting(modal.tenant.pk).exists()
    with pytest.raises(NotFound):
        speak(modal, sample, "fine")


def speak(desk: Desk, sample: Sample, verdict: str, words: str = "", by: Any = None) -> Sample:
    return say(
        tenant_id=desk.tenant.pk, sample_id=sample.pk, verdict=verdict, words=words, by=by or person(desk.ada),
        clock=db_clock,
    )  # fmt: skip


def test_a_look_afterwards_is_one_word_of_one_person_and_changes_nothing(modal: Desk) -> None:
    sample = sampled(modal)
    before = Command.objects.values().get(), Proposal.objects.values().get()
    with pytest.raises(UnknownVerdict):
        speak(modal, sample, "great")
    with pytest.raises(ReasonRequired):
        speak(modal, sample, "wrong", "  ")
    with pytest.raises(TokenCannotDecide):
        speak(modal, sample, "fine", by=AGENT)
    said = speak(modal, sample, "wrong", "The amount was not due.")
    assert (said.verdict, said.words, said.user_id) == ("wrong", "The amount was not due.", modal.ada.pk)
    with pytest.raises(AlreadySaid):
        speak(modal, sample, "fine", by=person(modal.ben))
    assert before == (Command.objects.values().get(), Proposal.objects.values().get())
    assert not waiting(modal.tenant.pk).exists()


def test_who_may_look_afterwards(modal: Desk) -> None:
    modal.till.verdict = Verdict("auto", "toy.small", "It is small.", group="Desk")
    group = make_group(modal.tenant, "Desk")
    actions.add_to_group(group=group, user=modal.ada, by=INSTALLER, clock=db_clock)
    actions.add_to_group(group=group, user=modal.ben, by=INSTALLER, clock=db_clock)
    sample = sampled(modal)
    auditor = make_user(modal.tenant, "anna", roles=[Role.AUDITOR], groups=[group])
    outsider = make_user(modal.tenant, "olga")
    for user in (auditor, outsider):
        with pytest.raises(NotEligible):
            speak(modal, sample, "fine", by=person(user))
    assert speak(modal, sample, "fine", by=person(modal.ada)).verdict == "fine"


def test_nobody_looks_at_what_they_asked_for(modal: Desk) -> None:
    sample = sampled(modal)
    proposal = Proposal.objects.get(pk=sample.proposal_id)
    proposal.excluded_users = [modal.ada.pk]
    sample.proposal = proposal
    with pytest.raises(OwnProposal):
        sampling.check_may_say(sample, person(modal.ada))


def test_the_owner_is_told_when_the_share_of_wrong_ones_passes_the_limit(modal: Desk) -> None:
    """Once for each passing; one wrong alone is no share."""
    words = ["wrong", "fine", "wrong", "wrong", "wrong"]
    rung = []
    for number, verdict in enumerate(words):
        speak(modal, sampled(modal, str(number)), verdict, "Not due.")
        rung.append(Event.objects.filter(kind="sample.limit_passed").count())
    assert rung == [0, 0, 1, 1, 1]
    event = Event.objects.get(kind="sample.limit_passed")
    assert event.body == {"workflow": "toy-sampled", "said": 3, "wrong": 2, "limit": "0.5000"}
    [counter] = counters(modal.tenant.pk, db_clock())
    assert (counter.waiting, counter.tally.said, counter.tally.wrong, counter.alarming) == (0, 5, 4, True)


def test_the_draw_is_even_and_each_tenant_has_its_own() -> None:
    commands = [new_id() for _ in range(20_000)]
    north, south = UUID(int=1), UUID(int=2)
    share = Decimal("0.1")
    drawn = {command for command in commands if is_drawn(north, command, share)}
    elsewhere = {command for command in commands if is_drawn(south, command, share)}
    assert drawn == {command for command in commands if is_drawn(north, command, share)}
    for found in (drawn, elsewhere):
        assert 1_800 < len(found) < 2_200  # five standard deviations of 42
    assert 120 < len(drawn & elsewhere) < 280  # as two draws that know nothing of each other
    assert all(is_drawn(north, command, Decimal(1)) for command in commands[:100])
    wider = {command for command in commands if is_drawn(north, command, Decimal("0.2"))}
    assert drawn < wider


def test_an_auditor_draws_again(modal: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    for order in ("1", "2"):
        sampled(modal, order)
    call_command("samples", "harbour")
    assert "2 of 2 automatic actions were drawn." in capsys.readouterr().out
    as_superuser("ALTER TABLE approvals_sample DISABLE TRIGGER USER")
    as_superuser("DELETE FROM approvals_sample WHERE id IN (SELECT id FROM approvals_sample LIMIT 1)")
    as_superuser("ALTER TABLE approvals_sample ENABLE TRIGGER USER")
    assert len(sampling.drawn_again(modal.tenant.pk).differ) == 1
    with pytest.raises(CommandError, match="says otherwise of 1"):
        call_command("samples", "harbour")


def test_the_draw_follows_the_secret(settings: Any) -> None:
    commands = [new_id() for _ in range(500)]
    half = Decimal("0.5")
    before = [is_drawn(UUID(int=1), command, half) for command in commands]
    settings.PLACET_SECRET_KEY = "another secret of this installation, long enough"
    assert before != [is_drawn(UUID(int=1), command, half) for command in commands]
