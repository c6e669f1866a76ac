"""Legal holds over more than a run: what they keep, whom they bind, and that no way round them is left."""

from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from access.management.operator import at_the_console
from access.policies import RoleMissing
from audit.actors import clock_actor
from audit.models import Event
from common.clock import db_clock
from common.content_errors import ContentOnHold
from common.errors import NotFound
from common.models import ContentKey
from tests import factories as f
from tests.api.test_hooks import Sender, take_in
from tests.workflows.conftest import Desk, person
from tests.workflows.test_erasing import ended, erase, erased, hold, older, retention, sweep
from tests.workflows.together import at_once
from workflows.actions.erasing_deliveries import erase_due_deliveries, erase_quarantined
from workflows.actions.legal_holds import (
    HoldLifted,
    HoldNeedsReference,
    NotOneScope,
    lift_legal_hold,
    place_legal_hold,
)
from workflows.models import Delivery, LegalHold, Run

pytestmark = pytest.mark.django_db


def place(desk: Desk, **scope: Any) -> LegalHold:
    about = {"why": "file-18", "by": at_the_console()} | scope
    return place_legal_hold(tenant_id=desk.tenant.pk, clock=db_clock, **about)


def lift(desk: Desk, found: LegalHold, **changes: Any) -> LegalHold:
    about = {"why": "over", "by": at_the_console()} | changes
    return lift_legal_hold(tenant_id=desk.tenant.pk, hold_id=found.pk, clock=db_clock, **about)


def keeps(desk: Desk, run: Run) -> bool:
    try:
        erase(desk, run)
    except ContentOnHold:
        return True
    return False


@pytest.mark.parametrize("about", ["target", "record", "asked", "decided", "all"])
def test_a_hold_keeps_what_it_is_about_and_nothing_else(desk: Desk, about: str) -> None:
    other = ended(desk, "2")
    command = desk.approved(order="1", record="crm:7", sequence=1)
    desk.work()
    desk.advance()
    run = Run.objects.get(pk=command.run_id)
    asked = f.make_user(desk.tenant, "asked").pk
    if about == "asked":
        mine = f.make_run(desk.tenant, status="failed", on_behalf_of=f"user:{asked}")
        run = mine
    scope: dict[str, Any] = {
        "target": {"target": command.target}, "record": {"record_": "crm:7"}, "asked": {"person": asked},
        "decided": {"person": desk.ada.pk}, "all": {},
    }[about]  # fmt: skip
    found = place(desk, **scope)
    assert keeps(desk, run)
    if about in ("target", "record", "asked"):
        assert not keeps(desk, other)
    lift(desk, found)
    assert not keeps(desk, run)


def test_a_hold_keeps_what_comes_later_from_the_sweep_too(desk: Desk) -> None:
    place(desk, target="order:1")
    late, other = ended(desk, "1"), ended(desk, "2")
    older(late, 31)
    older(other, 31)
    with retention(timedelta(days=30)):
        assert sweep() == 1
    assert erased(late, other) == [False, True]


def test_placing_and_lifting_are_events_with_who_and_why_and_the_same_again_is_one(desk: Desk) -> None:
    found = place(desk, target="order:1")
    assert place(desk, target="order:1").pk == found.pk
    lift(desk, found)
    with pytest.raises(HoldLifted):
        lift(desk, found)
    events = Event.objects.filter(subject_id=found.pk).order_by("at")
    assert [(one.kind, one.reason, one.body) for one in events] == [
        ("legal_hold.placed", "file-18", {"scope": {"target": "order:1"}}),
        ("legal_hold.lifted", "over", {"scope": {"target": "order:1"}}),
    ]
    assert all(one.performed_by.startswith("command_line:") for one in events)


def test_only_admins_hold_and_lift_with_a_reference_and_within_their_organisation(desk: Desk) -> None:
    found, other = place(desk), f.make_tenant("lagoon")
    for may_not in (lambda: place(desk, by=person(desk.ada)), lambda: lift(desk, found, by=person(desk.ada))):
        with pytest.raises(RoleMissing):
            may_not()
    with pytest.raises(HoldNeedsReference):
        place(desk, why="  ")
    with pytest.raises(HoldNeedsReference):
        lift(desk, found, why="")
    with pytest.raises(NotOneScope):
        place(desk, target="order:1", record_="crm:7")
    with pytest.raises(NotFound):
        place(desk, person=f.make_user(other, "stranger").pk)
    with pytest.raises(NotFound):
        lift_legal_hold(
            tenant_id=other.pk, hold_id=found.pk, why="x", by=at_the_console(), clock=db_clock
        )  # fmt: skip


