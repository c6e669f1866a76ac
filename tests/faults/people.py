"""A tenant, its reviewers and an agent of the harness, and the product's own actions in their hands."""

import hashlib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any, TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connection, transaction

from access.actions import deactivate_user, set_roles
from access.actions_people import link_accounts
from access.enums import Role
from access.models import User
from approvals.actions import withdraw
from approvals.models import Proposal
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from common.errors import Refused
from common.models import Tenant
from examples.refunds import client
from tests.examples.refunds.conftest import RunningProvider
from tests.factories import make_tenant, make_user
from tests.faults import voting
from workflows.actions.cancelling import cancel_run
from workflows.actions.outside import OutsideProposal, SourceUnavailable, propose_from_outside
from workflows.actions.runs import Source

T = TypeVar("T")
AGENT = Actor("api:agent", Via.TOKEN, Owner.AUTOMATION)
_never = Event()
"""For waiting some time: nothing sets it."""
PATIENCE = 40
"""Tries against a database that comes and goes; each waits for a connection."""


@dataclass
class Action:
    """One thing that is asked for: what may become of it, and what the provider must then receive."""

    number: int
    what: str
    """Why it must not run (``pending``, ``expired``, …), which moment meets it, or ``good``."""
    operation: str
    arguments: dict[str, str]
    proposal_id: Any = None
    digest: str = ""
    approvers: list[Any] = field(default_factory=list)

    @property
    def body_hash(self) -> str:
        """Of the exact bytes that were approved, computed without the product's database."""
        refund = client.Refund(**self.arguments)
        return "sha256:" + hashlib.sha256(client._json(refund)).hexdigest()


