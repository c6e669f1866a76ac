"""One more send with the same key, of an unknown command: only where the provider surely still knows the key.

A provider that remembers it answers what came of the first request, or does it now for the first time. So everything is
checked that a first send is checked for, pins included; what fails leaves the command unknown, for people.
"""

from collections.abc import Mapping
from typing import Any

from audit.actors import Actor
from common.clock import Clock
from common.crashpoints import crashpoint
from common.deadline import Deadline
from common.ids import new_id
from common.tx import action
from workflows import registry
from workflows.models import Attempt, Command, Run
from workflows.scope import enter_scope
from workflows.settling import may_send_again
from workflows.worker.calling import call_once
from workflows.worker.checks import current_policy, failed_check, intact_contract, settles_at, tries_left
from workflows.worker.claim import Claim
from workflows.worker.held import Held, conclude, hold
from workflows.worker.send import Looked, changed_since, look
from workflows.worker.store import store_answer


def send_again(command: Command, *, by: Actor, clock: Clock, worker: str) -> bool:
    """Ask the provider by doing: True if a request was made, whatever came of it.

    ``command`` was read without a lock; everything is checked again under the locks.
    """
    operation = registry.operation(command.operation, command.operation_version)
    if operation.key_retention is None:
        return False
    claim = Claim(
        command_id=command.pk, tenant_id=command.tenant_id, proposal_id=command.proposal_id,
        run_id=command.run_id, token=new_id(), first_try=False, operation=operation,
    )  # fmt: skip
    looked = look(claim, command)
    deadline = Deadline.after(operation.call_deadline.total_seconds())
    contract = _commit_sent_again(claim, looked, worker, by=by, clock=clock)
    if contract is None:
        return False
    crashpoint("CP5")
    seen = call_once(operation, command, contract, deadline, looked.secrets)
    crashpoint("CP8")
    store_answer(claim, seen, by=by, clock=clock)
    return True


@action
def _commit_sent_again(
    claim: Claim, looked: Looked, worker: str, *, by: Actor, clock: Clock
) -> Mapping[str, Any] | None:
    enter_scope()
    policy = current_policy(claim.operation, lock=True)
    held = hold(claim.tenant_id, claim.proposal_id, by=by, clock=clock)
    if held is None or not _is_allowed(held, looked, policy):
        return None
    attempt = Attempt(
        tenant_id=held.command.tenant_id, command=held.command, number=held.command.claims + 1, worker=worker,
        token=claim.token, claimed_at=held.now,
    )  # fmt: skip
    attempt.save()
    attempt.send(at=held.now)
    attempt.save(update_fields=["status", "sent_at"])
    lease_until = held.now + 2 * claim.operation.call_deadline
    held.move("send_again", "same key", at=held.now, token=claim.token, lease_until=lease_until)
    conclude(held)
    return intact_contract(held.proposal, held.command)


def _is_allowed(held: Held, looked: Looked, policy: int | None) -> bool:
    """All that a first send must pass, and: the first request is over and settled, the caps are not reached, nobody
    wishes to cancel, and the provider knows the key until this call must have ended.
    """
    if looked.refused_credential or looked.postpone is not None or held.command.failure_code == "key_reused":
        return False
    failed = failed_check(held, policy=policy) or changed_since(held, looked)
    run = Run.objects.only("cancel_requested_at").get(pk=held.command.run_id)
    return (
        run.cancel_requested_at is None
        and held.now >= settles_at(held)
        and tries_left(held)
        and may_send_again(
            held.command, key_retention=held.operation.key_retention,
            now=held.now + held.operation.call_deadline, frozen=held.is_frozen,
            circuit_open=held.circuit_is_open, failed_check=failed,
        )
    )  # fmt: skip