def test_a_hold_of_one_run_keeps_the_whole_case_and_what_is_refused_is_refused_whole(desk: Desk) -> None:
    """The replay was destroyed before the hold of its original was looked at, and by its own retention."""
    run = ended(desk)
    replay = f.make_run(desk.tenant, status="failed", kind="replay", original=run, workflow=run.workflow)
    hold(desk, run)
    for either in (run, replay):
        assert keeps(desk, either)
    older(replay, 31)
    with retention(timedelta(days=30)):
        assert sweep() == 0
    assert erased(run, replay) == [False, False]
    assert not Event.objects.filter(kind="run.content_erased").exists()


def test_a_held_replay_keeps_its_original(desk: Desk) -> None:
    run = ended(desk)
    replay = f.make_run(desk.tenant, status="failed", kind="replay", original=run, workflow=run.workflow)
    hold(desk, replay)
    assert keeps(desk, run)
    assert erased(run, replay) == [False, False]


@pytest.mark.parametrize("number", range(3))
def test_after_a_hold_was_placed_nothing_within_it_goes(desk: Desk, number: int) -> None:
    run = ended(desk)

    def erase_it() -> str:
        return str(erase(desk, run).done)

    def hold_it() -> str:
        place(desk, target="order:1042")
        return f"held, gone: {ContentKey.objects.get(run_id=run.pk).wrapped is None}"

    came = at_once(2, lambda which: erase_it() if which else hold_it())
    gone = ContentKey.objects.get(run_id=run.pk).wrapped is None
    assert came == {f"held, gone: {gone}": 1, "True" if gone else "content_on_hold": 1}


# -- webhooks that were not understood ------------------------------------------------------------------------------


def poison(desk: Desk) -> Delivery:
    sender = Sender(desk)
    assert sender.post(b"Jane Roe").status_code == 202
    take_in()
    found = Delivery.objects.get()
    assert (found.outcome, found.body is None) == ("quarantined", False)
    return found


def test_a_quarantined_body_goes_with_its_time_or_when_somebody_says_so(desk: Desk) -> None:
    from tests.workflows.later import as_superuser

    found = poison(desk)
    with retention(timedelta(days=30)):
        assert erase_due_deliveries(by=clock_actor()) == 0
        as_superuser("UPDATE workflows_delivery SET ended_at = ended_at - interval '31 days'")
        everything = place(desk)
        assert erase_due_deliveries(by=clock_actor()) == 0
        with pytest.raises(ContentOnHold):
            erase_quarantined(tenant_id=desk.tenant.pk, why="file-17", by=at_the_console())
        lift(desk, everything)
        assert erase_due_deliveries(by=clock_actor()) == 1
    found.refresh_from_db()
    assert found.body is None
    event = Event.objects.get(kind="endpoint.bodies_erased")
    assert (event.subject_id, event.reason, event.body) == (found.endpoint_id, "retention", {"count": 1})


def test_the_sweep_looks_for_them(desk: Desk) -> None:
    from tests.workflows.later import as_superuser
    from workflows.sweep import look_around

    poison(desk)
    as_superuser("UPDATE workflows_delivery SET ended_at = ended_at - interval '31 days'")
    with retention(timedelta(days=30)):
        look_around()
    assert Delivery.objects.get().body is None


# -- at the command line --------------------------------------------------------------------------------------------


def content(*arguments: str) -> str:
    out = StringIO()
    call_command("content", *arguments, stdout=out)
    return out.getvalue().strip()


def test_the_commands(desk: Desk, monkeypatch: Any) -> None:
    run = ended(desk)
    told = content("hold-all", "harbour", "--target", "order:1042", "--why", "file-18")
    assert told.startswith("Held: target order:1042.")
    found = LegalHold.objects.get()
    assert str(found.pk) in content("holds", "harbour")
    with pytest.raises(CommandError, match="legal hold"):
        content("erase", "harbour", str(run.pk), "--why", "file-17")
    with pytest.raises(CommandError, match="content holds"):
        content("lift", "harbour", "nonsense", "--why", "over")
    with pytest.raises(CommandError, match="no such thing"):
        content("lift", "harbour", str(uuid4()), "--why", "over")
    assert content("lift", "harbour", str(found.pk), "--why", "over") == "Lifted."
    assert content("holds", "harbour").startswith("None")
    assert content("erase-quarantined", "harbour", "--why", "file-17") == "0 bodies erased."
    monkeypatch.setattr("sys.stdin", StringIO("1042\n"))
    assert str(run.pk) in content("find", "harbour", "--why", "file-17")
    monkeypatch.setattr("sys.stdin", StringIO("nobody@example.org\n"))
    assert content("find", "harbour", "--why", "file-17") == "It stands nowhere."
