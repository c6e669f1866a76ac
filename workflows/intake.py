"""Taking in a file of cases: each line becomes one run, however often the file is given."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TextIO
from uuid import UUID

from audit.actors import Actor
from common.clock import Clock
from common.errors import Refused
from workflows.actions.runs import Source, start_run
from workflows.intake_files import Line

ACCEPTED, DUPLICATE, REFUSED = "accepted", "duplicate", "refused"


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one line. ``code`` is a stable reason and ``detail`` says more; no value of the line is in it."""

    line: int
    event_id: str
    result: str
    run_id: UUID | None = None
    code: str = ""
    detail: Any = None

    def document(self) -> dict[str, Any]:
        values = {
            "line": self.line, "event_id": self.event_id, "result": self.result,
            "run_id": str(self.run_id) if self.run_id else None, "code": self.code, "detail": self.detail,
        }  # fmt: skip
        return {key: value for key, value in values.items() if value not in (None, "")}


def take_in(
    lines: Iterable[Line], *, tenant_id: UUID, workflow: str, system: str, name: str, by: Actor, clock: Clock
) -> Iterator[Taken]:
    """Start a run for each line, one transaction each, and say what became of it.

    A line without an event id is known by the file's ``name`` and its number, so the same file given again, after an
    interruption too, finds its runs and makes none twice. What a line does wrong stops that line only.
    """
    for line in lines:
        event_id = line.event_id or f"{name}:{line.number}"
        if line.problem:
            yield Taken(line.number, event_id, REFUSED, code=line.problem, detail=line.detail)
            continue
        source = Source(system, event_id, line.record, line.sequence)
        try:
            started = start_run(
                tenant_id=tenant_id, workflow=workflow, source=source, input=line.input, by=by, clock=clock
            )
        except Refused as refusal:
            yield Taken(
                line.number, event_id, REFUSED, code=refusal.code, detail=refusal.details or refusal.message
            )
            continue
        yield Taken(line.number, event_id, ACCEPTED if started.created else DUPLICATE, started.run.pk)


@dataclass
class Report:
    """Counts, and where a file is given, every line as it comes: nothing grows with the length of the intake."""

    out: TextIO | None = None
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    _lines: int = 0

    def __enter__(self) -> Self:
        if self.out:
            self.out.write('{"lines": [')
        return self

    def add(self, taken: Taken) -> None:
        self.counts[taken.result] += 1
        if taken.code:
            self.reasons[taken.code] += 1
        if self.out:
            self.out.write((",\n" if self._lines else "\n") + json.dumps(taken.document()))
        self._lines += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.out:
            ended = self.document() | {"complete": kind is None}
            self.out.write("\n],\n" + json.dumps(ended, indent=1)[1:] + "\n")

    def document(self) -> dict[str, Any]:
        counts = {name: self.counts[name] for name in (ACCEPTED, DUPLICATE, REFUSED)}
        return counts | {"total": self._lines, "reasons": dict(sorted(self.reasons.items()))}