class Office:
    """One tenant; ``kind`` says before which kind of provider."""

    def __init__(self, slug: str, kind: str, provider: RunningProvider) -> None:
        self.kind, self.provider = kind, provider
        self.tenant: Tenant = make_tenant(slug)
        self.slug = slug
        self.rita = make_user(self.tenant, f"rita-{slug}")
        self.owen = make_user(self.tenant, f"owen-{slug}", roles=[Role.REVIEWER, Role.ADMIN])
        self.olga = make_user(self.tenant, f"olga-{slug}", roles=[Role.OPERATOR])
        self.actions: list[Action] = []
        self.numbers = itertools.count()

    # -- asking -----------------------------------------------------------------------------------------------

    def new(self, what: str = "good", variant: str = "", *, amount: str = "", order: str = "") -> Action:
        """An action on an order of its own, with a customer of its own; not proposed yet."""
        number = next(self.numbers)  # in one step: the moments have threads of their own
        order = order or self._order(number)
        arguments = {
            "order": order, "amount": amount or f"{10 + number % 60}.{number % 100:02}", "currency": "EUR",
            "reason": "damaged", "receipt_to": f"someone{number}@example.com",
        }  # fmt: skip
        name = f"faults.{self.kind}" + (f".{variant}" if variant else "")
        action = Action(number, what, name, arguments)
        self.actions.append(action)
        return action

    def _order(self, number: int) -> str:
        order, customer = f"o{number}", f"c-{number}"
        self._provider(
            "/_admin/customers", {"id": customer, "name": "Somebody", "email": f"{customer}@example.com"}
        )
        self._provider(
            "/_admin/orders", {"id": order, "customer": customer, "currency": "EUR", "paid": "500.00"}
        )
        return order

    def block_customer(self, action: Action) -> None:
        """The pinned record changes at the provider."""
        customer = action.arguments["order"].replace("o", "c-")
        self._provider("/_admin/customers", {"id": customer, "status": "blocked"})

    def _provider(self, path: str, body: Mapping[str, Any]) -> None:
        seen = self.provider.call("POST", path, {"tenant": self.slug, **body})
        assert seen.status in (200, 201), seen.raw

    def propose(self, action: Action, *, supersedes: Any = None) -> Proposal:
        """The same request again makes the same proposal, so a broken connection is simply tried again."""
        key = "1" if supersedes is None else "2"
        source = Source("agent", f"{self.slug}-{action.number}", key=key)
        request = OutsideProposal(
            workflow="faults", source=source, operation=action.operation,
            arguments=action.arguments, reason="The parcel was damaged.", supersedes=supersedes,
        )  # fmt: skip
        made = insist(
            lambda: (
                propose_from_outside(tenant=self.tenant, request=request, by=AGENT, clock=db_clock).proposal
            )
        )
        if supersedes is None:
            action.proposal_id, action.digest = made.pk, made.digest
        return made

    # -- deciding ---------------------------------------------------------------------------------------------

    def vote(self, action: Action, user: User, kind: str = "approve") -> str:
        """The proposal's status afterwards, or the code of the refusal."""
        if kind == "approve":
            action.approvers.append(user.pk)
        try:
            return insist(lambda: voting.vote(self.tenant.pk, action.proposal_id, user.pk, kind))
        except Refused as refused:
            return refused.code

    def approve(self, action: Action) -> str:
        said = self.vote(action, self.rita)
        return self.vote(action, self.owen) if said == "pending" else said

    def approved(self, what: str = "good", variant: str = "", **more: Any) -> Action:
        action = self.new(what, variant, **more)
        self.propose(action)
        self.approve(action)
        return action

    def withdraw(self, action: Action) -> str:
        def take_back() -> str:
            return withdraw(
                tenant_id=self.tenant.pk, proposal_id=action.proposal_id, reason="changed my mind", by=AGENT,
                clock=db_clock,
            ).status  # fmt: skip

        try:
            return insist(take_back)
        except Refused as refused:
            return refused.code

    def another_reviewer(self, name: str) -> User:
        username = f"{name}-{self.slug}"

        def make() -> User:
            with transaction.atomic():
                return User.objects.filter(username=username).first() or make_user(self.tenant, username)

        return insist(make)

    def link(self, user: User, other: User) -> None:
        """Both accounts are one person's."""
        by = voting.person(self.owen.pk)
        insist(lambda: link_accounts(tenant=self.tenant, user=user, other=other, by=by, clock=db_clock))

    def take_role(self, user: User) -> None:
        """Still there, and no reviewer any more."""
        by = voting.person(self.owen.pk)
        insist(lambda: set_roles(tenant=self.tenant, user=user, roles=[Role.OPERATOR], by=by, clock=db_clock))

    def cancel(self, action: Action) -> str:
        """A wish, or the end at once where nothing was sent."""
        run = insist(lambda: Proposal.objects.values_list("run_id", flat=True).get(pk=action.proposal_id))
        by = voting.person(self.owen.pk)
        try:
            return insist(lambda: stop(self.tenant.pk, run, by))
        except Refused as refused:
            return refused.code

    def deactivate(self, user: User) -> None:
        insist(
            lambda: deactivate_user(user=user, by=voting.person(self.owen.pk), clock=db_clock, reason="left")
        )


def stop(tenant_id: Any, run_id: Any, by: Actor) -> str:
    return cancel_run(tenant_id=tenant_id, run_id=run_id, reason="not wanted", by=by, clock=db_clock)


def insist(do: Callable[[], T]) -> T:
    """Again after a lost connection: what the product's actions do is the same the second time, or refused."""
    for left in reversed(range(PATIENCE)):
        try:
            return do()
        except SourceUnavailable:
            if not left:
                raise
            _never.wait(0.05)  # the provider misbehaved when it was read; the proposer asks again
        except (OperationalError, InterfaceError, InternalError):
            connection.close()
            if not left:
                raise
            _never.wait(0.1)  # it may be there and take no changes
            wait_for_database()
    raise AssertionError


def wait_for_database() -> None:
    """Until it lets us in again, or for as long as one connection's own patience lasts, ten times."""
    for _ in range(100):
        try:
            connection.ensure_connection()
        except (OperationalError, InterfaceError):
            _never.wait(0.1)
        else:
            return
