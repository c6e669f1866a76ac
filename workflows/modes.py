"""How a workflow is reviewed, as its author declares it: blocking, by exception, by sample; and whom it escalates to.

A mode only ever asks more people than the policy does, never fewer: what a policy wants asked is asked in each of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Literal

from common import spans

ONE = Decimal(1)
PLACES = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Case:
    """What a declared test of *policy-sensitive* is given."""

    operation: str
    arguments: Any
    target: str
    risk: int
    confidence: Decimal | None


@dataclass(frozen=True, slots=True)
class Blocking:
    """Whoever the policy asks decides before anything happens. What it lets through is let through, on *execute*."""

    mode: ClassVar[str] = "blocking"


@dataclass(frozen=True, slots=True)
class ByException:
    """What the policy lets through, a person is asked about where confidence is low, impact high, or it is sensitive.

    ``confident_from``: the run's confidence must reach it; none at all is low. ``high_impact_from``: the verdict's risk
    from which impact is high. ``sensitive`` returns the reason in words, or an empty text. On stage *execute* only.
    """

    confident_from: Decimal = Decimal("0.90")
    high_impact_from: int = 2
    sensitive: Callable[[Case], str] | None = None
    group: str = ""
    """Who is asked then; empty: as the verdict says, else any reviewer."""
    mode: ClassVar[str] = "exception"


@dataclass(frozen=True, slots=True)
class BySample:
    """A share of what a rule approved, and that was done, is looked at by a person afterwards.

    ``wrong_limit``: from which share of wrong ones on the owner is told. On stage *execute* only.
    """

    share: Decimal
    wrong_limit: Decimal = Decimal("0.05")
    mode: ClassVar[str] = "sampling"

    def __post_init__(self) -> None:
        for value in (self.share, self.wrong_limit):
            if not 0 < value <= ONE or value != value.quantize(PLACES):
                raise ValueError("a share is more than 0 and at most 1, in steps of 0.0001")


Review = Blocking | ByException | BySample


@dataclass(frozen=True, slots=True)
class Escalate:
    """When time runs short, ask others too: one of ``left`` and ``left_share``, and one of ``group`` and ``role``.

    ``left_share`` of the time to decide, such as ``Decimal("0.25")``. The role *reviewer* is every reviewer.
    """

    left: timedelta | None = None
    left_share: Decimal | None = None
    group: str = ""
    role: Literal["", "reviewer", "owner"] = ""

    def __post_init__(self) -> None:
        if (self.left is None) == (self.left_share is None) or bool(self.group) == bool(self.role):
            raise ValueError(
                "an escalation says either how long or which share is left, and one group or role"
            )
        if self.left_share is not None and not 0 < self.left_share < 1:
            raise ValueError("the share of time that is left lies between 0 and 1")

    def due_at(self, made: datetime, decide_by: datetime) -> datetime:
        """When it is; at once where the time to decide was shorter than that from the start."""
        left = self.left if self.left is not None else (decide_by - made) * float(self.left_share or 0)
        return max(made, decide_by - left)

    @property
    def because(self) -> str:
        if self.left is not None:
            return f"when {spans.span(self.left.total_seconds())} are left"
        return f"when {int((self.left_share or 0) * 100)} % of the time is left"


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a rule decides by itself, why, and what stands about it beside the proposal."""

    automatic: bool
    why: str = ""
    group: str = ""
    snapshot: Mapping[str, Any] = field(default_factory=dict)
    """What the proposal keeps of it beside the policy's verdict, for people; empty where the policy alone decided."""


def rule_on(review: Review, case: Case, *, auto: bool, because: str) -> Ruling:
    """``auto``: whether the policy lets it through, on stage *execute*. ``because``: why, in the policy's words."""
    if auto and isinstance(review, BySample):
        share = {"mode": review.mode, "share": str(review.share)}
        return Ruling(automatic=True, why=because, snapshot=share)
    if not auto or not isinstance(review, ByException):
        return Ruling(auto, because if auto else "")
    tests = _exception_tests(review, case)
    snapshot = {"mode": review.mode, "tests": list(tests)}
    failed = [str(test["says"]) for test in tests if not test["ok"]]
    if failed:
        return Ruling(automatic=False, group=review.group,
                      snapshot=snapshot | {"because": f"It is an exception: {'; '.join(failed)}."})  # fmt: skip
    why = f"{because} No exception: {'; '.join(str(test['says']) for test in tests)}."
    return Ruling(automatic=True, why=why, snapshot=snapshot)


def _exception_tests(review: ByException, case: Case) -> tuple[Mapping[str, Any], ...]:
    sure = case.confidence is not None and case.confidence >= review.confident_from
    said = (
        "no confidence was said" if case.confidence is None else f"confidence {case.confidence.normalize():f}"
    )
    low_impact = case.risk < review.high_impact_from
    sensitive = review.sensitive(case) if review.sensitive is not None else ""
    return (
        {"label": f"Confidence is at least {review.confident_from}", "ok": sure, "says": said},
        {"label": f"Impact is below {review.high_impact_from}", "ok": low_impact, "says": f"impact {case.risk}"},
        {"label": "Nothing about it is sensitive", "ok": not sensitive, "says": sensitive or "not sensitive"},
    )  # fmt: skip


def check_declared(name: str, stage: str, review: Review) -> None:
    """Raises ValueError where a mode lets rules decide on a stage where none may."""
    if not isinstance(review, Blocking) and stage != "execute":
        raise ValueError(
            f"workflow {name}: review by {review.mode} is for stage execute; on {stage} a person is always asked"
        )
