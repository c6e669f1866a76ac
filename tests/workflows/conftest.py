"""What the tests of runs and commands share: the toy workflow, a tenant with two reviewers, and short verbs."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from access.enums import Role
from access.models import User
from approvals.actions import DecisionOutcome, Submission, decide
from approvals.models import Proposal
from approvals.receipts import issue
from approvals.shown import view_of
from audit.actors import Actor, Owner, Via
from common.clock import Clock, db_clock
from common.ids import new_id
from common.models import Tenant
from tests.factories import make_tenant, make_user
from tests.workflows import toy
from workflows import registry
from workflows.actions.runs import Source, start_run
from workflows.engine import run_due_steps
from workflows.enums import Lane
from workflows.models import Command, Run, Step
from workflows.worker import work

AGENT = Actor(performed_by="api:tester", via=Via.TOKEN, owner=Owner.AUTOMATION)


def person(user: User) -> Actor:
    return Actor(performed_by=f"user:{user.pk}", via=Via.SESSION, owner=Owner.PERSON, user_id=user.pk)


@dataclass
class Desk:
    """One tenant with people, and the verbs of a life: start, advance, approve, execute."""

    tenant: Tenant
    ada: User
    ben: User
    till: toy.Till

    def start(self, workflow: str = "toy-pay", order: str = "1042", **source: Any) -> Run:
        started = start_run(
            tenant_id=self.tenant.pk, workflow=workflow, input={"order": order}, by=AGENT, clock=db_clock,
            source=Source(system="test", **({"event_id": str(new_id())} | source)),
        )  # fmt: skip
        return started.run

    def advance(self) -> int:
        return run_due_steps(limit=50)

    def proposed(self, **start: Any) -> Proposal:
        """A run that waits for approval; returns its proposal."""
        run = self.start(**start)
        self.advance()
        return Proposal.objects.get(run_id=run.pk)

    def submission(self, proposal: Proposal, user: User, kind: str = "approve", **changes: Any) -> Submission:
        receipts = tuple(
            issue(
                user_id=user.pk, proposal_id=proposal.pk, digest=proposal.digest,
                view_digest=proposal.view_digest, part=part, at=db_clock(),
            )
            for part in view_of(proposal).parts
        )  # fmt: skip
        values = {
            "kind": kind, "digest": proposal.digest, "view_digest": proposal.view_digest,
            "view_receipts": receipts, "acknowledged": view_of(proposal).to_acknowledge,
            "reason": "" if kind == "approve" else "not this one",
        }  # fmt: skip
        return Submission(**(values | changes))

    def decide(
        self,
        proposal: Proposal,
        kind: str = "approve",
        user: User | None = None,
        clock: Clock = db_clock,
        **changes: Any,
    ) -> DecisionOutcome:
        user = user or self.ada
        return decide(
            tenant_id=self.tenant.pk, proposal_id=proposal.pk, by=person(user), clock=clock,
            submission=self.submission(proposal, user, kind, **changes),
        )  # fmt: skip

    def approved(self, **start: Any) -> Command:
        """A command that is ready."""
        proposal = self.proposed(**start)
        self.decide(proposal)
        return Command.objects.get(proposal=proposal)

    def work(self, **options: Any) -> int:
        """One round of a worker: new work, or where there is none, what was lost with its worker."""
        if "lane" in options:
            return work(**options)
        return work(lane=Lane.NEW, **options) or work(lane=Lane.REPROCESS, **options)


@pytest.fixture
def desk(transactional_db: None) -> Desk:
    toy.install()
    registry.register_definitions(clock=db_clock)
    tenant = make_tenant("harbour")
    ada = make_user(tenant, "ada", roles=[Role.REVIEWER])
    ben = make_user(tenant, "ben", roles=[Role.REVIEWER])
    return Desk(tenant, ada, ben, toy.reset())


def state(run_id: UUID) -> tuple[str, dict[str, str]]:
    """A run's status and its steps' states, as the tests speak of them."""
    run = Run.objects.get(pk=run_id)
    return run.status, dict(Step.objects.filter(run=run).order_by("position").values_list("key", "status"))
