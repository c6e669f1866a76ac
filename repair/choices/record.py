"""Look at the related record: read from its source as it is now, and kept with the case."""

from typing import Final

from audit.actors import Actor
from common.clock import Clock
from common.display import visible
from repair.choices import rules
from repair.choices.case import Case
from repair.choices.declared import Choice, DryRun, Typed
from repair.choices.forms import QuietForm
from workflows.actions.record_looking import look_at_record
from workflows.record_looks import pins_of


def _look(case: Case, typed: Typed, by: Actor, clock: Clock) -> str:
    assert case.of_order is not None
    then = pins_of(case.of_order)
    look = look_at_record(case.run, case.of_order, by=by, clock=clock)
    others = sorted(name for name in {*then, *look.pins} if then.get(name) != look.pins.get(name))
    if not others:
        return "It is as the reviewer saw it."
    return f"Another version by now: {visible(', '.join(others))}."


def _looked(case: Case, typed: Typed | None) -> DryRun:
    assert case.of_order is not None
    names = ", ".join(sorted(pins_of(case.of_order)))
    return DryRun(
        (
            f"{visible(names)} is read from its source, once, by this system.",
            "The version that is found stands in the packet, beside the one that the reviewer saw, with its time.",
            "Nothing else changes, here or there.",
        ),
        sends_says="A question to the source leaves this system. It changes nothing there.",
    )  # fmt: skip


LOOK_AT_RECORD: Final = Choice(
    "look_at_record", "Look at the record now", "Whether it is still what the reviewer saw. Nothing is changed.", "eye",
    rules.LOOK_AT_RECORD, _looked, QuietForm, act=_look, button="Look at it now",
)  # fmt: skip
FAMILY: Final = (LOOK_AT_RECORD,)
