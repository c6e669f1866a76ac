"""What stands in the database before one more proposal of a step is written: read on one way, inside the action."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from access.selectors import accounts_of, duties_question
from approvals.models import Proposal
from approvals.remembering import held_question
from common.digests import same
from common.pipelined import Question, ask
from workflows.contracts import Draft
from workflows.enums import CommandStatus, Effect
from workflows.models import Run, Step


@dataclass(frozen=True, slots=True)
class Order:
    """The newest order of a step, in the run or in one that shares keys with it, and what it was for."""

    status: str
    effect: str
    generation: int
    material_digest: str


@dataclass(frozen=True, slots=True)
class Before:
    """``rejected``: a remembered rejection of exactly this. ``on_duty``: accounts of who owns the workflow or wrote the
    policy. ``supplied``: who stood behind the automations that supplied data to the run.
    """

    rejected: UUID | None
    last: Order | None
    on_duty: frozenset[UUID]
    supplied: frozenset[UUID]

    def generation(self, step: Step, material: str) -> int:
        """Section 5: a new key only when the last order certainly had no effect and the action is another one."""
        if self.last is None:
            return step.generation or 1
        settled_without = self.last.status in CommandStatus.final_states and self.last.effect == Effect.NONE
        return self.last.generation + (settled_without and not same(self.last.material_digest, material))

    def excluded(self, run: Run, supersedes: Proposal | None, side: Collection[UUID]) -> list[UUID]:
        """The proposer's side, and who answers for the workflow or wrote this policy: all their accounts as of now.

        Whoever was closed out of the version before stays so: a new version must not be the way around it.
        """
        earlier = supersedes.excluded_users if supersedes is not None else ()
        of_run = {UUID(user) for user in run.excluded_users}
        return sorted({*of_run, *self.supplied, *earlier, *side, *self.on_duty})


def before(run: Run, step: Step, draft: Draft, material: str, now: datetime) -> Before:
    """Read it. What is proposed rests on data that was supplied, so who is behind that does not decide."""
    rejected, last, on_duty, supplied = ask(
        held_question(run.tenant_id, material, now),
        Question(_LAST_ORDER, [run.tenant_id, step.key, run.tenant_id, run.identity, run.identity], _order),
        duties_question(run.tenant_id, run.workflow, draft.operation.policy.version),
        Question(_SUPPLIED, [run.tenant_id, _runs_with_its_data(run)], _users),
    )  # fmt: skip
    return Before(rejected, last, accounts_of(run.tenant_id, on_duty) if on_duty else on_duty, supplied)


def _order(rows: list[tuple[Any, ...]]) -> Order | None:
    return Order(*rows[0]) if rows else None


def _users(rows: list[tuple[Any, ...]]) -> frozenset[UUID]:
    return frozenset(UUID(user) for (user,) in rows)


def _runs_with_its_data(run: Run) -> list[UUID]:
    """Its own, and of a replay all runs of the family: it may take the data of its original along."""
    if not run.original_id:
        return [run.pk]
    replays = Run.objects.filter(tenant_id=run.tenant_id, original_id=run.identity)
    return [run.identity, *replays.values_list("pk", flat=True)]


# The original run and its replays share keys and counts.
_LAST_ORDER: Final = """
    SELECT c.status, c.effect, p.generation, p.material_digest FROM workflows_command c
    JOIN workflows_step s ON s.id = c.step_id JOIN approvals_proposal p ON p.id = c.proposal_id
    WHERE c.tenant_id = %s AND s.key = %s
      AND c.run_id IN (SELECT r.id FROM workflows_run r WHERE r.tenant_id = %s AND (r.id = %s OR r.original_id = %s))
    ORDER BY c.created_at DESC, c.id DESC LIMIT 1
"""
_SUPPLIED: Final = """
    SELECT DISTINCT jsonb_array_elements_text(e.body -> 'side') FROM audit_event e
    WHERE e.tenant_id = %s AND e.run_id = ANY(%s) AND e.kind = 'run.data_supplied'
      AND jsonb_typeof(e.body -> 'side') = 'array'
"""
