"""What is not offered is not done, whoever posts it: 409 with the reason, in the history, and nothing moved."""

from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from approvals.models import Proposal
from audit.actors import Actor, Owner, Via
from audit.models import Event
from common.clock import db_clock
from repair.choices.acting import choose
from repair.choices.case import Seen
from repair.choices.registry import BY_CODE, CHOICES
from repair.models import RepairMove
from tests.factories import make_user
from tests.repair.choosing import (
    Operator,
    address,
    lapsed,
    moves,
    not_supplied,
    now,
    operator,
    refused,
    unknown,
)
from tests.workflows.conftest import AGENT, Desk, person
from tests.workflows.later import as_superuser, end_of, fresh, look_up
from tests.workflows.test_worker_answers import CONFIRMED
from tests.workflows.together import at_once
from tests.workflows.toy import PAID
from workflows.actions.attesting import TokenCannotAttest
from workflows.actions.cancelling import cancel_run
from workflows.authoring import Finding
from workflows.models import Run

pytestmark = pytest.mark.django_db
STOPS = {"unknown": unknown, "refused": refused, "lapsed": lapsed, "not_supplied": not_supplied}


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


def state(desk: Desk, run_id: Any) -> tuple[Any, ...]:
    run = Run.objects.get(pk=run_id)
    return run.status, run.state_version, run.outcome, len(desk.till.calls)


@pytest.mark.parametrize("kind", STOPS)
def test_every_choice_that_is_not_offered_is_refused_with_its_reason(
    desk: Desk, opal: Operator, kind: str
) -> None:
    _, packet = STOPS[kind](desk)
    codes = {code: why for code, why in opal.offered(packet).items() if why}
    assert len(codes) > 3
    before = state(desk, packet.run_id)
    for code, why in codes.items():
        answer = opal.choose(packet, code, reference="re_9", to=f"user:{opal.user.pk}")
        text = answer.content.decode()
        assert (answer.status_code, why in text, "Nothing was done." in text) == (409, True, True), code
        assert opal.page(packet, code).status_code == 409
    assert state(desk, packet.run_id) == before
    assert {(choice, why) for _, choice, why in moves(packet)} == set(codes.items())
    events = Event.objects.filter(kind="packet.choice_refused", subject_id=packet.pk)
    assert {event.body["choice"]: event.reason for event in events} == codes


@pytest.mark.parametrize("kind", STOPS)
def test_every_choice_that_is_offered_has_its_page(desk: Desk, opal: Operator, kind: str) -> None:
    _, packet = STOPS[kind](desk)
    before = Event.objects.count()
    for code, why in opal.offered(packet).items():
        if not why:
            answer = opal.page(packet, code)
            assert (answer.status_code, "What this does" in answer.content.decode()) == (200, True), code
    assert Event.objects.count() == before
    page = opal.client.get(f"/repair/{packet.pk}/").content.decode()
    for code, why in opal.offered(packet).items():
        assert (address(packet, code) in page) == (not why), code


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.AUDITOR])
def test_other_roles_choose_nothing(desk: Desk, role: Role) -> None:
    _, packet = unknown(desk)
    client = Client()
    client.force_login(make_user(desk.tenant, "rita", roles=[role]))
    for choice in CHOICES:
        assert client.get(address(packet, choice.code)).status_code == 403
        assert client.post(address(packet, choice.code), {"words": "x"}).status_code == 403
    assert (
        "Operators, workflow owners and admins choose here."
        in client.get(f"/repair/{packet.pk}/").content.decode()
    )
    assert RepairMove.objects.count() == 0


def test_a_token_never_chooses(desk: Desk, opal: Operator) -> None:  # invariant 6
    _, packet = unknown(desk)
    case = opal.case(packet)
    for by in (AGENT, Actor(performed_by="cli:x", via=Via.COMMAND_LINE, owner=Owner.PERSON)):
        with pytest.raises(TokenCannotAttest):
            choose(
                tenant_id=desk.tenant.pk, packet_id=packet.pk, choice=BY_CODE["take"], seen=case.seen, typed={},
                membership=case.membership, by=by, clock=db_clock,
            )  # fmt: skip


