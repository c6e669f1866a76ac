"""Short verbs for tests of replays."""

from typing import Any

from access.enums import Role
from access.models import User
from common.clock import db_clock
from repair.replay.acting import replay_run
from repair.replay.rules import Asked
from tests import factories
from tests.workflows.conftest import Desk, person
from workflows.actions.cancelling import cancel_run
from workflows.authoring import Observation
from workflows.engine import run_due_steps
from workflows.enums import Lane
from workflows.enums_replays import Effects, Versions
from workflows.models import Run


def operator_of(desk: Desk) -> User:
    """The one operator of this desk."""
    found = User.objects.filter(username="omar").first()
    return found or factories.make_user(desk.tenant, "omar", roles=[Role.OPERATOR])


def dry(**changes: Any) -> Asked:
    return Asked(
        **({"versions": Versions.NOW, "effects": Effects.DRY, "reason": "to see what it would do"} | changes)
    )


def anew(**changes: Any) -> Asked:
    return dry(**({"effects": Effects.PROPOSE} | changes))


def replayed(desk: Desk, run: Run, asked: Asked, *, by: User | None = None) -> Run:
    """Made, and not yet begun."""
    return replay_run(
        tenant_id=run.tenant_id,
        run_id=run.pk,
        asked=asked,
        by=person(by or operator_of(desk)),
        clock=db_clock,
    )


def advance() -> int:
    """All that is due in the lane of reprocessed work."""
    return run_due_steps(limit=50, lane=Lane.REPROCESS)


def through(desk: Desk, run: Run, asked: Asked) -> Run:
    """Made and run as far as it goes by itself."""
    made = replayed(desk, run, asked)
    advance()
    made.refresh_from_db()
    return made


def paid(desk: Desk, **start: Any) -> Run:
    """A run whose effect happened."""
    command = desk.approved(**start)
    desk.work()
    desk.advance()
    return Run.objects.get(pk=command.run_id)


def given_up(desk: Desk, **start: Any) -> Run:
    """A run whose order ended without effect, and which was cancelled then."""
    desk.till.answers = [Observation(sent=True, status=401)]
    command = desk.approved(**start)
    desk.work()
    cancel_run(
        tenant_id=desk.tenant.pk,
        run_id=command.run_id,
        reason="given up",
        by=person(operator_of(desk)),
        clock=db_clock,
    )
    return Run.objects.get(pk=command.run_id)
