"""What is said about a case that has closed: its cause, and what is to be learned from it."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from audit.actors import Actor
from repair.choices import rules
from repair.choices.case import Case
from repair.choices.declared import Choice, DryRun, Typed
from repair.choices.forms import QuietForm
from repair.models import RepairPacket


def _note(packet: RepairPacket, typed: Typed, by: Actor, now: datetime) -> str:
    return "Noted."


def _noted(case: Case, typed: Typed | None) -> DryRun:
    return DryRun(
        ("The cause stands with the case, so that what keeps coming back is found. Nothing else changes.",)
    )


def _marked(command: str, becomes: str) -> Callable[[Case, Typed | None], DryRun]:
    def dry_run(case: Case, typed: Typed | None) -> DryRun:
        says = f"./placet {command} {case.packet.pk}" if command else ""
        lines = (f"The case is marked: it is to become {becomes}. It changes no code, and nothing else.",)
        draft = (f"Its draft, without personal values: {says}",) if says else ()
        return DryRun((*lines, *draft))

    return dry_run


NOTE_CAUSE: Final = Choice(
    "note_cause", "Say what the cause was", "The case closed by itself, and nobody has said why it stopped.", "pencil",
    rules.NOTE_CAUSE, _noted, QuietForm, inside=_note, resolves=True, button="Note the cause",
)  # fmt: skip
TO_FIXTURE: Final = Choice(
    "to_fixture", "Let it become a test", "A case of the project's tests, so that it does not come back.", "flag",
    rules.TO_FIXTURE, _marked("fixture", "a case of the project's tests"), QuietForm, inside=_note, button="Mark it",
)  # fmt: skip
TO_RULE: Final = Choice(
    "to_rule", "Let it become a validation rule", "A check that sees it before anybody is asked.", "flag",
    rules.TO_RULE, _marked("rule", "a validation rule"), QuietForm, inside=_note, button="Mark it",
)  # fmt: skip
TO_RUNBOOK: Final = Choice(
    "to_runbook", "Let it become a step of the runbook", "What was done here helps whoever meets it next.", "flag",
    rules.TO_RUNBOOK, _marked("", "a step of the workflow's runbook, a file beside its code"), QuietForm, inside=_note,
    button="Mark it",
)  # fmt: skip
FAMILY: Final = (NOTE_CAUSE, TO_FIXTURE, TO_RULE, TO_RUNBOOK)
