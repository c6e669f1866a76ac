"""Counter-actions as authors declare them, checked when a workflow is registered: before anybody relies on one."""

from typing import Any

from common.fields import ArgumentSpec, DataClass, IdentifierType, TextType
from workflows.definitions import Workflow
from workflows.operations import REFERENCE, Operation

BETWEEN = "~"
"""Between a step and what follows its effect: ``refund~undo``. No stage has it in its key."""
LONGEST_STAGE = 40
_HOW_OPEN = (DataClass.PUBLIC, DataClass.BUSINESS, DataClass.PERSONAL, DataClass.SECRET)


def check_follow_ups(workflow: type[Workflow]) -> None:
    """Raises TypeError for a counter-action that could not be proposed, ValueError for a stage whose key is taken."""
    for stage in workflow.stages:
        if BETWEEN in stage.key or len(stage.key) > LONGEST_STAGE:
            raise ValueError(
                f"The key of a stage has at most {LONGEST_STAGE} characters and no {BETWEEN!r}: {stage.key}"
            )
    for operation in workflow.operations:
        _check_counter(operation, workflow)


def _check_counter(operation: type[Operation[Any]], workflow: type[Workflow]) -> None:
    counter = operation.counter
    if counter is None:
        if operation.counter_from:
            raise TypeError(
                f"{operation.__name__} says what its counter-action is made from, and names none."
            )
        return
    if counter is operation or counter.name == operation.name:
        raise TypeError(f"{operation.__name__} cannot be its own counter-action.")
    if counter not in workflow.operations:
        raise TypeError(
            f"{counter.__name__} takes back {operation.__name__}, and is no operation of {workflow.name}."
        )
    if operation.counter_arguments is Operation.counter_arguments:
        _check_made(operation, counter)


def _check_made(operation: type[Operation[Any]], counter: type[Operation[Any]]) -> None:
    """Whatever is made by `Operation.counter_from` must fit the schema of the counter-action."""
    takes = {spec.name: spec for spec in counter.arguments.specs}
    has = {spec.name: spec for spec in operation.arguments.specs if spec.material}
    needed = {
        name for name, spec in takes.items() if counter.arguments.model_fields[spec.attribute].is_required()
    }
    missing, unknown = (
        sorted(needed - set(operation.counter_from)),
        sorted(set(operation.counter_from) - set(takes)),
    )
    if missing or unknown:
        raise TypeError(
            f"{operation.__name__}.counter_from must give what {counter.__name__} takes:"
            f" missing {missing}, unknown {unknown}."
        )
    wrong = [
        name for name, source in operation.counter_from.items()
        if not (_takes_reference(takes[name]) if source == REFERENCE else _fits(takes[name], has.get(source)))
    ]  # fmt: skip
    if wrong:
        raise TypeError(
            f"{operation.__name__}.counter_from gives {counter.__name__} what it does not take as {wrong}:"
            " another type, a class that shows more, or no bound argument."
        )


def _takes_reference(spec: ArgumentSpec) -> bool:
    return isinstance(spec.kind, TextType | IdentifierType) and spec.data_class is not DataClass.SECRET


def _fits(taken: ArgumentSpec, given: ArgumentSpec | None) -> bool:
    """The same type, and no class by which more people would see it."""
    if given is None or DataClass.SECRET in (given.data_class, taken.data_class):
        return False
    return taken.kind == given.kind and _HOW_OPEN.index(taken.data_class) >= _HOW_OPEN.index(given.data_class)
