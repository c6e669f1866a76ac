"""A later correction of what the user got: it stands beside the first word, and both are kept."""

from datetime import datetime
from typing import Final
from uuid import UUID

from access.enums import Role
from access.policies import check_role, membership_of
from audit.actions import record
from audit.actors import Actor
from common.clock import db_clock
from common.errors import InvalidInput, Refused
from common.tx import action
from workflows.actions.outbox import note_state
from workflows.actions.settle import lock_run
from workflows.enums import RunStatus
from workflows.models import Run

CORRECTORS: Final = (Role.OPERATOR, Role.OWNER, Role.ADMIN)


class NotFinished(Refused):
    """Only the outcome of a run that has ended is corrected."""

    code = "not_finished"


class ReasonMissing(InvalidInput):
    """Say how you know what the user really got."""

    code = "reason_missing"


@action
def correct_outcome(*, tenant_id: UUID, run_id: UUID, outcome: str, reason: str, by: Actor) -> Run:
    """A person corrects the outcome of an ended run, with a reason. Raises RoleMissing, NotFinished, NotFound."""
    check_role(membership_of(by.user_id, tenant_id), *CORRECTORS)
    run = lock_run(tenant_id, run_id)
    if run.status not in RunStatus.final_states:
        raise NotFinished()
    if not reason.strip():
        raise ReasonMissing()
    correct(run, outcome, reason, by=by, now=db_clock())
    return run


def correct(run: Run, outcome: str, reason: str, *, by: Actor, now: datetime) -> None:
    """The same for a locked run that has ended, in the transaction that ends it."""
    before = run.corrected_outcome or run.outcome
    run.corrected_outcome, run.correction_reason = outcome[:40], reason.strip()[:500]
    run.state_version += 1
    run.save(update_fields=["corrected_outcome", "correction_reason", "state_version"])
    record(
        by=by, kind="run.outcome_corrected", tenant_id=run.tenant_id, subject_type="run", subject_id=run.pk,
        run_id=run.pk, from_state=before, to_state=run.corrected_outcome, reason="corrected by a person",
    )  # fmt: skip
    note_state(run, now)
