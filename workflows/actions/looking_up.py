"""Have an unknown outcome looked at now, and not only when its time comes: the worker asks, outside any transaction."""

from typing import Final
from uuid import UUID

from access.enums import Role
from access.policies import check_role, membership_of
from audit.actions import record
from audit.actors import Actor, Via
from common.clock import Clock
from common.errors import Refused
from common.tx import action
from workflows import registry
from workflows.actions.attesting import AlreadySettled, TokenCannotAttest
from workflows.doorbell import ring_on_commit
from workflows.enums import CommandStatus
from workflows.models import Command
from workflows.selectors import get_command
from workflows.worker.held import hold

LOOKERS: Final = (Role.OPERATOR, Role.OWNER, Role.ADMIN)


class LookUpDue(Refused):
    """It is due already: the worker asks in a moment."""

    code = "look_up_due"


class VersionUnknown(Refused):
    """The code here does not know this version of the operation, so nobody here can ask about it."""

    code = "version_unknown"


def look_up_now(*, tenant_id: UUID, command_id: UUID, by: Actor, clock: Clock) -> Command:
    """Let the reconciler take this unknown command next. It does what it always does (design, 6.6): late evidence, the
    look-up, and where that has no answer a second send with the same key, as far as that is allowed.

    For operators, owners and admins in a session. Raises AlreadySettled, LookUpDue, VersionUnknown, NotFound.
    """
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotAttest()
    check_role(membership_of(by.user_id, tenant_id), *LOOKERS)
    return _make_due(tenant_id, get_command(tenant_id, command_id).proposal_id, by=by, clock=clock)


@action
def _make_due(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> Command:
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    assert held is not None
    command = held.command
    if command.status != CommandStatus.UNKNOWN:
        raise AlreadySettled(
            status=command.status, effect=command.effect, settled_by=command.settled_by or None
        )
    if not registry.knows(command.operation, command.operation_version):
        raise VersionUnknown()
    if command.due_at is not None and command.due_at <= held.now:
        raise LookUpDue()
    command.due_at = held.now
    command.save(update_fields=["due_at"])
    record(
        by=by, kind="command.look_up_asked", tenant_id=tenant_id, subject_type="command", subject_id=command.pk,
        run_id=command.run_id, digest=held.proposal.digest, body={"lookups": command.lookups},
    )  # fmt: skip
    ring_on_commit()
    return command
