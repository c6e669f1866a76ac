"""What the runs of a family say of their outcome once an effect of one of them was taken back, or given again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from audit.models import Event
from workflows.counteractions import BETWEEN
from workflows.definitions import COMPENSATED, COMPENSATED_IN_PART
from workflows.effects import EffectOf, effects_of_family, steps_named
from workflows.enums import Effect, RunKind
from workflows.models import Command, Run
from workflows.replays import HANDLED_OUTSIDE

WORDS = (COMPENSATED, COMPENSATED_IN_PART)


@dataclass(frozen=True, slots=True)
class Word:
    """What stands beside a run's outcome from now on; empty: its first word stands again."""

    run_id: UUID
    outcome: str


def words_after(follower: Run, key: str) -> list[Word]:
    """For a run that has ended just now and followed an effect by its step ``key``.

    Nothing where another effect of the same step stands: its user still has what was meant, or more.
    """
    known = effects_of_family(follower)
    if follower.kind == RunKind.REST:
        return _after_rest(follower, key, known)
    effect = next((it for it in known if it.undo_key == key), None)
    if effect is None or follower.outcome not in WORDS or _others_stand(effect, known):
        return []
    words = {**dict(_up(effect, follower.outcome, known)), **dict(_of_parts(effect, follower.outcome, known))}
    return [Word(run_id, outcome) for run_id, outcome in words.items()]


def _after_rest(rest: Run, key: str, known: Sequence[EffectOf]) -> list[Word]:
    """The rest of what took something back only in part: with it all of that is back."""
    undo_key = _first_part(key)
    effect = next((it for it in known if it.undo_key == undo_key), None)
    did = Command.objects.filter(tenant_id=rest.tenant_id, run=rest, effect=Effect.HAPPENED).exists()
    if effect is None or not did or _others_stand(effect, known):
        return []
    return [Word(run_id, outcome) for run_id, outcome in _of_parts(effect, COMPENSATED, known)]


def _others_stand(effect: EffectOf, known: Sequence[EffectOf]) -> bool:
    step = effect.command.step.key
    same = [it for it in known if it.command.step.key == step and it.what != effect.what]
    return any(not _taken_back(it) for it in same)


def _taken_back(effect: EffectOf) -> str:
    """As what its compensation ended, or empty. What somebody saw to in another way is back as a whole."""
    runs = [step.run for step in steps_named(effect.run, [effect.undo_key])]
    if any(run.corrected_outcome == HANDLED_OUTSIDE for run in runs):
        return COMPENSATED
    return next((run.outcome for run in reversed(runs) if run.outcome in WORDS), "")


# -- what happened in part, and its rest --------------------------------------------------------------------------


def _first_part(key: str) -> str:
    """*refund* of *refund*, *refund~2* and *refund~3*."""
    stem, _, tail = key.rpartition(BETWEEN)
    return stem if tail.isdecimal() else key


def _of_parts(effect: EffectOf, outcome: str, known: Sequence[EffectOf]) -> Iterator[tuple[UUID, str]]:
    """The run itself, and the one whose effect this is the rest of: all is back only when every part is."""
    parts = [it for it in known if _first_part(it.key) == _first_part(effect.key)]
    others = {_taken_back(it) for it in parts if it.key != effect.key}
    whole = outcome == COMPENSATED and others <= {COMPENSATED}
    of_all = COMPENSATED if whole else COMPENSATED_IN_PART
    first = next((it for it in parts if it.key == _first_part(effect.key)), effect)
    if first is effect or effect.key == first.key:
        yield effect.run.pk, of_all
    else:
        yield effect.run.pk, outcome
        yield first.run.pk, of_all


# -- what took something back is taken back itself ----------------------------------------------------------------


def _up(effect: EffectOf, outcome: str, known: Sequence[EffectOf]) -> Iterator[tuple[UUID, str]]:
    """The runs whose word that turns round: of a compensation that is taken back, the run that it had corrected."""
    back = True
    while effect.run.kind == RunKind.UNDO:
        undo, back = effect.run, not back
        above = next((it for it in known if it.undo_key == effect.command.step.key), None)
        if above is None:
            return
        effect = above
        yield effect.run.pk, outcome if back or outcome == COMPENSATED_IN_PART else _before(effect.run, undo)


def _before(run: Run, undo: Run) -> str:
    """What a person had said beside its outcome before the compensation did; empty for its first word."""
    said = Event.objects.filter(
        tenant_id=run.tenant_id, run_id=run.pk, kind="run.outcome_corrected", body__run=str(undo.pk)
    )
    before = said.order_by("at", "id").values_list("from_state", flat=True).first() or ""
    return "" if before == run.outcome else str(before)
