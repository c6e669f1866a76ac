"""What a workflow author writes: a contract, ordered stages, operations. Deterministic code holds the authority."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Literal
from uuid import UUID

from pydantic import BaseModel

from workflows.enums import OnExpiry, StepKind
from workflows.operations import Operation, Site
from workflows.results import StageResult


@dataclass(frozen=True, slots=True)
class ExceptionCase:
    """One row of the exception table: what a foreseen case leads to, and what the user is told.

    ``state`` is the run's end (or *manual_repair*); ``outcome`` is in the user's terms, such as *declined*.
    """

    case: str
    state: Literal["completed", "failed", "cancelled", "manual_repair"]
    outcome: str
    tell: str
    owner: str
    clean_up: str = "nothing to clean up"
    may_submit_new: bool = False


@dataclass(frozen=True, slots=True)
class Contract:
    """What the workflow promises, and what must never happen. Shown to people; checked where code can check it."""

    owner: str
    promise: str
    within: timedelta
    input: type[BaseModel]
    data_sources: tuple[str, ...]
    decision_points: tuple[str, ...]
    side_effects: tuple[str, ...]
    completion: str
    never: tuple[str, ...]
    exceptions: tuple[ExceptionCase, ...]
    on_expiry: OnExpiry = OnExpiry.MANUAL_QUEUE
    confidence: Decimal = Decimal("0.7")
    done_outcome: str = "done"
    done_tell: str = "It is done."
    declined_tell: str = "A person looked at it and declined."
    stopped_tell: str = "It takes longer than usual: a person is looking at it. You need not do anything."

    def case(self, name: str) -> ExceptionCase:
        """The row of that name. Raises KeyError: a stage named a case that the author did not write down."""
        for row in self.exceptions:
            if row.case == name:
                return row
        raise KeyError(f"no exception case {name!r}")


@dataclass(frozen=True, slots=True)
class Retry:
    """How transient failures of a read-only stage are tried again: ``first`` doubles up to ``cap``, with jitter."""

    tries: int = 6
    first: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(minutes=2)
    total: timedelta = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class StageContext:
    """All that a stage may know. ``results`` are the stored outputs of the earlier stages, by key."""

    site: Site
    run_id: UUID
    requested_by: str
    on_behalf_of: str
    input: Any
    results: Mapping[str, Mapping[str, Any]]
    data: Mapping[str, Any]
    now: datetime
    attempt: int


StageFunction = Callable[[StageContext], StageResult]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the run. ``data`` is where answers to *wait for data* arrive; ``lease`` must outlast one try."""

    key: str
    run: StageFunction
    kind: StepKind = StepKind.READ_ONLY
    retry: Retry = field(default_factory=Retry)
    lease: timedelta = timedelta(seconds=30)


class Workflow:
    """Subclass it in an app's ``flows.py``; it is found by itself. ``version`` grows when stages or contract change."""

    name: ClassVar[str]
    version: ClassVar[int]
    title: ClassVar[str]
    contract: ClassVar[Contract]
    stages: ClassVar[tuple[Stage, ...]]
    operations: ClassVar[tuple[type[Operation[Any]], ...]]
    stage: ClassVar[Literal["observe", "suggest", "prepare", "approve", "execute"]] = "approve"
    accepts_proposals: ClassVar[bool] = False

    @classmethod
    def get_stage(cls, key: str) -> Stage:
        return next(stage for stage in cls.stages if stage.key == key)
