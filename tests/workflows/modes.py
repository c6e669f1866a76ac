"""The toy workflow in each mode of review, and one that escalates."""

from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar

from tests.workflows.toy import ToyFlow
from workflows.authoring import Blocking, ByException, BySample, Case, Escalate, register

SENSITIVE_ORDER = "vip"


def touchy(case: Case) -> str:
    return "the order is a VIP's" if case.arguments.order == SENSITIVE_ORDER else ""


class ToyException(ToyFlow):
    name: ClassVar[str] = "toy-exception"
    stage: ClassVar[Any] = "execute"
    review: ClassVar[Any] = ByException(
        confident_from=Decimal("0.90"), high_impact_from=2, sensitive=touchy, group="Exceptions"
    )


class ToySampled(ToyFlow):
    name: ClassVar[str] = "toy-sampled"
    stage: ClassVar[Any] = "execute"
    review: ClassVar[Any] = BySample(share=Decimal(1), wrong_limit=Decimal("0.5"))


class ToyHurried(ToyFlow):
    name: ClassVar[str] = "toy-hurried"
    review: ClassVar[Any] = Blocking()
    escalate: ClassVar[tuple[Escalate, ...]] = (
        Escalate(left=timedelta(minutes=10), role="owner"),
        Escalate(left_share=Decimal("0.25"), group="Second line"),
    )


def install() -> None:
    for flow in (ToyException, ToySampled, ToyHurried):
        register(flow)
