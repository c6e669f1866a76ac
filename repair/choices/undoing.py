"""Take an effect back by its counter-action, or propose the rest of what happened in part."""

from typing import Any, Final

from audit.actors import Actor
from common.clock import Clock
from common.disclosure import is_open
from common.display import visible
from repair.choices import rules
from repair.choices.asking import TODAY, asked_words
from repair.choices.case import Case
from repair.choices.declared import Check, Choice, DryRun, Typed
from repair.choices.forms import ChoiceForm
from workflows import registry
from workflows.actions.compensating import RESTING, UNDOING, Following, follow, operation_of
from workflows.effects import EffectOf
from workflows.enums import RunKind
from workflows.forms_edits import as_text
from workflows.preparing import Prepared

NOTHING_SENT: Final = "Nothing leaves this system by this: somebody must approve it first."


class ProposeForm(ChoiceForm):
    """Why: the reviewers of what is proposed read it."""

    words_label = "Why"


def _follow(following: Following) -> Any:
    def act(case: Case, typed: Typed, by: Actor, clock: Clock) -> str:
        assert case.effect is not None
        return propose(following, case.effect, typed, by, clock)

    return act


def propose(following: Following, effect: EffectOf, typed: Typed, by: Actor, clock: Clock) -> str:
    """What came of it, as a sentence."""
    proposal = follow(
        following, tenant_id=effect.run.tenant_id, run_id=effect.run.pk, key=effect.key, reason=typed["words"], by=by,
        clock=clock, what=effect.what,
    )  # fmt: skip
    return f"Proposed: “{visible(proposal.summary)}” waits for somebody else's decision."


def _dry(following: Following) -> Any:
    def dry_run(case: Case, typed: Typed | None) -> DryRun:
        assert case.effect is not None
        return dry_of(
            following, case.effect, typed, "This case stays open: close it when you know how that ended."
        )

    return dry_run


def dry_of(following: Following, effect: EffectOf, typed: Typed | None, remains: str) -> DryRun:
    """Without what was typed, only what is declared; with it, what would be proposed now, read and judged just now.

    Raises a `Refused` where it could not be proposed.
    """
    prepared = following.prepare(effect, typed.get("words", "")) if typed is not None else None
    changes = (
        f"Proposed as an action of its own, in a run of its own: {_what(following, effect)}.",
        f"It is about what the provider knows as {visible(effect.happened.reference)}, made by {_of(effect)}.",
        "You do not decide on it, nor does whoever stood behind the first proposal, and no rule approves it.",
        f"Its key comes from the first run and the step {following.key(effect)}: it is done at most once.",
        _remains(following), remains,
    )  # fmt: skip
    asked = "What reviewers are asked about. " if prepared else ""
    return DryRun(
        changes, sends=_values(prepared) if prepared else (), sends_says=asked + NOTHING_SENT,
        checks=_checks(prepared) if prepared else TODAY,
    )  # fmt: skip


def _what(following: Following, effect: EffectOf) -> str:
    operation = operation_of(effect)
    assert operation is not None, "the rule has looked"
    name = operation.counter.name if following.kind == RunKind.UNDO and operation.counter else operation.name
    newest = registry.operation(name)
    return f"{newest.title} ({newest.name}, version {newest.version})"


def _of(effect: EffectOf) -> str:
    operation = operation_of(effect)
    name = operation.title if operation is not None else effect.command.operation
    return f"“{name}” on {visible(effect.command.target)}"


def _remains(following: Following) -> str:
    if following.kind == RunKind.UNDO:
        return "What was done stays in the history and in its receipt; the outcome is corrected beside it in the end."
    return "What has happened in part stands as it is."


def _values(prepared: Prepared) -> tuple[tuple[str, str], ...]:
    """What reviewers would be asked about: public and business values; of others only that they are there."""
    draft = prepared.draft
    rows = [("What", prepared.summary), ("On", visible(draft.target))]
    rows += [
        (spec.label, as_text(draft.material[spec.name]) if is_open(spec.data_class)
         else f"{spec.data_class}, not shown here")
        for spec in draft.operation.arguments.specs if spec.material
    ]  # fmt: skip
    return tuple(rows)


def _checks(prepared: Prepared) -> tuple[Check, ...]:
    verdict = prepared.verdict
    pins = ", ".join(f"{record} as {tag}" for record, tag in prepared.draft.pins.items()) or "none"
    asked = asked_words(max(1, verdict.needed))
    return (
        Check("Schema", "the values fit", ok=True),
        Check("Policy", f"{verdict.because} By rule {verdict.rule}: {asked}.", ok=True),
        Check("Record", f"read just now; pins: {visible(pins)}", ok=True),
        Check("Approval", "its own; that of the first action does not count for it"),
    )  # fmt: skip


COMPENSATE: Final = Choice(
    "compensate", "Take it back", "The operation's counter-action, proposed as an action of its own.", "undo",
    rules.COMPENSATE, _dry(UNDOING), ProposeForm, act=_follow(UNDOING),
    needs=("a reason", "somebody else's approval"), danger=True, preview=True, button="Propose to take it back",
)  # fmt: skip
COMPLETE: Final = Choice(
    "complete", "Propose the rest", "What is left of what happened in part, as an action of its own.", "layers",
    rules.COMPLETE, _dry(RESTING), ProposeForm, act=_follow(RESTING), needs=("a reason", "somebody else's approval"),
    preview=True, button="Propose the rest",
)  # fmt: skip
FAMILY: Final = (COMPENSATE, COMPLETE)
