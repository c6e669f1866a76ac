"""Two runs beside each other: where they differ, step by step, and the first difference that means something.

Pure of any judgement about which of them is right, and of what they are to each other: a run and its replay, or two
cases of which only one went wrong. Nothing is written and nobody outside is asked.

Values leave by their class: arguments as `common.disclosure` says, what has no declared class (inputs, supplied data,
results) never, but as a fingerprint, by which equal values are known from different ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import UUID

from approvals.viewdoc import ViewField
from common.disclosure import Recipient, disclosed, fingerprint
from common.strictjson import JsonValue, canonicalize
from repair.comparing_members import members
from repair.comparing_sides import UNREAD, Act, Content, Side, SideStep, Unread, side_of
from repair.packet.action import shown_value
from repair.packet.texts import said, shortened
from workflows.models import Run

NOTHING: Final = "–"
GONE: Final = "erased, or cannot be read any more"


class Weight(Enum):
    """How much a difference says."""

    SUBSTANCE = "substance"
    """What went in, was found, was to be done, was decided, or happened."""
    VERSION = "version"
    """Which code or policy it ran under."""
    CIRCUMSTANCE = "circumstance"
    """How far it has come, what it may do, what can no longer be read."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same on both sides. ``step`` is empty for the run as a whole."""

    step: str
    code: str
    """Stable: input, data, result, ending, operation, target, argument, pin, evidence, consequence, verdict, …"""
    name: str
    """Which argument, record, member or piece; empty where there is only one."""
    left: str
    right: str
    weight: Weight = Weight.SUBSTANCE


@dataclass(frozen=True, slots=True)
class Comparison:
    """All differences in the order in which they came about: the run, then each step."""

    left: UUID
    right: UUID
    steps: tuple[str, ...]
    """The keys of the steps of either side, in order."""
    differences: tuple[Difference, ...]

    @property
    def first(self) -> Difference | None:
        """The first that means something: of substance; where there is none, of a version."""
        for weight in (Weight.SUBSTANCE, Weight.VERSION):
            found = next((it for it in self.differences if it.weight is weight), None)
            if found is not None:
                return found
        return None

    @property
    def same(self) -> bool:
        """Whether nothing of substance differs, as far as both can still be read."""
        return not any(it.weight is Weight.SUBSTANCE for it in self.differences)

    def of_step(self, key: str) -> tuple[Difference, ...]:
        return tuple(it for it in self.differences if it.step == key)


def compare_runs(left: Run, right: Run, *, reader: Recipient) -> Comparison:
    """Compare two runs of one tenant for this reader. Raises ValueError for runs of two tenants, or of another one."""
    if not left.tenant_id == right.tenant_id == reader.tenant_id:
        raise ValueError("runs are compared within one tenant")
    return compare_sides(side_of(left), side_of(right), reader=reader)


def compare_sides(left: Side, right: Side, *, reader: Recipient) -> Comparison:
    """The same for what was read before."""
    keys = tuple(dict.fromkeys([*left.steps, *right.steps]))
    found = list(_of_run(left, right, reader))
    for key in keys:
        found += _of_step(key, left.steps.get(key), right.steps.get(key), reader)
    found += _of_outcome(left.run, right.run)
    return Comparison(left.run.pk, right.run.pk, keys, tuple(found))


# -- the run ------------------------------------------------------------------------------------------------------


def _of_run(left: Side, right: Side, to: Recipient) -> Iterator[Difference]:
    ours, theirs = left.run, right.run
    yield from _plain("", "workflow", ours.workflow, theirs.workflow)
    yield from _plain("", "workflow_version", ours.workflow_version, theirs.workflow_version, Weight.VERSION)
    yield from _plain("", "stage", ours.stage, theirs.stage, Weight.VERSION)
    yield from _content("", "input", left.input, right.input, to)


