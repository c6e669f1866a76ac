"""A word at the same instant as another, a look-up, a late answer, a revocation, or a kill."""

from collections.abc import Callable
from typing import Any

import pytest

from access.actions import deactivate_user
from access.enums import Role
from audit.models import Event
from common import crashpoints
from common.clock import db_clock
from common.crashpoints import CrashpointReached
from common.errors import Refused
from repair.models import RepairPacket
from tests.factories import make_user
from tests.workflows.conftest import AGENT, Desk
from tests.workflows.counter import ADMIN, Counter, events, open_counter, takes_two, words
from tests.workflows.later import SWEEP, age, as_superuser, end_of, fresh, look_up
from tests.workflows.test_worker_answers import CONFIRMED, READY, answer
from tests.workflows.test_worker_unknown import HAPPENED, SETTLED, sent
from tests.workflows.together import in_threads
from tests.workflows.toy import PAID
from workflows.actions import attesting
from workflows.actions.attesting import AlreadySettled, Attested
from workflows.actions.cancelling import cancel_run
from workflows.authoring import Finding
from workflows.models import Attempt, Run
from workflows.worker.recover import recover_lost
from workflows.worker.store import store_answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def counter(desk: Desk) -> Counter:
    return open_counter(desk)


@pytest.fixture
def two(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> Counter:
    """The same, where it takes two people."""
    takes_two(monkeypatch)
    return counter


# -- at the same instant -----------------------------------------------------------------------------------------


def lost_account(counter: Counter) -> None:
    deactivate_user(user=counter.opal, by=ADMIN, clock=db_clock)


def said_at_once(*says: Callable[[], Attested]) -> list[str]:
    """What each got: settled, recorded, or the code of the refusal."""
    found = in_threads(len(says), lambda number: says[number]())
    for result in found:
        if isinstance(result, Exception) and not isinstance(result, Refused):
            raise result
    return sorted(
        result.code if isinstance(result, Refused) else "settled" if result.settled else "recorded"
        for result in found
    )


def test_two_people_at_once_where_one_is_enough(counter: Counter) -> None:
    counter.wait_until_settled()
    found = said_at_once(lambda: counter.say("happened"), lambda: counter.say("did_not_happen", counter.otto))
    assert found == ["already_settled", "settled"]
    assert (fresh(counter.command).status, len(words(counter.command))) in {("confirmed", 1), ("ready", 1)}


def test_two_people_at_once_where_it_takes_two(two: Counter) -> None:
    assert said_at_once(lambda: two.say("happened"), lambda: two.say("happened", two.otto)) == [
        "recorded",
        "settled",
    ]
    assert end_of(two.command) == CONFIRMED
    assert len(events(two.command, "command.confirmed")) == 1


def test_two_who_disagree_at_once(two: Counter) -> None:
    two.wait_until_settled()
    found = said_at_once(lambda: two.say("happened"), lambda: two.say("did_not_happen", two.otto))
    assert found == ["contradicts", "recorded"]
    assert two.stays_unknown()


def test_one_person_twice_at_once_is_one_word(two: Counter) -> None:
    assert said_at_once(*[lambda: two.say("happened")] * 4) == ["recorded"] * 4
    assert words(two.command) == [("opal", "happened", True)]


def test_against_the_reconciler(counter: Counter) -> None:
    counter.wait_until_settled()
    counter.desk.till.findings = [HAPPENED]
    results = in_threads(2, lambda n: look_up(counter.command) if n else counter.say("did_not_happen"))
    if isinstance(results[0], AlreadySettled):
        assert end_of(counter.command) == CONFIRMED
        assert words(counter.command) == []
    else:
        assert results[0].settled
        assert end_of(counter.command) == READY
    assert (
        len(events(counter.command, "command.confirmed")) + len(events(counter.command, "command.ready")) == 2
    )


def test_a_person_who_is_deactivated_at_the_same_instant(two: Counter) -> None:
    """Either the revocation came first and the word does not count, or it waited for the settlement."""
    two.say("happened")
    results = in_threads(2, lambda n: lost_account(two) if n else two.say("happened", two.otto))
    assert results[1] is None
    assert isinstance(results[0], Attested)
    assert fresh(two.command).status == ("confirmed" if results[0].settled else "unknown")
    order = [
        event.kind
        for event in Event.objects.filter(kind__in=("user.deactivated", "command.confirmed")).order_by("at")
    ]
    assert order[0] == ("command.confirmed" if results[0].settled else "user.deactivated")


def test_against_a_wish_to_cancel(counter: Counter) -> None:
    """Whichever comes first: nothing happened, so the wish wins, and nothing more is sent."""
    counter.wait_until_settled()

    def cancel() -> str:
        return cancel_run(
            tenant_id=counter.desk.tenant.pk, run_id=counter.command.run_id, reason="no", by=AGENT, clock=db_clock
        )  # fmt: skip

    said, answer_ = in_threads(2, lambda n: cancel() if n else counter.say("did_not_happen"))
    assert (said.settled, answer_ in ("cancelled", "cancel_requested")) == (True, True)
    assert (fresh(counter.command).status, Run.objects.get(pk=counter.command.run_id).status) == (
        "cancelled",
    ) * 2
    counter.desk.work()
    assert len(counter.desk.till.calls) == 1


# -- a late answer -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "status"),
    [(PAID, "confirmed"), (answer(404, code="unknown_order"), "refused"), (answer(429), "ready")],
)
def test_a_late_answer_stands_above_every_word(desk: Desk, seen: Any, status: str) -> None:
    """Who says *did not happen* while the answer *paid* lies there must not have it paid twice."""
    command, claim = sent(desk)
    age(command.run_id, 31)
    recover_lost(by=SWEEP, clock=db_clock)
    age(command.run_id, SETTLED, "workflows_command")
    store_answer(claim, seen, by=SWEEP, clock=db_clock)
    opal = make_user(desk.tenant, "opal", roles=[Role.OPERATOR])
    says = "did_not_happen" if status == "confirmed" else "happened"
    with pytest.raises(AlreadySettled) as refused:
        Counter(desk, command, opal, opal).say(says)
    assert refused.value.details["status"] == fresh(command).status == status
    assert words(command) == []
    [event] = [event for event in events(command, f"command.{status}") if event.from_state == "unknown"]
    assert event.performed_by == "clock:late_answer"


