"""The harness is itself proven: a planted defect makes it fail with the right invariant, and nothing else does."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.planting import PLANTS
from tests.faults.scenarios import SCENARIOS as FIRST
from tests.faults.scenarios import Scenario
from tests.faults.scenarios_further import FURTHER

pytestmark = [pytest.mark.django_db, pytest.mark.e2e]
SCENARIOS = [*FIRST, *FURTHER]


def planted() -> list[Any]:
    """Each scenario with each defect that it shows, and all that it must name."""
    cases = []
    for scenario in SCENARIOS:
        for defect in dict.fromkeys(name for name, _ in scenario.shows):
            names = {named for name, named in scenario.shows if name == defect}
            cases.append(
                pytest.param(
                    scenario,
                    defect,
                    names,
                    id=f"{defect}-{scenario.kind}" + ("-together" if scenario.together else ""),
                )
            )
    return cases


TRIES = 3
"""A scenario lines processes up within fractions of a second, which a busy machine may miss."""


def played(stage_for: Callable[..., Any], scenario: Scenario, planted: str = "", tries: int = TRIES) -> Any:
    """What the oracle says of the scenario. Begun anew, in a place of its own, when its processes did not come in time:
    then it has shown nothing, good or bad.
    """
    stage = stage_for(scenario.kind, planted, scenario.together)
    try:
        scenario.play(stage)
        return stage.judge()
    except AssertionError:
        if tries == 1:
            raise
    finally:
        stage.nursery.kill_all()
    return played(stage_for, scenario, planted, tries - 1)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: f"{scenario.name}-{scenario.kind}")
def test_without_a_defect_every_invariant_holds(scenario: Scenario, stage_for: Callable[..., Any]) -> None:
    found = played(stage_for, scenario)
    assert [(violation.name, violation.detail) for violation in found.violations] == []
    assert len(found.world.lives) >= 1


@pytest.mark.parametrize(("scenario", "defect", "names"), planted())
def test_a_planted_defect_is_found(
    scenario: Scenario, defect: str, names: set[str], stage_for: Callable[..., Any]
) -> None:
    """In one of a few tries: what a defect does hangs on the moment."""
    found: set[str] = set()
    for _ in range(TRIES):
        found = set(played(stage_for, scenario, defect).names)
        if names <= found:
            break
    assert names <= found


def test_every_defect_is_planted_somewhere() -> None:
    from tests.faults import planting_acts, planting_checks, planting_settling  # noqa: F401 - they fill the list

    shown = {name for scenario in SCENARIOS for name, _ in scenario.shows}
    assert set(PLANTS) - shown == set()
