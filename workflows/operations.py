"""What an operation is: schema, checks, consequence, policy, execution and look-up, in one class."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar, Generic, Literal, TypeVar
from uuid import UUID

from common.deadline import Deadline
from common.fields import Arguments
from workflows.classify import Observation, OutcomeTable, storable

A = TypeVar("A", bound=Arguments)
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """Whose outside systems we speak to, and for whom: connectors choose address and credential by it."""

    tenant_id: UUID
    tenant: str
    on_behalf_of: str = ""


@dataclass(frozen=True, slots=True)
class Test:
    """One line of the policy's verdict as people read it: *At most EUR 250.00 … no*."""

    label: str
    ok: bool
    says: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the policy says: who is asked, by which named rule, and why in one sentence."""

    verdict: Literal["auto", "ask_one", "ask_two", "refuse"]
    rule: str
    because: str
    tests: tuple[Test, ...] = ()
    group: str = ""
    risk: int = 1

    @property
    def needed(self) -> int:
        return {"auto": 0, "ask_one": 1, "ask_two": 2, "refuse": 0}[self.verdict]


@dataclass(frozen=True, slots=True)
class Affected:
    """One field of one record, before and after."""

    record: str
    field: str
    before: str
    after: str


class Policy(Generic[A]):
    """Deterministic and versioned. A changed rule under an old number is refused at start-up."""

    name: ClassVar[str]
    version: ClassVar[int]

    def judge(self, arguments: A, facts: Facts) -> Verdict:
        raise TypeError(f"{type(self).__name__} does not say how it judges")


class OperationRefused(Exception):
    """The operation's own checks refuse these arguments: nobody is asked. ``code`` names an exception case."""

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(f"{code}: {message}")


@dataclass(frozen=True, slots=True)
class Call(Generic[A]):
    """One request to a provider, built from the contract's stored bytes alone."""

    site: Site
    arguments: A
    idempotency_key: str
    pins: Mapping[str, str]
    deadline: Deadline


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look-up found: ``happened`` with the provider's reference, ``not_found``, or ``no_answer``."""

    finding: Literal["happened", "not_found", "no_answer"]
    reference: str = ""
    detail: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("reference", "detail"):
            object.__setattr__(self, name, storable(getattr(self, name)))


class Operation(Generic[A]):
    """One kind of side effect. Subclass it in ``flows.py`` (or a module that it imports) and list it in a workflow.

    ``look`` is the only method that reads from outside while a proposal is prepared; all others are pure functions of
    arguments and facts. ``execute`` and ``reconcile`` run outside any transaction, before ``call.deadline``.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    title: ClassVar[str]
    provider: ClassVar[str]
    arguments: ClassVar[type[Arguments]]
    policy: ClassVar[Policy[Any]]
    outcomes: ClassVar[OutcomeTable] = OutcomeTable()
    decide_within: ClassVar[timedelta] = timedelta(hours=4)
    execute_within: ClassVar[timedelta] = timedelta(minutes=10)
    call_deadline: ClassVar[timedelta] = timedelta(seconds=8)
    settle_time: ClassVar[timedelta] = timedelta(seconds=30)
    key_retention: ClassVar[timedelta | None] = None
    """How long the provider remembers an idempotency key; None: it knows none, and nothing is ever sent again."""
    max_tries: ClassVar[int] = 5
    max_total: ClassVar[timedelta] = timedelta(minutes=30)
    most_in_flight: ClassVar[int | None] = None
    """How many calls to the provider may be under way at once; None: as many as there are workers."""
    undo: ClassVar[str] = "It cannot be taken back."
    second_person_from: ClassVar[Decimal | None] = None

    def look(self, site: Site, arguments: A) -> Facts:
        """The present state of what is touched. May raise SourceDown, RateLimited, CredentialRefused."""
        return {}

    def check(self, arguments: A, facts: Facts) -> None:
        """Semantic checks and authorization. Raises OperationRefused."""

    def target(self, arguments: A) -> str:
        """The record that is touched, as ``kind:id``; one action is in flight per target."""
        raise TypeError(f"{type(self).__name__} does not name its target")

    def business_key(self, arguments: A) -> str:
        """What must not happen twice, whoever asks: *refund of order 42*."""
        return f"{self.name}:{self.target(arguments)}"

    def consequence(self, arguments: A, facts: Facts) -> str:
        """One plain sentence, made by code from the arguments, never by a model."""
        raise TypeError(f"{type(self).__name__} does not state its consequence")

    def summary(self, arguments: A, facts: Facts) -> str:
        """The short form, for lists and the decision bar."""
        return self.consequence(arguments, facts)[:200]

    def affected(self, arguments: A, facts: Facts) -> tuple[Affected, ...]:
        return ()

    def pins(self, arguments: A, facts: Facts) -> Mapping[str, str]:
        """Record → version tag: what was true when the person looked must still be true when it is sent."""
        return {}

    def warnings(self, arguments: A, facts: Facts) -> tuple[tuple[str, str, str], ...]:
        """(code, field, sentence) of things the reviewer must say that they saw, beside those of the text itself."""
        return ()

    def earlier_effects(self, site: Site, arguments: A) -> tuple[str, ...]:
        """References of effects with the same business key that the provider knows of; asked before the first call."""
        return ()

    def execute(self, call: Call[A]) -> Observation:
        """Make the one request. Transport outcomes go through unchanged; no retries, no redirects."""
        raise TypeError(f"{type(self).__name__} does not say how it is executed")

    def reconcile(self, call: Call[A]) -> Finding:
        """Ask the provider whether it happened. ``no_answer`` where it has no look-up."""
        return Finding("no_answer", detail="this provider has no look-up")