def _of_outcome(left: Run, right: Run) -> Iterator[Difference]:
    """What came of it; of a run that has not ended, or that was not to act, that says nothing about the other."""
    ours, theirs = left.corrected_outcome or left.outcome, right.corrected_outcome or right.outcome
    alike = left.kind == right.kind and left.finished_at is not None and right.finished_at is not None
    yield from _plain("", "outcome", ours, theirs, Weight.SUBSTANCE if alike else Weight.CIRCUMSTANCE)


# -- one step -----------------------------------------------------------------------------------------------------


def _of_step(key: str, left: SideStep | None, right: SideStep | None, to: Recipient) -> Iterator[Difference]:
    if left is None or right is None:
        there = ("there", NOTHING) if right is None else (NOTHING, "there")
        yield Difference(key, "step", "", *there, Weight.VERSION)
        return
    yield from _plain(key, "kind", left.kind, right.kind, Weight.VERSION)
    yield from _content(key, "data", left.data, right.data, to)
    if _knows(left) and _knows(right):
        yield from _content(key, "result", left.result, right.result, to)
        yield from _plain(key, "confidence", left.confidence, right.confidence)
        yield from _acts(key, left.act, right.act, to)
    yield from _ending(key, left, right)


def _knows(step: SideStep) -> bool:
    """Whether there is something to compare: what was found, or what is to be done."""
    return step.stands or step.act is not None


def _ending(key: str, left: SideStep, right: SideStep) -> Iterator[Difference]:
    """How the step ended. What a run that does not act left out, it could not end as the other one did."""
    left_out = any(step.act is not None and step.act.left_out for step in (left, right))
    alike = left.stands and right.stands and not left_out
    weight = Weight.SUBSTANCE if alike else Weight.CIRCUMSTANCE
    yield from _plain(key, "failure", left.failure, right.failure, weight)
    yield from _plain(key, "ending", _end_of(left), _end_of(right), weight)


def _end_of(step: SideStep) -> str:
    act = step.act
    if act is None:
        return step.status
    if act.left_out:
        return "left out"
    return f"{act.ended}, effect {act.effect}" if act.effect else act.ended


# -- what was to be done ------------------------------------------------------------------------------------------


def _acts(key: str, left: Act | None, right: Act | None, to: Recipient) -> Iterator[Difference]:
    if left is None or right is None:
        yield from _plain(key, "proposed", _named(left), _named(right))
        return
    yield from _plain(key, "operation", left.operation, right.operation)
    yield from _plain(
        key, "operation_version", left.operation_version, right.operation_version, Weight.VERSION
    )
    yield from _plain(key, "target", left.target, right.target)
    yield from _fields(key, left.fields, right.fields, to)
    yield from _pins(key, left.pins, right.pins)
    yield from _evidence(key, left, right, to)
    yield from _plain(key, "consequence", left.consequence, right.consequence)
    yield from _verdict(key, left, right)


def _named(act: Act | None) -> str:
    return f"{act.operation} on {act.target}" if act is not None else ""


def _fields(
    key: str, left: Sequence[ViewField] | None, right: Sequence[ViewField] | None, to: Recipient
) -> Iterator[Difference]:
    """Argument by argument, as reviewers were shown them."""
    if left is None or right is None:
        gone = tuple(GONE if side is None else "readable" for side in (left, right))
        yield Difference(key, "argument", "", gone[0], gone[1], Weight.CIRCUMSTANCE)
        return
    ours, theirs = {field.pointer: field for field in left}, {field.pointer: field for field in right}
    for pointer in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(pointer), theirs.get(pointer)
        if one is not None and other is not None and (one.text, one.type) == (other.text, other.type):
            continue
        named = one or other
        assert named is not None
        yield Difference(key, "argument", named.label, _text_of(one, to), _text_of(other, to))


def _text_of(field: ViewField | None, to: Recipient) -> str:
    return NOTHING if field is None else shortened(shown_value(field, to))


