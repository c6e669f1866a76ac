"""What a stage returns, and the failures it may raise. A stage never changes anything itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from common.fields import DataClass

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """The stage is finished. ``output`` is stored before the next stage starts.

    ``confidence`` (0 to 1) belongs to stages that judge: below the contract's threshold the case goes to a person.
    ``notes`` are codes and references for the trace, never content.
    """

    output: Json = field(default_factory=dict)
    confidence: Decimal | None = None
    notes: tuple[str, ...] = ()
    usage: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finish:
    """The run ends here, well: the later stages are skipped. ``case`` names a row of the exception table."""

    case: str
    output: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EvidencePiece:
    """Something that the proposal rests on, as it was when it was read."""

    kind: str
    title: str
    content: bytes
    captured_at: datetime
    source: str = ""
    ref: str = ""
    fresh_for: timedelta | None = None
    data_class: DataClass = DataClass.BUSINESS
    asserted: bool = False


@dataclass(frozen=True, slots=True)
class Propose:
    """One action that somebody should be asked about. Arguments are raw; the operation normalizes or refuses them."""

    operation: str
    arguments: Json
    reason: str
    evidence: tuple[EvidencePiece, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitForData:
    """The case lacks something that the requester can supply.

    ``schema`` is the JSON Schema (2020-12) of the object that is asked for.
    """

    question: str
    schema: Json
    within: timedelta


@dataclass(frozen=True, slots=True)
class ToPerson:
    """A person must look. ``case`` names a row of the exception table; ``kept`` is what was found, as it was."""

    case: str
    kept: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fail:
    """The case ends badly, as its row of the exception table says."""

    case: str


StageResult = Done | Finish | Propose | WaitForData | ToPerson | Fail


class SourceDown(Exception):
    """A source does not answer. Tried again with backoff, visible as *waiting for provider*."""


class RateLimited(Exception):
    """A source asks us to come back later. Tried again, visible as *waiting for retry*."""

    def __init__(self, retry_after: timedelta = timedelta(seconds=5)) -> None:
        self.retry_after = retry_after
        super().__init__(f"retry after {retry_after}")


class CredentialRefused(Exception):
    """A source refused our credential: revoked or stale. Never retried; a person looks."""


class Malformed(Exception):
    """Input, or what a model suggested, does not fit its schema. Never retried, never silently rewritten.

    ``code`` is stable; ``kept`` is the suggestion as it was, for the person who looks.
    """

    def __init__(self, code: str, kept: Json | None = None) -> None:
        self.code, self.kept = code, dict(kept or {})
        super().__init__(code)


class NotAllowed(Exception):
    """The requester, or this run, may not do or see that. Never retried."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)
