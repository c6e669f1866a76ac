"""What a workflow author writes: a contract, ordered stages, operations. Deterministic code holds the authority."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Literal
from uuid import UUID

from pydantic import BaseModel

from workflows.enums import OnExpiry, RunKind, StepKind
from workflows.modes import Blocking, Escalate, Review
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
    retention: timedelta | None = None
    """From the end of a run until its content is erased; None: as the installation says (PLACET_RETENTION_DAYS)."""
    stopped_tell: str = "It takes longer than usual: a person is looking at it. You need not do anything."

    def case(self, name: str) -> ExceptionCase:
        """The row of that name. Raises KeyError: a stage named a case that the author did not write down."""
        for row in self.exceptions:
            if row.case == name:
                return row
        raise KeyError(f"no exception case {name!r}")


STALE_TELL = "A newer event of the same record came first."
ONLY_PROPOSED_TELL = "A person agreed. Nothing was sent: this workflow only proposes."
UNDONE_TELL = "What was done was taken back."
UNDONE_IN_PART_TELL = "A part of what was done was taken back."
REST_TELL = "The rest was done."
IN_PART_TELL = "A part of it was done. People are looking at the rest."
STANDS_TELL = "A person looked at it and declined. What was done stands."
OF_THE_PRODUCT = frozenset({
    STALE_TELL, ONLY_PROPOSED_TELL, UNDONE_TELL, UNDONE_IN_PART_TELL, REST_TELL,
    IN_PART_TELL, STANDS_TELL,
})  # fmt: skip
"""What users are told that no contract words."""

GONE = Contract(
    owner="operators", promise="", within=timedelta(0), input=BaseModel, data_sources=(), decision_points=(),
    side_effects=(), completion="", never=(), exceptions=(),
)  # fmt: skip
"""Of a workflow that is no longer installed: its runs still end, and people still see what stopped."""

IN_PART = "partial"
COMPENSATED = "compensated"
COMPENSATED_IN_PART = "compensated_in_part"


def after_effect(contract: Contract, kind: str) -> Contract:
    """What holds for a compensation or a remainder: no row of the exception table, and whatever stops goes to a person.

    Those rows say what the requester of the first run gets, and nobody asks for a compensation but people.
    """
    undo = kind == RunKind.UNDO
    return replace(
        contract, exceptions=(), on_expiry=OnExpiry.MANUAL_QUEUE,
        done_outcome=COMPENSATED if undo else "rest_done", done_tell=UNDONE_TELL if undo else REST_TELL,
        declined_tell=STANDS_TELL,
    )  # fmt: skip


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
    review: ClassVar[Review] = Blocking()
    """How people look at it: before it happens, by exception, or a share afterwards."""
    escalate: ClassVar[tuple[Escalate, ...]] = ()
    """Whom else to ask when nobody has decided and time runs short, in any order."""

    @classmethod
    def get_stage(cls, key: str) -> Stage:
        return next(stage for stage in cls.stages if stage.key == key)
