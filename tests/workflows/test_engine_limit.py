"""The engine's limit: it never leaves a step claimed that nobody runs."""

import pytest

from tests.workflows.conftest import Desk
from workflows.engine import run_due_steps
from workflows.enums import StepStatus
from workflows.models import Step


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_limit_in_the_middle_of_a_run_leaves_nothing_claimed(desk: Desk, limit: int) -> None:
    desk.start()
    desk.start()
    run_due_steps(limit=limit)
    assert not Step.objects.filter(status=StepStatus.RUNNING).exists()
