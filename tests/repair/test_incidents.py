"""An incident's life: opened, joined, contained, worked off, closed; with races, refusals and roles."""

from threading import Barrier
from typing import Any

import pytest
from django.db import transaction

from access.enums import Role
from access.policies import RoleMissing
from audit.actors import Actor, Owner, Via
from audit.models import Event
from common.clock import db_clock
from common.errors import NotFound, Refused
from common.ids import new_id
from repair.enums import Mark
from repair.incidents import acting
from repair.incidents.acting import (
    IncidentMoved,
    NothingSaid,
    NothingTouched,
    OneByOne,
    RunMarked,
    Texts,
    TokenCannotLead,
    close,
    contain,
    describe,
    join_now,
    lock_incident,
    mark,
    note,
)
from repair.incidents.joining import look
from repair.incidents.traces import suggestion
from repair.models_incidents import Incident, IncidentNote, IncidentRun
from tests import factories as f
from tests.repair.choosing import CAUSE, Operator, operator, refused
from tests.repair.leading import about, marks, now, opened, opened_by
from tests.workflows.conftest import AGENT, Desk, person
from tests.workflows.later import SWEEP
from tests.workflows.test_races import Beside
from workflows.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


def kinds(incident: Incident) -> list[str]:
    rows = Event.objects.filter(subject_id=incident.pk).order_by("at", "id")
    return list(rows.values_list("kind", flat=True))


def test_it_takes_every_run_that_fits_and_says_who_thinks_what(desk: Desk, opal: Operator) -> None:
    runs = {desk.start(order=str(number)).pk for number in range(3)}
    f.make_run(desk.tenant, workflow="other-flow")
    incident = opened_by(opal)
    assert set(marks(incident)) == runs
    assert set(marks(incident).values()) == {"unlooked"}
    assert (incident.status, incident.owner_id, incident.more) == ("open", opal.user.pk, False)
    assert now(incident).hypothesis == "A rate is wrong."
    assert kinds(incident) == ["incident.opened"]
    body = Event.objects.get(subject_id=incident.pk).body
    assert body["runs"] == 3
    assert "rate" not in str(body), "what people write stands in no event"


def test_of_nothing_there_is_no_incident(desk: Desk, opal: Operator) -> None:
    with pytest.raises(NothingTouched):
        opened_by(opal, target="order:none")
    assert not Incident.objects.exists()


@pytest.mark.parametrize("actor", [
    AGENT, Actor("command_line:root", Via.COMMAND_LINE, Owner.PERSON),
])  # fmt: skip
def test_nobody_but_a_signed_in_person_leads_one(desk: Desk, opal: Operator, actor: Actor) -> None:
    desk.start()
    incident = opened_by(opal)
    for does in everything(incident, actor):
        with pytest.raises(TokenCannotLead):
            does()
    with pytest.raises(TokenCannotLead):
        opened(desk, actor)
    token_of_a_person = Actor(f"user:{opal.user.pk}", Via.TOKEN, Owner.PERSON, user_id=opal.user.pk)
    with pytest.raises(TokenCannotLead):
        opened(desk, token_of_a_person)
    assert kinds(incident) == ["incident.opened"]


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.AUDITOR])
def test_other_roles_do_not(desk: Desk, opal: Operator, role: Role) -> None:
    desk.start()
    incident = opened_by(opal)
    other = person(f.make_user(desk.tenant, "rita", roles=[role]))
    for does in everything(incident, other):
        with pytest.raises(RoleMissing):
            does()
    assert kinds(incident) == ["incident.opened"]


def everything(incident: Incident, by: Actor) -> list[Any]:
    """All that changes one, by this actor."""
    run, base = next(iter(marks(incident))), about(incident, by)
    texts = Texts("x")
    return [
        lambda: join_now(**base),
        lambda: note(**base, words="x"),
        lambda: describe(**base, seen=1, texts=texts, owner=incident.owner_id, traces={}),
        lambda: contain(**base, seen=1, words="x"),
        lambda: close(**base, seen=1, cause=CAUSE, words=""),
        lambda: mark(**base, rows=[(run, 1)], mark=Mark.FINE, words=""),
    ]


