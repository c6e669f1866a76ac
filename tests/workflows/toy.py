"""A small workflow for tests of the engine and the worker: its operation answers what the test puts into the till.

The real provider process belongs to the refunds example and to the tests marked e2e; here each answer is chosen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from pydantic import BaseModel

from common.fields import Currency, Identifier, Money
from workflows.authoring import (
    Arguments,
    Call,
    Contract,
    Done,
    ExceptionCase,
    Facts,
    Finding,
    Observation,
    Operation,
    OutcomeTable,
    Policy,
    Propose,
    Site,
    Stage,
    StageContext,
    StepKind,
    Verdict,
    Workflow,
    arg,
    register,
)
from workflows.results import StageResult

PAID = Observation(sent=True, status=201, reference="re_1", body={"id": "re_1"})
NOTHING_CAME = Observation(sent=True, status=None, detail="timeout")
NOT_SENT = Observation(sent=False, detail="refused")


@dataclass
class Till:
    """What the operation answers, in order, and what it was asked."""

    answers: list[Observation | Callable[[Call[Any]], Observation]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    earlier: tuple[str, ...] = ()
    calls: list[Call[Any]] = field(default_factory=list)
    lookups: int = 0
    verdict: Verdict = field(default_factory=lambda: Verdict("ask_one", "toy.ask", "It is a toy."))
    stages: dict[str, StageResult | Callable[[StageContext], StageResult]] = field(default_factory=dict)
    stage_calls: list[str] = field(default_factory=list)


till = Till()


def reset() -> Till:
    """A fresh till for this test."""
    global till  # noqa: PLW0603 - the operation below is one object for the process
    till = Till()
    return till


class ToyArguments(Arguments):
    order: Identifier = arg(label="Order", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")


class ToyPolicy(Policy[ToyArguments]):
    name: ClassVar[str] = "toy-policy"
    version: ClassVar[int] = 1

    def judge(self, arguments: ToyArguments, facts: Facts) -> Verdict:
        return till.verdict


class ToyPay(Operation[ToyArguments]):
    name: ClassVar[str] = "toy.pay"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "Pay"
    provider: ClassVar[str] = "till"
    arguments: ClassVar[type[Arguments]] = ToyArguments
    policy: ClassVar[Policy[Any]] = ToyPolicy()
    outcomes: ClassVar[OutcomeTable] = OutcomeTable(
        refused=frozenset({404, 422}), rejects_unauthorized=True, key_reused="key_reused"
    )
    settle_time: ClassVar[timedelta] = timedelta(seconds=30)

    def look(self, site: Site, arguments: ToyArguments) -> Facts:
        return {"tag": till.tags.get(arguments.order, "v1")}

    def target(self, arguments: ToyArguments) -> str:
        return f"order:{arguments.order}"

    def consequence(self, arguments: ToyArguments, facts: Facts) -> str:
        return f"Pay {arguments.currency} {arguments.amount} for order {arguments.order}."

    def pins(self, arguments: ToyArguments, facts: Facts) -> dict[str, str]:
        return {self.target(arguments): facts["tag"]}

    def earlier_effects(self, site: Site, arguments: ToyArguments) -> tuple[str, ...]:
        return till.earlier

    def execute(self, call: Call[ToyArguments]) -> Observation:
        till.calls.append(call)
        answer = till.answers.pop(0) if till.answers else PAID
        return answer if isinstance(answer, Observation) else answer(call)

    def reconcile(self, call: Call[ToyArguments]) -> Finding:
        till.lookups += 1
        return till.findings.pop(0) if till.findings else Finding("no_answer")


class ToyInput(BaseModel):
    order: str = "1042"
    amount: str = "10.00"


def _stage(key: str) -> Callable[[StageContext], StageResult]:
    def run(context: StageContext) -> StageResult:
        till.stage_calls.append(key)
        planned = till.stages.get(key, _default(key, context))
        return planned(context) if callable(planned) else planned

    return run


def _default(key: str, context: StageContext) -> StageResult:
    if key == "pay":
        arguments = {"order": context.input.order, "amount": context.input.amount, "currency": "EUR"}
        return Propose("toy.pay", arguments, "the test wants it")
    return Done({"seen": key})


class ToyFlow(Workflow):
    name: ClassVar[str] = "toy-pay"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "Toy payments"
    contract: ClassVar[Contract] = Contract(
        owner="toy-desk", promise="pays", within=timedelta(hours=1), input=ToyInput, data_sources=("till",),
        decision_points=("amount",), side_effects=("toy.pay",), completion="paid", never=("pay twice",),
        exceptions=(
            ExceptionCase("unknown_order", "failed", "no_action", "There is no such order.", "toy-desk"),
            ExceptionCase("nothing_to_do", "completed", "no_action", "There is nothing to do.", "toy-desk"),
        ),
        done_outcome="paid", done_tell="It was paid.",
    )  # fmt: skip
    stages: ClassVar[tuple[Stage, ...]] = (
        Stage("read", _stage("read")),
        Stage("judge", _stage("judge"), StepKind.MODEL),
        Stage("pay", _stage("pay"), StepKind.SIDE_EFFECT),
        Stage("tell", _stage("tell")),
    )
    operations: ClassVar[tuple[type[Operation[Any]], ...]] = (ToyPay,)


class ToyOutside(Workflow):
    name: ClassVar[str] = "toy-outside"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "Toy payments that an agent proposes"
    contract: ClassVar[Contract] = ToyFlow.contract
    stages: ClassVar[tuple[Stage, ...]] = ()
    operations: ClassVar[tuple[type[Operation[Any]], ...]] = (ToyPay,)
    accepts_proposals: ClassVar[bool] = True


class ToyExecute(ToyFlow):
    name: ClassVar[str] = "toy-execute"
    stage: ClassVar[Any] = "execute"


def install() -> None:
    for flow in (ToyFlow, ToyOutside, ToyExecute):
        register(flow)
