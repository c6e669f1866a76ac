"""A toy operation whose approvals passkeys sign, and a desk whose people have one."""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, ClassVar

from allauth.mfa.models import Authenticator

from access.actions_account import change_factors
from access.models import User
from approvals.actions import DecisionOutcome, decide
from approvals.models import Proposal
from approvals.signing import Answer, question
from common.clock import db_clock
from tests.access.softkey import SoftKey
from tests.workflows.conftest import Desk, person
from tests.workflows.toy import ToyFlow, ToyPay, ToyPolicy
from workflows import registry
from workflows.authoring import Operation, Policy, Propose, Stage, StageContext, StepKind, register
from workflows.models import Command

HOST = "testserver"


class VaultPolicy(ToyPolicy):
    name: ClassVar[str] = "vault-policy"


class Release(ToyPay):
    name: ClassVar[str] = "toy.release"
    title: ClassVar[str] = "Release from the vault"
    policy: ClassVar[Policy[Any]] = VaultPolicy()
    signed_from: ClassVar[Decimal | None] = Decimal(5)


def _propose(context: StageContext) -> Propose:
    arguments = {"order": context.input.order, "amount": context.input.amount, "currency": "EUR"}
    return Propose("toy.release", arguments, "the test wants it")


class VaultFlow(ToyFlow):
    name: ClassVar[str] = "toy-vault"
    stages: ClassVar[tuple[Stage, ...]] = (Stage("pay", _propose, StepKind.SIDE_EFFECT),)
    operations: ClassVar[tuple[type[Operation[Any]], ...]] = (Release,)


class VaultByRule(VaultFlow):
    name: ClassVar[str] = "toy-vault-by-rule"
    stage: ClassVar[Any] = "execute"


def give_key(user: User, key: SoftKey | None = None) -> SoftKey:
    """A new passkey of this person, told to the history as the page does it."""
    key = key or SoftKey()
    made = key.made({"publicKey": {"challenge": "AAAA"}})
    row = {"type": Authenticator.Type.WEBAUTHN, "data": {"name": "a key", "credential": made}}
    change_factors(
        user=user, change=lambda: Authenticator.objects.create(user=user, **row), by=person(user), clock=db_clock
    )  # fmt: skip
    return key


def take_keys(user: User) -> None:
    rows = Authenticator.objects.filter(user=user)
    change_factors(user=user, change=rows.delete, by=person(user), clock=db_clock)


@dataclass
class Vault:
    """The desk of the toy workflows, and the passkeys of its people."""

    desk: Desk
    keys: dict[str, SoftKey] = field(default_factory=dict)

    def proposed(self, workflow: str = "toy-vault", **start: Any) -> Proposal:
        return self.desk.proposed(workflow=workflow, **start)

    def asked(self, proposal: Proposal, user: User | None = None) -> dict[str, Any]:
        """What the page of this person gets before it asks the passkey."""
        proposal = Proposal.objects.get(pk=proposal.pk)
        return question(proposal, by=person(user or self.desk.ada), rp_id=HOST, now=db_clock())

    def answer(self, proposal: Proposal, user: User | None = None, **how: Any) -> Answer:
        user = user or self.desk.ada
        return answered(self.asked(proposal, user), self.keys[user.username], **how)

    def approve(
        self, proposal: Proposal, user: User | None = None, answer: Answer | None = None
    ) -> DecisionOutcome:
        """With a signature of this person's passkey, unless another one is given."""
        user = user or self.desk.ada
        given = answer or self.answer(proposal, user)
        submission = replace(self.desk.submission(proposal, user), signature=given)
        return decide(
            tenant_id=proposal.tenant_id, proposal_id=proposal.pk, submission=submission, by=person(user),
            clock=db_clock,
        )  # fmt: skip

    def approved(self, **start: Any) -> Command:
        proposal = self.proposed(**start)
        self.approve(proposal)
        return Command.objects.get(proposal=proposal)


def answered(asked: dict[str, Any], key: SoftKey, **how: Any) -> Answer:
    return Answer(asked["ticket"], key.signed(asked["options"], **how), HOST)


def open_vault(desk: Desk) -> Vault:
    """Installed, and Ada and Ben each with a passkey."""
    register(VaultFlow)
    register(VaultByRule)
    registry.register_definitions(clock=db_clock)
    return Vault(desk, {user.username: give_key(user) for user in (desk.ada, desk.ben)})