def test_another_organisations_is_not_there(desk: Desk, opal: Operator) -> None:
    desk.start()
    incident = opened_by(opal)
    quay = f.make_tenant("quay")
    stranger = person(f.make_user(quay, "sven", roles=[Role.ADMIN]))
    for does in (
        lambda: join_now(**about(incident, stranger) | {"tenant_id": quay.pk}),
        lambda: note(**about(incident, stranger) | {"tenant_id": quay.pk}, words="x"),
        lambda: mark(**about(incident, stranger) | {"tenant_id": quay.pk}, rows=[(next(iter(marks(incident))), 1)],
                     mark=Mark.FINE, words=""),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            does()


# -- joining ------------------------------------------------------------------------------------------------------


def test_what_fits_later_joins_by_the_sweep_until_it_is_contained(desk: Desk, opal: Operator) -> None:
    first = desk.start(order="1").pk
    incident = opened_by(opal)
    second = desk.start(order="2").pk
    assert look(SWEEP, db_clock) == 1
    assert set(marks(incident)) == {first, second}
    assert look(SWEEP, db_clock) == 0
    contain(**about(incident, person(opal.user)), seen=1, words="The rate was put right.")
    desk.start(order="3")
    assert look(SWEEP, db_clock) == 0
    assert set(marks(incident)) == {first, second}
    assert kinds(incident) == ["incident.opened", "incident.joined", "incident.contained"]


def test_a_person_may_look_at_once_and_what_joined_is_not_asked_about_twice(
    desk: Desk, opal: Operator
) -> None:
    desk.start(order="1")
    incident = opened_by(opal)
    desk.start(order="2")
    assert join_now(**about(incident, person(opal.user))) == 1
    assert join_now(**about(incident, person(opal.user))) == 0


def test_a_time_that_has_an_end_takes_nothing_later(desk: Desk, opal: Operator) -> None:
    desk.start(order="1")
    incident = opened_by(opal, workflow="toy-pay", until=db_clock())
    desk.start(order="2")
    assert look(SWEEP, db_clock) == 0
    assert len(marks(incident)) == 1


def test_more_than_it_holds_is_said(desk: Desk, opal: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        desk.start(order=str(number))
    monkeypatch.setattr("repair.incidents.finding.MOST", 2)
    monkeypatch.setattr(acting, "MOST", 2)
    incident = opened_by(opal)
    newest = Run.objects.filter(tenant=desk.tenant).order_by("-created_at", "-id")[:2]
    assert set(marks(incident)) == {run.pk for run in newest}
    assert incident.more
    desk.start(order="9")
    assert look(SWEEP, db_clock) == 0
    assert len(marks(incident)) == 2


# -- marks --------------------------------------------------------------------------------------------------------


def test_what_is_fine_goes_for_many_and_the_rest_one_by_one(desk: Desk, opal: Operator) -> None:
    runs = [desk.start(order=str(number)).pk for number in range(4)]
    incident, by = opened_by(opal), person(opal.user)
    base = about(incident, by)
    done = mark(**base, rows=[(run, 1) for run in runs[:2]], mark=Mark.FINE, words="")
    assert set(done) == set(runs[:2])
    with pytest.raises(OneByOne):
        mark(**base, rows=[(run, 1) for run in runs[2:]], mark=Mark.REPAIRED, words="paid back")
    with pytest.raises(NothingSaid):
        mark(**base, rows=[(runs[2], 1)], mark=Mark.HANDLED_OUTSIDE, words=" ")
    mark(**base, rows=[(runs[2], 1)], mark=Mark.HANDLED_OUTSIDE, words="by mail")
    assert marks(incident) == {
        runs[0]: "fine", runs[1]: "fine", runs[2]: "handled_outside", runs[3]: "unlooked",
    }  # fmt: skip
    row = IncidentRun.objects.get(incident=incident, run=runs[2])
    assert (row.words, row.marked_by_id, row.version) == ("by mail", opal.user.pk, 2)
    mark(**base, rows=[(runs[2], 2)], mark=Mark.UNLOOKED, words="it came back")
    row.refresh_from_db()
    assert (row.mark, row.marked_by_id, row.marked_at) == ("unlooked", None, None)
    assert kinds(incident).count("incident.marked") == 4


def test_of_two_who_mark_one_run_the_second_is_told(desk: Desk, opal: Operator) -> None:
    run = desk.start().pk
    incident = opened_by(opal)
    others = [opal, operator(desk, "omar")]
    barrier, results = Barrier(2), []

    def say(who: Operator, word: str) -> str:
        barrier.wait(5)
        try:
            mark(**about(incident, person(who.user)), rows=[(run, 1)], mark=Mark.REPAIRED, words=word)
        except RunMarked as refusal:
            return refusal.code
        return "done"

    racing = [Beside(lambda who=who: say(who, who.user.username)) for who in others]
    results = [one.end() for one in racing]
    assert sorted(results) == ["done", "run_marked"]
    assert IncidentRun.objects.get(incident=incident).version == 2
    assert kinds(incident).count("incident.marked") == 1


def test_a_run_that_is_not_in_it_is_not_marked(desk: Desk, opal: Operator) -> None:
    desk.start()
    incident = opened_by(opal)
    other = f.make_run(desk.tenant, workflow="other-flow")
    for run in (other.pk, new_id()):
        with pytest.raises(NotFound):
            mark(**about(incident, person(opal.user)), rows=[(run, 1)], mark=Mark.FINE, words="")
    with pytest.raises(Refused):
        mark(**about(incident, person(opal.user)), rows=[], mark=Mark.FINE, words="")


# -- what is thought of it, and its end -----------------------------------------------------------------------------


def test_what_is_thought_is_kept_under_the_state_that_was_seen(desk: Desk, opal: Operator) -> None:
    run = desk.start()
    incident, omar = opened_by(opal), operator(desk, "omar")
    said = {
        "texts": Texts(
            "It is the rate", "It was rounded twice.", "Round once; version 3 again undoes it.", "No complaint."),
        "owner": omar.user.pk, "traces": {"clean": run.pk},
    }  # fmt: skip
    describe(**about(incident, person(opal.user)), seen=1, **said)
    with pytest.raises(IncidentMoved):
        describe(**about(incident, person(omar.user)), seen=1, **said)
    kept = now(incident)
    assert (kept.trouble, kept.remedy, kept.signal) == (
        "It is the rate", "Round once; version 3 again undoes it.", "No complaint.")  # fmt: skip
    assert (kept.owner_id, kept.trace_clean_id, kept.trace_failed_id) == (omar.user.pk, run.pk, None)
    foreign = f.make_run(f.make_tenant("quay"))
    for wrong in ({"traces": {"failed": foreign.pk}}, {"owner": f.make_user(foreign.tenant, "sven").pk}):
        with pytest.raises(NotFound):
            describe(**about(incident, person(opal.user)), seen=2, **said | wrong)
    with pytest.raises(RoleMissing):
        describe(**about(incident, person(opal.user)), seen=2, **said | {"owner": desk.ada.pk})


def test_of_two_who_close_it_one_does(desk: Desk, opal: Operator) -> None:
    desk.start()
    incident, omar = opened_by(opal), operator(desk, "omar")
    with transaction.atomic():
        lock_incident(desk.tenant.pk, incident.pk)
        racing = [Beside(lambda who=who: end(incident, who)) for who in (opal, omar)]
        assert racing[0].waits()
    assert sorted(one.end() for one in racing) == ["done", "incident_moved"]
    kept = now(incident)
    assert kept.status == "closed"
    assert kept.root_cause is not None
    assert kept.root_cause.title == CAUSE
    assert kinds(incident).count("incident.closed") == 1
    for does in (lambda: contain(**about(incident, person(opal.user)), seen=2, words="x"),
                 lambda: join_now(**about(incident, person(opal.user)))):  # fmt: skip
        with pytest.raises(IncidentMoved):
            does()


def end(incident: Incident, who: Operator) -> str:
    try:
        close(**about(incident, person(who.user)), seen=1, cause=CAUSE, words="We round once now.")
    except IncidentMoved as refusal:
        return refusal.code
    return "done"


def test_closing_needs_a_cause_and_notes_stay(desk: Desk, opal: Operator) -> None:
    desk.start()
    incident, base = opened_by(opal), {}
    base = about(incident, person(opal.user))
    with pytest.raises(NothingSaid):
        close(**base, seen=1, cause="  ", words="")
    with pytest.raises(NothingSaid):
        note(**base, words="")
    note(**base, words="Called the provider.")
    close(**base, seen=1, cause="A new one", words="Round once.")
    said = [
        (row.kind, row.words) for row in IncidentNote.objects.filter(incident=incident).order_by("at", "id")
    ]
    assert said == [("opened", ""), ("note", "Called the provider."), ("closed", "Round once.")]


# -- the runs that stand for the others -----------------------------------------------------------------------------


def test_code_suggests_a_clean_one_one_that_was_tried_again_and_one_that_failed(
    desk: Desk, opal: Operator
) -> None:
    clean = desk.approved(order="1")
    desk.work()
    desk.advance()
    declined = desk.proposed(order="2")
    desk.decide(declined, "reject")
    desk.advance()
    failed, _ = refused(desk, "3")
    incident = opened_by(opal)
    assert suggestion(incident, "clean").pk == clean.run_id
    assert suggestion(incident, "failed").pk == failed.run_id
    assert suggestion(incident, "corrected") is None
    done = f.make_run(desk.tenant, workflow="toy-pay", status="completed", corrected_outcome="refunded")
    join_now(**about(incident, person(opal.user)))
    assert suggestion(incident, "corrected").pk == done.pk


def test_without_a_clean_one_among_them_one_of_the_same_workflow_stands_in(
    desk: Desk, opal: Operator
) -> None:
    clean = f.make_run(desk.tenant, workflow="toy-pay", status="completed")
    failed = f.make_run(desk.tenant, workflow="toy-pay", status="failed")
    incident = opened_by(opal, workflow="toy-pay", outcome="failed")
    assert set(marks(incident)) == {failed.pk}
    assert suggestion(incident, "clean").pk == clean.pk
