"""Refunds of the harness: the example's client and provider, three kinds of provider, and clocks that are over soon.

No If-Match and no pin on the order: both would keep a second refund from being booked, and the harness would no longer
see whether the worker protocol does. The customer's standing is pinned, so that a pin can change.
"""

import os
import signal
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar, NoReturn

from examples.refunds import client
from examples.refunds.arguments import RefundArguments
from examples.refunds.operation import IssueRefund, _observed
from examples.refunds.schemas import OutsideAction
from examples.refunds.site import provider_for
from examples.refunds.source import Customer, Order
from workflows.authoring import (
    Call,
    Contract,
    Facts,
    Finding,
    Malformed,
    Observation,
    OnExpiry,
    Policy,
    Site,
    Stage,
    StageContext,
    StepKind,
    Verdict,
    Workflow,
    register,
)

TWO_PEOPLE_FROM = Decimal(80)
PACE = float(os.environ.get("PLACET_FAULTS_PACE", "1"))
"""Directed scenarios wait for clocks, so theirs run faster."""
DEADLY: list[str] = []
"""Orders that no process survives looking at."""


class SteadyPolicy(Policy[RefundArguments]):
    name = "faults-policy"
    version = 1

    def judge(self, arguments: RefundArguments, facts: Facts) -> Verdict:
        if Decimal(arguments.amount) >= TWO_PEOPLE_FROM:
            return Verdict("ask_two", "faults.two", "Much money.")
        return Verdict("ask_one", "faults.one", "A person decides.")


class MovingPolicy(Policy[RefundArguments]):
    """Published anew while its actions are about to be sent."""

    name = "faults-moving-policy"
    version = 1

    def judge(self, arguments: RefundArguments, facts: Facts) -> Verdict:
        return Verdict("ask_one", "faults.one", "A person decides.")


class Refund(IssueRefund):
    """What all kinds share."""

    call_deadline = timedelta(seconds=1) * PACE
    settle_time = timedelta(seconds=3) * PACE
    decide_within = timedelta(minutes=20)
    execute_within = timedelta(seconds=140)
    key_retention: ClassVar[timedelta | None] = None
    max_tries = 8
    second_person_from = TWO_PEOPLE_FROM
    counter = None
    counter_from: ClassVar[dict[str, str]] = {}
    policy: ClassVar[Policy[Any]] = SteadyPolicy()

    def pins(self, arguments: RefundArguments, facts: Facts) -> Mapping[str, str]:
        if arguments.order in DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        order: Order | None = facts["order"]
        customer: Customer | None = facts["customer"]
        return {f"customer:{order.customer if order else ''}": customer.status if customer else "gone"}

    def check(self, arguments: RefundArguments, facts: Facts) -> None:
        """Whether the customer is blocked is the pin's business here."""

    def warnings(self, arguments: RefundArguments, facts: Facts) -> tuple[tuple[str, str, str], ...]:
        return ()

    def execute(self, call: Call[RefundArguments]) -> Observation:
        arguments = call.arguments
        refund = client.Refund(
            order=arguments.order, amount=arguments.amount, currency=arguments.currency, reason=arguments.reason,
            receipt_to=arguments.receipt_to, message=arguments.message or None,
        )  # fmt: skip
        outcome = client.issue_refund(
            provider_for(call.site), refund, key=call.idempotency_key, deadline=call.deadline, if_match=None
        )
        return _observed(outcome, arguments)


class Dedup(Refund):
    name = "faults.dedup"
    provider = "faults-dedup"
    key_retention = timedelta(seconds=60)


FORGETS_AFTER = timedelta(seconds=3) * PACE


class DedupForgetful(Dedup):
    """Keys are kept for a moment only, and nobody can look anything up: whether it happened is asked by doing it."""

    name = "faults.dedup.forgetful"
    key_retention = FORGETS_AFTER

    def reconcile(self, call: Call[RefundArguments]) -> Finding:
        return Finding("no_answer", detail="this provider has no look-up")


class DedupMoving(Dedup):
    name = "faults.dedup.moving"
    policy = MovingPolicy()


class DedupBrief(Dedup):
    name = "faults.dedup.brief"
    decide_within = execute_within = timedelta(seconds=2)


class Lookup(Refund):
    name = "faults.lookup"
    provider = "faults-lookup"


class LookupMoving(Lookup):
    name = "faults.lookup.moving"
    policy = MovingPolicy()


class LookupBrief(Lookup):
    name = "faults.lookup.brief"
    decide_within = execute_within = timedelta(seconds=2)


class Blind(Refund):
    """No look-up and no memory of keys: what is not known, a person has to find out."""

    name = "faults.blind"
    provider = "faults-blind"

    def earlier_effects(self, site: Site, arguments: RefundArguments) -> tuple[str, ...]:
        return ()

    def reconcile(self, call: Call[RefundArguments]) -> Finding:
        return Finding("no_answer", detail="this provider has no look-up")


class BlindMoving(Blind):
    name = "faults.blind.moving"
    policy = MovingPolicy()


class BlindBrief(Blind):
    name = "faults.blind.brief"
    decide_within = execute_within = timedelta(seconds=2)


def _not_run(ctx: StageContext) -> NoReturn:
    raise Malformed("proposed_from_outside")


@register
class Faults(Workflow):
    name = "faults"
    version = 1
    title = "Refunds under faults"
    operations = (
        Dedup, DedupForgetful, DedupMoving, DedupBrief, Lookup, LookupMoving, LookupBrief, Blind, BlindMoving,
        BlindBrief,
    )  # fmt: skip
    accepts_proposals = True
    stages = (Stage("action", _not_run, StepKind.SIDE_EFFECT),)
    contract = Contract(
        owner="Refund desk",
        promise="Made once, whatever breaks.",
        within=timedelta(hours=1),
        input=OutsideAction,
        data_sources=("the provider",),
        decision_points=("a person's approval",),
        side_effects=("one refund",),
        completion="The provider confirmed it.",
        never=("A refund twice.",),
        exceptions=(),
        on_expiry=OnExpiry.FAIL,
    )


MODES = {"dedup": "dedup", "lookup": "lookup_only", "blind": "blind"}
"""The provider's mode for each kind."""
OPERATIONS = {operation.name: operation for operation in Faults.operations}