def test_a_late_answer_that_says_nothing_leaves_it_to_people(desk: Desk) -> None:
    command, claim = sent(desk)
    age(command.run_id, 31)
    recover_lost(by=SWEEP, clock=db_clock)
    store_answer(claim, answer(503), by=SWEEP, clock=db_clock)
    opal = make_user(desk.tenant, "opal", roles=[Role.OPERATOR])
    assert Counter(desk, command, opal, opal).say("happened").settled


def test_against_a_late_answer(desk: Desk) -> None:
    command, claim = sent(desk)
    age(command.run_id, 31)
    recover_lost(by=SWEEP, clock=db_clock)
    opal = make_user(desk.tenant, "opal", roles=[Role.OPERATOR])
    counter = Counter(desk, command, opal, opal)
    results = in_threads(
        2,
        lambda n: (
            store_answer(claim, PAID, by=SWEEP, clock=db_clock)
            if n
            else counter.say("happened", reference="re_1")
        ),
    )
    assert isinstance(results[0], Attested | AlreadySettled)
    assert end_of(command) == CONFIRMED
    assert Attempt.objects.get(command=command).late_evidence["reference"] == "re_1"


def test_a_key_that_was_reused_is_settled_by_people_only(counter: Counter) -> None:
    as_superuser("UPDATE workflows_command SET failure_code = 'key_reused' WHERE id = %s", counter.command.pk)
    counter.wait_until_settled()
    counter.desk.till.findings = [Finding("not_found")]
    assert not look_up(counter.command)
    assert counter.say("happened", reference="re_ours").settled
    assert fresh(counter.command).provider_reference == "re_ours"


# -- broken before the commit ------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", [1, 2])
def test_broken_before_the_commit_it_is_unknown_and_unsaid(
    counter: Counter, monkeypatch: pytest.MonkeyPatch, people: int
) -> None:
    if people == 2:
        takes_two(monkeypatch)
    monkeypatch.setattr(crashpoints, "_ASKED", "CP15:raise")
    with pytest.raises(CrashpointReached):
        counter.say("happened")
    assert counter.stays_unknown()
    assert (words(counter.command), events(counter.command, "command.attested")) == ([], [])
    assert RepairPacket.objects.get(run_id=counter.command.run_id).status == "open"
    assert counter.say("happened").given == 1


def test_everything_is_said_in_one_transaction(counter: Counter) -> None:
    counter.say("happened")
    kinds = (
        "command.attested",
        "command.confirmed",
        "proposal.consumed",
        "step.completed",
        "packet.resolved",
    )
    found = Event.objects.filter(run_id=counter.command.run_id, kind__in=kinds).values_list("kind", "xid")
    said = [xid for kind, xid in found if kind == "command.attested"]
    assert {kind for kind, xid in found if xid in said} == set(kinds)
    assert Run.objects.get(pk=counter.command.run_id).status == "running"
    assert attesting.standing_words(counter.command)[0].tries == 1
