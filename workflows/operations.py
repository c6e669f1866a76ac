"""What an operation is: schema, checks, consequence, policy, execution and look-up, in one class."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar
from uuid import UUID

from common.deadline import Deadline
from common.fields import Arguments, ArgumentType, DataClass, ListType, MoneyType, OptionalType, StructureType
from workflows.classify import Observation, OutcomeTable, storable
from workflows.listing import amount_of
from workflows.secret_arguments import NO_SECRETS, Secrets

GONE: Final = "gone"
"""The version tag of a record that is not there."""
REFERENCE: Final = "@reference"
"""In `Operation.counter_from`: the provider's reference of the effect."""

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
    """One field of one record, before and after, and the class of both values."""

    record: str
    field: str
    before: str
    after: str
    data_class: str = DataClass.BUSINESS


class Policy(Generic[A]):
    """Deterministic and versioned. A changed rule under an old number is refused at start-up."""

    name: ClassVar[str]
    version: ClassVar[int]
    remember_rejections: ClassVar[timedelta] = timedelta(0)
    """For how long a rejection answers whoever proposes the same again, where the reviewer chooses nothing else."""

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
    secrets: Secrets = field(default=NO_SECRETS, repr=False)

    def secret(self, argument: Mapping[str, str]) -> str:
        """The value of a `SecretRef` argument, to be put into the request and nowhere else.

        Raises CredentialRefused where it is gone or another than the approved one; before a first send never.
        """
        return self.secrets.value(argument)


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


@dataclass(frozen=True, slots=True)
class Happened:
    """What came of an action, for whoever takes it back or does the rest of it."""

    reference: str
    """The provider's own."""
    in_part: bool = False
    result: Mapping[str, Any] = field(default_factory=dict)
    """What was kept of the provider's answer; empty where a person, or a late answer, said that it happened."""


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
    editable: ClassVar[tuple[str, ...]] = ()
    """The bound arguments that a reviewer may change, in a new version that is judged anew and that others approve."""
    undo: ClassVar[str] = "It cannot be taken back."
    counter: "ClassVar[type[Operation[Any]] | None]" = None
    """The operation that takes an effect of this one back, proposed and approved as an action of its own."""
    counter_from: ClassVar[Mapping[str, str]] = {}
    """Argument of the counter-action → argument of this one, or `REFERENCE`. Checked when a workflow is registered."""
    second_person_from: ClassVar[Decimal | None] = None
    """From this amount on it takes two people to say what happened where nobody else knows; None: one is enough."""
    signed_from: ClassVar[Decimal | None] = None
    """From this amount on each approval is signed by the approver's own passkey; 0: always; None: by risk alone."""
    signed_from_risk: ClassVar[int | None] = None
    """The same from this risk of the verdict on; None: as the installation says (PLACET_SIGNED_RISK)."""

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

    def amount(self, arguments: A) -> tuple[Decimal, str] | None:
        """What is moved and in which currency, by which people sort their queue; None where it is not money.

        Unless it says otherwise: the one amount of money among the arguments that lists may show.
        """
        return amount_of(arguments)

    def affected(self, arguments: A, facts: Facts) -> tuple[Affected, ...]:
        return ()

    def pins(self, arguments: A, facts: Facts) -> Mapping[str, str]:
        """Record → version tag: what was true when the person looked must still be true when it is sent.

        A record that is not there is pinned as `GONE`: then nobody is asked, and after the approval nothing is sent.
        """
        return {}

    def warnings(self, arguments: A, facts: Facts) -> tuple[tuple[str, str, str], ...]:
        """(code, field, sentence) of things the reviewer must say that they saw, beside those of the text itself."""
        return ()

    def account(self, site: Site) -> str:
        """Where it is done, as people know it: address and account at the provider. It stands in packets: no secret,
        and nothing is asked outside for it.
        """
        return ""

    def earlier_effects(self, site: Site, arguments: A) -> tuple[str, ...]:
        """References of effects with the same business key that the provider knows of; asked before the first call."""
        return ()

    def needs_second_person(self, arguments: A) -> bool:
        """Whether two people must say the same about an unknown outcome: when any amount of money reaches the limit.

        A limit that finds no amount to be compared with asks for two as well.
        """
        return _reaches(self.second_person_from, arguments)

    def needs_signature(self, arguments: A) -> bool:
        """Whether each approval must be signed by a passkey: when any amount of money reaches the limit.

        A pure function of what is bound: each worker asks it again before it sends, so that no row can say otherwise.
        """
        return _reaches(self.signed_from, arguments)

    def counter_arguments(self, arguments: A, effect: Happened) -> Mapping[str, Any]:
        """The arguments of `counter`, as JSON: by `counter_from`, unless the operation makes them in another way."""
        values = arguments.model_dump(mode="json", by_alias=True)
        return {
            name: effect.reference if source == REFERENCE else values[source]
            for name, source in self.counter_from.items()
        }

    def remainder(self, arguments: A, effect: Happened, facts: Facts) -> Mapping[str, Any] | None:
        """Of what happened in part: the arguments of the rest, as JSON, by the facts of today. None: it cannot say."""
        return None

    def execute(self, call: Call[A]) -> Observation:
        """Make the one request. Transport outcomes go through unchanged; no retries, no redirects."""
        raise TypeError(f"{type(self).__name__} does not say how it is executed")

    def reconcile(self, call: Call[A]) -> Finding:
        """Ask the provider whether it happened. ``no_answer`` where it has no look-up."""
        return Finding("no_answer", detail="this provider has no look-up")


def _reaches(limit: Decimal | None, arguments: Arguments) -> bool:
    """A limit that finds no amount to be compared with is reached."""
    found = [] if limit is None else list(_amounts(arguments))
    return limit is not None and (not found or max(found) >= limit)


def _amounts(arguments: Arguments) -> Iterator[Decimal]:
    """Every amount of money among the arguments, those inside lists and structures too; one below zero by its size."""
    for spec in type(arguments).specs:
        yield from _amounts_of(spec.kind, getattr(arguments, spec.attribute))


def _amounts_of(kind: ArgumentType, value: Any) -> Iterator[Decimal]:
    match kind:
        case MoneyType():
            yield abs(Decimal(value))
        case OptionalType(inner=inner) if value is not None:
            yield from _amounts_of(inner, value)
        case ListType(item=item):
            for one in value:
                yield from _amounts_of(item, one)
        case StructureType():
            yield from _amounts(value)
        case _:
            return
