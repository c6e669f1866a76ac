"""One action that is one POST to a local sink: what others were measured with, and nothing more."""

import os
from datetime import timedelta
from typing import Any, ClassVar

from pydantic import BaseModel

from common.fields import Identifier
from common.outgoing import Answer, NotSent, OutgoingRequest, send
from workflows.authoring import (
    Arguments,
    Call,
    Contract,
    Facts,
    Observation,
    Operation,
    Policy,
    Propose,
    Stage,
    StageContext,
    StepKind,
    Verdict,
    Workflow,
    arg,
    register,
)
from workflows.results import StageResult


class PostArguments(Arguments):
    thing: Identifier = arg(label="Thing", data_class="business")


class PostPolicy(Policy[PostArguments]):
    name = "bench-policy"
    version = 1

    def judge(self, arguments: PostArguments, facts: Facts) -> Verdict:
        return Verdict("ask_one", "bench.ask", "A person decides.")


class Post(Operation[PostArguments]):
    name = "bench.post"
    version = 1
    title = "Post"
    provider = "sink"
    arguments = PostArguments
    policy: ClassVar[Policy[Any]] = PostPolicy()

    def target(self, arguments: PostArguments) -> str:
        return f"thing:{arguments.thing}"

    def consequence(self, arguments: PostArguments, facts: Facts) -> str:
        return f"Post thing {arguments.thing}."

    def execute(self, call: Call[PostArguments]) -> Observation:
        headers = {"Idempotency-Key": call.idempotency_key, "Content-Type": "application/json"}
        request = OutgoingRequest("POST", f"{os.environ['BENCH_SINK']}/things", headers, b"{}")
        outcome = send(request, call.deadline)
        if isinstance(outcome, NotSent):
            return Observation(sent=False, detail=outcome.detail)
        if not isinstance(outcome, Answer):
            return Observation(sent=True, detail=outcome.detail)
        return Observation(sent=True, status=outcome.status, reference=call.idempotency_key)


class Thing(BaseModel):
    """What a run of the bulk proposes to post."""

    thing: str


def _propose(context: StageContext) -> StageResult:
    return Propose("bench.post", {"thing": context.input.thing}, "The benchmark wants it.")


@register
class Bench(Workflow):
    name = "bench"
    version = 1
    title = "Benchmark"
    operations = (Post,)
    stages = ()
    accepts_proposals = True
    contract = Contract(
        owner="bench", promise="posts", within=timedelta(hours=1), input=Thing, data_sources=(), decision_points=(),
        side_effects=("one post",), completion="posted", never=(), exceptions=(),
    )  # fmt: skip


@register
class BenchRuns(Bench):
    """The same action, proposed by a run of our own instead of from outside."""

    name = "bench-runs"
    stages = (Stage("post", _propose, StepKind.SIDE_EFFECT),)
    accepts_proposals = False
