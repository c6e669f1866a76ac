"""When an effect may be taken back, or its rest be done: pure rules on facts, and the refusals that say why not."""

from dataclasses import dataclass

from common.errors import Refused


class NothingHappened(Refused):
    """Nothing is known to have happened here, so there is nothing to take back."""

    code = "nothing_happened"


class OutcomeUnknown(Refused):
    """Nobody knows yet whether it happened. Settle that first."""

    code = "outcome_unknown"


class NoReference(Refused):
    """Nobody has written down the provider's reference of what happened, so nothing can be said to be about it."""

    code = "no_reference"


class NoCounterAction(Refused):
    """The operation declares no counter-action here: nothing in this system takes it back."""

    code = "no_counter_action"


class AnotherEffect(Refused):
    """Something else has become known meanwhile, and this name means another effect now. Look at where it stands."""

    code = "another_effect"


class UndoUnderWay(Refused):
    """To take it back is proposed already, or on its way. Look at where that stands."""

    code = "undo_under_way"


class AlreadyUndone(Refused):
    """It was taken back already."""

    code = "already_undone"


class RestUnderWay(Refused):
    """The rest of it is proposed already, or on its way. Look at where that stands."""

    code = "rest_under_way"


class RestDone(Refused):
    """The rest of it was done already."""

    code = "rest_done"


class NotInPart(Refused):
    """Nothing is known to have happened in part, so there is no rest to do."""

    code = "not_in_part"


class NoRemainder(Refused):
    """The operation cannot say what the rest is. Propose it as a request of its own."""

    code = "no_remainder"


@dataclass(frozen=True, slots=True)
class EffectFacts:
    """An effect, or that there is none: ``undo`` and ``rest`` are *open*, *done* or empty."""

    happened: bool
    in_doubt: bool = False
    reference: bool = True
    in_part: bool = False
    counter: bool = False
    """Whether its operation declares a counter-action that the installed workflow offers."""
    can_rest: bool = False
    undo: str = ""
    rest: str = ""


def why_not_undo(facts: EffectFacts) -> Refused | None:
    """None: to take it back may be proposed."""
    if not facts.happened:
        return OutcomeUnknown() if facts.in_doubt else NothingHappened()
    if not facts.counter:
        return NoCounterAction()
    if facts.undo or facts.rest == "open":
        return {"open": UndoUnderWay, "done": AlreadyUndone}.get(facts.undo, RestUnderWay)()
    return None if facts.reference else NoReference()


def why_not_rest(facts: EffectFacts) -> Refused | None:
    """None: the rest may be proposed, if the operation can say what it is."""
    if not facts.in_part:
        return NotInPart()
    if not facts.can_rest:
        return NoRemainder()
    if facts.undo:
        return UndoUnderWay() if facts.undo == "open" else AlreadyUndone()
    if facts.rest:
        return RestUnderWay() if facts.rest == "open" else RestDone()
    return None
