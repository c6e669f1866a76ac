"""Migrations in a third of the time: a constraint, an index or a trigger renders no models anew.

Django renders the changed model, and everything related to it, again after each operation. That is a tenth of a
second a time here, for hundreds of operations; but these three change no column and no relation: it is enough to
tell the rendered model what it has now. Columns and models are rendered as ever.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db.migrations.state import ProjectState
from pgtrigger.migrations import AddTrigger


def _append_option(self: ProjectState, app_label: str, model_name: str, option_name: str, obj: Any) -> None:
    options = self.models[app_label, model_name].options
    options[option_name] = [*options.get(option_name, []), obj]
    if "apps" in self.__dict__:
        meta = self.apps.get_model(app_label, model_name)._meta
        setattr(meta, option_name, [*getattr(meta, option_name, []), obj])


def _add_trigger(self: AddTrigger, app_label: str, state: ProjectState) -> None:
    _append_option(state, app_label, self.model_name, "triggers", self.trigger)


_LIGHTER: Final[tuple[tuple[type, str, Callable[..., None]], ...]] = (
    (ProjectState, "_append_option", _append_option),
    (AddTrigger, "state_forwards", _add_trigger),
)


@contextmanager
def unrendered_options() -> Iterator[None]:
    """Within it, what is added to the options of a model is added to the rendered model in its place."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in _LIGHTER]
    for owner, name, lighter in _LIGHTER:
        setattr(owner, name, lighter)
    try:
        yield
    finally:
        for owner, name, own in before:
            setattr(owner, name, own)
