"""What an observation of a provider means: the one outcome table, which an operation may only narrow.

*Everything after the first byte that is not a complete, understood answer is unknown*.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, Final


class Meaning(Enum):
    """What happened, as far as anybody can say."""

    NOT_SENT = "not_sent"
    NOT_EXECUTED = "not_executed"
    NOT_AUTHORIZED = "not_authorized"
    REFUSED = "refused"
    CONFIRMED = "confirmed"
    KEY_REUSED = "key_reused"
    UNKNOWN = "unknown"


def storable(words: str) -> str:
    """A provider's words as the database can keep them: it knows no NUL, and UTF-8 no lone surrogate."""
    return words.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


_CODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,59}", re.ASCII)
UNRECOGNIZED = "unrecognized_code"


def code_like(code: str) -> str:
    """A provider's error code if it is one. Sentences stay outside: codes go where no personal data may go."""
    return code if not code or _CODE.fullmatch(code) else UNRECOGNIZED


@dataclass(frozen=True, slots=True)
class Observation:
    """What came back from one call, without judgement.

    ``sent`` is False only when no byte of the request was written. ``status`` is None when no complete answer came.
    ``reference`` is the provider's id of the effect; ``code`` its error code; ``body`` what is kept as the result.
    """

    sent: bool
    status: int | None = None
    reference: str = ""
    code: str = ""
    detail: str = ""
    retry_after: timedelta | None = None
    body: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("reference", "detail"):
            object.__setattr__(self, name, storable(getattr(self, name)))
        object.__setattr__(self, "code", code_like(self.code))


CAME_TOO_LATE = "came_too_late"
"""The code of what was not sent because this worker had slept past its own deadline."""
MAY_BE_REFUSED = frozenset({400, 404, 409, 412, 422})


@dataclass(frozen=True, slots=True)
class OutcomeTable:
    """What a provider declares about its definite answers.

    ``refused``: statuses that it validates before executing (of 400, 404, 409, 412, 422). ``rejects_unauthorized``:
    401 and 403 come before execution. ``key_reused``: its error code for *same key, other parameters*.
    ``doubtful``: definite statuses that this operation takes for unknown all the same.
    """

    refused: frozenset[int] = frozenset()
    rejects_unauthorized: bool = False
    throttles_before_executing: bool = True
    key_reused: str = ""
    doubtful: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        wider = self.refused - MAY_BE_REFUSED
        if wider:
            raise ValueError(f"an operation may not declare {sorted(wider)} as definitely refused")


def classify(seen: Observation, table: OutcomeTable) -> Meaning:
    """The row of the table that ``seen`` falls under."""
    if not seen.sent:
        return Meaning.NOT_SENT
    if seen.status is None or seen.status in table.doubtful:
        return Meaning.UNKNOWN
    if table.key_reused and seen.code == table.key_reused:
        return Meaning.KEY_REUSED
    if 200 <= seen.status < 300:
        return Meaning.CONFIRMED if seen.reference else Meaning.UNKNOWN
    if seen.status == 429 and table.throttles_before_executing:
        return Meaning.NOT_EXECUTED
    if seen.status in (401, 403) and table.rejects_unauthorized:
        return Meaning.NOT_AUTHORIZED
    return Meaning.REFUSED if seen.status in table.refused else Meaning.UNKNOWN
