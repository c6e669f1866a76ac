"""What a run is, from its rows alone: original or replayed, retried, reconciled. Several may hold at once."""

from typing import Final

from workflows.enums import RunKind, SettledBy
from workflows.screens.story import Story

ORIGINAL, REPLAYED, RETRIED, RECONCILED = "original", "replayed", "retried", "reconciled"
FOLLOWS: Final = "follows"
MARK_WORDS: Final = {
    ORIGINAL: "Original", REPLAYED: "Replayed", RETRIED: "Retried", RECONCILED: "Reconciled",
    FOLLOWS: "After an effect",
}  # fmt: skip
_NOT_BY_ANSWER: Final = (
    SettledBy.LATE_ANSWER, SettledBy.LOOKUP, SettledBy.RESEND, SettledBy.PERSON, SettledBy.EARLIER_EFFECT,
)  # fmt: skip


def marks_of(story: Story) -> tuple[str, ...]:
    """What it is comes first. *Retried*: a stage ran, or a request was made, more than once; *reconciled*: how an order
    ended was not learned from the answer to its request.
    """
    run, commands = story.run, list(story.commands.values())
    kinds = {RunKind.ORIGINAL: ORIGINAL, RunKind.REPLAY: REPLAYED}
    found = [kinds.get(RunKind(run.kind), FOLLOWS)]
    retried = any(step.attempt > 1 for step in story.steps) or any(command.tries > 1 for command in commands)
    reconciled = any(command.settled_by in _NOT_BY_ANSWER for command in commands)
    found += [RETRIED] if retried else []
    found += [RECONCILED] if reconciled else []
    return tuple(found)