def test_the_proposers_side_says_nothing_about_its_own(desk: Desk) -> None:
    command, packet = unknown(desk)
    side = operator(desk, "sid")
    sql = "UPDATE approvals_proposal SET excluded_users = %s WHERE id = %s"
    as_superuser(sql, [side.user.pk], command.proposal_id)
    assert side.offered(packet)["happened"] == "own_proposal"
    assert side.choose(packet, "happened", reference="re_1").status_code == 409
    assert fresh(command).status == "unknown"


@pytest.mark.parametrize("seen", ["", "x.y.z", "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11.1.1"])
def test_a_form_that_names_no_state_or_another_one_does_nothing(
    desk: Desk, opal: Operator, seen: str
) -> None:
    _, packet = unknown(desk)
    answer = opal.choose(packet, "take", seen=seen)
    assert (answer.status_code, "packet_moved" in answer.content.decode()) == (409, True)
    assert now(packet).status == "open"


def test_who_comes_second_is_told_who_was_faster_with_what_and_when(desk: Desk, opal: Operator) -> None:
    command, packet = unknown(desk)
    otto = operator(desk, "otto", [Role.OWNER])
    seen = otto.seen(packet)
    opal.choose(packet, "happened", reference="re_9")
    answer = otto.choose(packet, "did_not_happen", seen=seen)
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "opal was faster: “Confirm that it happened”" in text
    assert end_of(command) == CONFIRMED
    assert moves(packet) == [("opal", "happened", ""), ("otto", "did_not_happen", "packet_moved")]


def test_what_moved_by_itself_is_not_laid_on_a_person(desk: Desk, opal: Operator) -> None:
    command, packet = unknown(desk)
    opal.choose(packet, "take")
    seen = opal.seen(packet)
    cancel_run(tenant_id=desk.tenant.pk, run_id=command.run_id, reason="x", by=AGENT, clock=db_clock)

    desk.till.findings = [Finding("happened", "re_7")]
    assert look_up(command)
    text = opal.choose(packet, "happened", seen=seen, reference="re_9").content.decode()
    assert "was faster" not in text
    assert "This case has moved since you looked at it" in text


# -- at once --------------------------------------------------------------------------------------------------------


def raced(desk: Desk, people: list[Operator], packet: Any, what: list[tuple[str, dict[str, str]]]) -> Any:
    """Everybody chooses in the same instant, on the same state."""
    seen = Seen.parse(people[0].seen(packet))
    assert seen is not None
    memberships = [one.case(packet).membership for one in people]

    def do(number: int) -> str:
        code, typed = what[number]
        choose(
            tenant_id=desk.tenant.pk, packet_id=packet.pk, choice=BY_CODE[code], seen=seen,
            typed={"words": "seen", "cause": "A mistake in operating it"} | typed, membership=memberships[number],
            by=person(people[number].user),
            clock=db_clock,
        )  # fmt: skip
        return "done"

    return at_once(len(people), do)


def test_of_many_at_once_one_wins(desk: Desk) -> None:
    command, packet = unknown(desk)
    people = [operator(desk, f"op{number}") for number in range(6)]
    what: list[tuple[str, dict[str, str]]] = [
        ("happened", {"reference": "re_1"}), ("did_not_happen", {}), ("partial", {"reference": "re_1"}),
        ("cancel", {}), ("take", {}), ("happened", {"reference": "re_2"}),
    ]  # fmt: skip
    answers = raced(desk, people, packet, what)
    assert answers == {"done": 1, "packet_moved": 5}
    rows = moves(packet)
    assert len([row for row in rows if not row[2]]) == 1
    assert {row[0] for row in rows} == {one.user.username for one in people}
    desk.till.answers = [PAID]
    desk.work()
    assert len(desk.till.calls) <= 2
    assert fresh(command).tries == len(desk.till.calls)


def test_a_double_click_makes_one_new_version(desk: Desk, opal: Operator) -> None:
    command, packet = lapsed(desk)
    assert raced(desk, [opal] * 4, packet, [("ask_again", {})] * 4) == {"done": 1, "packet_moved": 3}
    assert Proposal.objects.filter(run_id=command.run_id).count() == 2
