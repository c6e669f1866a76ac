"""Killed and stopped at each named place: what the database says then, and what comes of it. Always one effect."""

from collections.abc import Callable
from typing import Any

import pytest

from approvals.models import Proposal
from tests.faults.facts import journal
from tests.faults.people import Action
from tests.faults.stage import Stage
from workflows.models import Command

pytestmark = [pytest.mark.django_db, pytest.mark.e2e]
AFTER_SENT = ("CP5", "CP6", "CP7", "CP8", "CP9")


def rests_well(stage: Stage, *, effects: int = 1) -> None:
    """Everything comes to its end, and the oracle finds nothing."""
    stage.rest()
    found = stage.judge()
    assert [(violation.name, violation.detail) for violation in found.violations] == []
    assert found.effects == effects


@pytest.mark.parametrize("point", ["CP3", "CP4", *AFTER_SENT, "CP10"])
@pytest.mark.parametrize(
    ("kind", "together"), [("lookup", False), ("dedup", True)], ids=["alone", "together"]
)
def test_a_worker_is_killed(point: str, kind: str, together: bool, stage_for: Callable[..., Stage]) -> None:
    """Nothing was sent: ready again. Sent: unknown, and never ready by time alone."""
    stage = stage_for(kind, together=together)
    # Reading the order is the first thing that is written to the provider, so these wait for a later visit.
    action = stage.office.approved()
    worker = stage.worker(f"{point}:kill" + (f":{VISIT_OF_THE_CALL}" if point in ("CP6", "CP7") else ""))
    stage.ends(worker)
    expected = {"CP3": "claimed", "CP4": "claimed", "CP10": "confirmed"}.get(point, "sent")
    assert stage.status(action) == expected
    rests_well(stage)
    assert stage.status(action) == "confirmed"


VISIT_OF_THE_CALL = 4
"""Earlier effects, the order and the customer are read first."""


@pytest.mark.parametrize("point", AFTER_SENT)
def test_a_worker_is_killed_before_a_blind_provider(point: str, stage_for: Callable[..., Stage]) -> None:
    """Nobody can find out but a person, who is asked; it is never sent again."""
    stage = stage_for("blind")
    action = stage.office.approved()
    stage.ends(stage.worker(f"{point}:kill" + (":3" if point in ("CP6", "CP7") else "")))
    # Requests are counted for these two, and a slow machine may read the records once more before it sends.
    sent = stage.status(action) == "sent"
    assert sent or point in ("CP6", "CP7")
    stage.rest()
    found = stage.judge()
    assert [(violation.name, violation.detail) for violation in found.violations] == []
    assert stage.status(action) == ("unknown" if sent else "confirmed")
    assert found.effects <= 1


@pytest.mark.parametrize("point", ["CP3", "CP4", "CP5", "CP7", "CP8", "CP9"])
@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
def test_a_worker_sleeps_past_its_lease(point: str, together: bool, stage_for: Callable[..., Stage]) -> None:
    """Another takes over, where the lock lets it; whoever wakes up changes nothing that was settled meanwhile."""
    stage = stage_for("lookup", together=together)
    action = stage.office.approved()
    sleeper = stage.worker(f"{point}:stop" + (f":{VISIT_OF_THE_CALL}" if point == "CP7" else ""))
    stage.stops(sleeper)
    stage.sweep()
    if point in ("CP4", "CP9"):
        stage.pause(2.5)  # it holds the row: nobody can take over before it wakes up
    else:
        stage.becomes(action, "confirmed")
    sleeper.go_on()
    stage.ends(sleeper)
    rests_well(stage)


@pytest.mark.parametrize("point", ["CP0", "CP1"])
def test_a_decision_is_cut_off(point: str, stage_for: Callable[..., Stage]) -> None:
    """Before the commit it was never made; after it, it stands, and the sweep finds the work without a ring."""
    stage = stage_for("lookup")
    action = stage.office.new()
    stage.office.propose(action)
    stage.ends(vote(stage, action, f"{point}:kill"))
    status = Proposal.objects.get(pk=action.proposal_id).status
    assert (status, Command.objects.count()) == {"CP0": ("pending", 0), "CP1": ("approved", 1)}[point]
    assert stage.office.approve(action) in ("approved", "already_decided", "consumed")
    rests_well(stage)


def vote(stage: Stage, action: Action, point: str) -> Any:
    office = {"tenant": str(stage.office.tenant.pk)}
    return stage.nursery.fork(
        "vote", {"PLACET_CRASHPOINT": point}, office=office, proposal_id=str(action.proposal_id),
        user_id=str(stage.office.rita.pk), kind="approve",
    )  # fmt: skip


@pytest.mark.parametrize("point", ["CP2", "CP11"])
def test_a_wake_up_is_cut_off(point: str, stage_for: Callable[..., Stage]) -> None:
    stage = stage_for("lookup")
    action = stage.office.approved()
    stage.ends(stage.nursery.fork("message", {"PLACET_CRASHPOINT": f"{point}:kill"}))
    assert stage.status(action) == {"CP2": "ready", "CP11": "confirmed"}[point]
    rests_well(stage)


@pytest.mark.parametrize("point", ["CP12", "CP13"])
def test_a_reconciler_is_killed(point: str, stage_for: Callable[..., Stage]) -> None:
    stage = stage_for("lookup")
    action = stage.office.approved()
    stage.ends(stage.worker("CP8:kill"))
    stage.ends(stage.nursery.fork("sweep", {"PLACET_CRASHPOINT": f"{point}:kill"}))
    assert stage.status(action) == {"CP12": "unknown", "CP13": "sent"}[point]
    rests_well(stage)


def test_a_sealer_is_killed(stage_for: Callable[..., Stage]) -> None:
    """The chain has neither a gap nor a place twice."""
    from audit.models import Seal

    stage = stage_for("lookup")
    stage.office.approved()
    stage.ends(stage.nursery.fork("seal", {"PLACET_CRASHPOINT": "CP14:kill"}))
    assert not Seal.objects.exists()
    rests_well(stage)
    assert Seal.objects.filter(tenant_id=stage.office.tenant.pk).exists()


def test_a_persons_word_is_cut_off(stage_for: Callable[..., Stage]) -> None:
    """It was never said; said again, it settles what nobody else could."""
    stage = stage_for("blind")
    action = stage.office.approved()
    stage.ends(stage.worker("CP8:kill"))
    stage.rest()
    [row] = journal(stage.provider, stage.slug)
    said = {
        "tenant": str(stage.office.tenant.pk), "command": str(stage.command(action).pk),
        "user": str(stage.office.owen.pk), "reference": row["ref"],
    }  # fmt: skip
    stage.ends(stage.nursery.fork("attest", {"PLACET_CRASHPOINT": "CP15:kill"}, **said))
    assert stage.status(action) == "unknown"
    stage.ends(stage.nursery.fork("attest", **said))
    assert stage.status(action) == "confirmed"
    rests_well(stage)