def _pins(key: str, left: Mapping[str, str], right: Mapping[str, str]) -> Iterator[Difference]:
    """The versions of the records that it rests on: another one means that the record was changed in between."""
    for record in dict.fromkeys([*left, *right]):
        ours, theirs = left.get(record), right.get(record)
        if ours != theirs:
            yield Difference(key, "pin", said(record), said(ours) or NOTHING, said(theirs) or NOTHING)


def _evidence(key: str, left: Act, right: Act, to: Recipient) -> Iterator[Difference]:
    ours = {(piece.title, at): piece for at, piece in enumerate(left.evidence)}
    theirs = {(piece.title, at): piece for at, piece in enumerate(right.evidence)}
    for title, at in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get((title, at)), theirs.get((title, at))
        named = one or other
        assert named is not None
        contents = [piece.content if piece is not None else None for piece in (one, other)]
        if one is not None and other is not None and contents[0] == contents[1]:
            continue
        shown = [
            _digits(piece.content if piece is not None else None, piece is None) for piece in (one, other)
        ]
        gone = any(piece is not None and piece.content is None for piece in (one, other))
        weight = Weight.CIRCUMSTANCE if gone else Weight.SUBSTANCE
        yield Difference(
            key, "evidence", said(disclosed(title, named.data_class, to)), shown[0], shown[1], weight
        )


def _digits(content: str | None, missing: bool) -> str:
    if missing:
        return NOTHING
    return GONE if content is None else f"⟦fingerprint {content.removeprefix('hmac:')[:8]}⟧"


def _verdict(key: str, left: Act, right: Act) -> Iterator[Difference]:
    ours, theirs = left.policy, right.policy
    yield from _plain(key, "policy_version", ours.get("version"), theirs.get("version"), Weight.VERSION)
    yield from _tests(key, ours.get("tests"), theirs.get("tests"))
    for name in ("verdict", "rule"):
        yield from _plain(key, name, ours.get(name), theirs.get(name))
    yield from _plain(key, "needed", left.needed, right.needed)


def _tests(key: str, left: object, right: object) -> Iterator[Difference]:
    """Which lines of the verdict came out otherwise; what they say in numbers is in the arguments and facts."""
    ours, theirs = _passed(left), _passed(right)
    for label in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(label, NOTHING), theirs.get(label, NOTHING)
        if one != other:
            yield Difference(key, "test", said(label), one, other)


def _passed(tests: object) -> dict[str, str]:
    rows = tests if isinstance(tests, list) else []
    return {
        str(row.get("label", "")): "yes" if row.get("ok") else "no" for row in rows if isinstance(row, dict)
    }


# -- values -------------------------------------------------------------------------------------------------------


def _plain(
    key: str, code: str, left: object, right: object, weight: Weight = Weight.SUBSTANCE
) -> Iterator[Difference]:
    """Names, numbers and sentences that everybody may read who may open the run."""
    if left != right:
        yield Difference(key, code, "", _shown(left), _shown(right), weight)


def _shown(value: object) -> str:
    return NOTHING if value in (None, "") else said(str(value))


def _content(key: str, code: str, left: Content, right: Content, to: Recipient) -> Iterator[Difference]:
    """Member by member, by fingerprints: what has no declared class is shown to nobody here."""
    if isinstance(left, Unread) or isinstance(right, Unread):
        if left is not right:
            yield Difference(key, code, "", _readable(left), _readable(right), Weight.CIRCUMSTANCE)
        return
    for name, ours, theirs in members(left, right):
        yield Difference(key, code, name, _print_of(ours, to), _print_of(theirs, to))


def _readable(content: Content) -> str:
    return GONE if content is UNREAD else "readable"


def _print_of(value: JsonValue, to: Recipient) -> str:
    """What stands for a value: nothing where there is none, else its fingerprint."""
    if value is None:
        return NOTHING
    return f"⟦fingerprint {fingerprint(to.tenant_id, canonicalize(value).decode())}⟧"
