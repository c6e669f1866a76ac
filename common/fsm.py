"""States: a mixin that keeps protected state fields refreshable, and the database's wall made from the declaration.

The states of a model are declared once, by ``django_fsm``'s ``@transition`` methods. `allowed_moves` reads that
declaration; the trigger below, the diagrams in ``docs/states`` and hand-written SQL all take it from there.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pgtrigger
from django.apps import apps
from django.db import models
from django_fsm import RETURN_VALUE, FSMField

from common.walls import Frozen, Wall

__all__ = ["Frozen", "Move", "ProtectedStateMixin", "StateTrigger", "allowed_moves", "sources_of"]

Move = tuple[str, str]


class ProtectedStateMixin(models.Model):
    """Lets ``refresh_from_db`` reload protected state fields.

    ``django_fsm.FSMModelMixin`` does it by lowering a flag on the class, which is neither thread-safe nor restored
    after an exception. Here the value leaves this one instance, and returns if the reload fails.
    """

    class Meta:
        abstract = True

    def refresh_from_db(
        self, using: str | None = None, fields: Iterable[str] | None = None, from_queryset: Any = None
    ) -> None:
        loaded = [f.attname for f in self._meta.concrete_fields if f.attname in self.__dict__]
        wanted = loaded if fields is None else list(fields)
        states = [f.attname for f in self._meta.concrete_fields if isinstance(f, FSMField)]
        kept = {name: self.__dict__.pop(name) for name in states if name in wanted and name in self.__dict__}
        try:
            super().refresh_from_db(using=using, fields=wanted, from_queryset=from_queryset)
        except BaseException:
            self.__dict__.update(kept)
            raise
        if fields is None:
            self._forget_related()

    def _forget_related(self) -> None:
        """What Django does itself when no fields are named: objects that were reached from here may have changed."""
        self._prefetched_objects_cache: dict[str, Any] = {}
        for relation in self._meta.related_objects:
            if relation.is_cached(self):
                relation.delete_cached_value(self)


def allowed_moves(model: type[models.Model], field: str = "status") -> list[Move]:
    """Every (source, target) pair that the model's transitions declare, sorted."""
    state_field = model._meta.get_field(field)
    assert isinstance(state_field, FSMField)
    moves: set[Move] = set()
    for move in state_field.get_all_transitions(model):
        assert move.source not in ("*", "+"), f"{model}: {move.name} has an open source"
        targets = move.target.allowed_states if isinstance(move.target, RETURN_VALUE) else [move.target]
        moves.update((str(move.source), str(target)) for target in targets)
    return sorted(moves)


def sources_of(model: type[models.Model], target: str, field: str = "status") -> list[str]:
    """The states from which the declaration allows a move to ``target``; for hand-written SQL."""
    return [source for source, to in allowed_moves(model, field) if to == target]


class StateTrigger(Wall):
    """The last wall: refuses an INSERT in any but the initial states and an UPDATE along an undeclared move.

    Holds against ``.update()``, ``bulk_update`` and raw SQL, which pass the state machine by.
    """

    when = pgtrigger.Before
    operation = pgtrigger.Insert | pgtrigger.Update

    def __init__(self, *, name: str, initial: Sequence[str], field: str = "status") -> None:
        self.field, self.initial = field, tuple(initial)
        super().__init__(name=name)

    def get_func(self, model: Any) -> str:
        # makemigrations hands over a model without methods; the declaration is on the real one.
        declared = apps.get_model(model._meta.label)
        column = declared._meta.get_field(self.field).column
        moves = ", ".join(
            f"('{source}', '{target}')" for source, target in allowed_moves(declared, self.field)
        )
        initial = ", ".join(f"'{state}'" for state in self.initial)
        return f"""
            IF TG_OP = 'INSERT' THEN
                IF NEW.{column} NOT IN ({initial}) THEN
                    {self.refuse("state: % may not begin as %", f"NEW.{column}")}
                END IF;
            ELSIF OLD.{column} IS DISTINCT FROM NEW.{column}
                AND (OLD.{column}, NEW.{column}) NOT IN ({moves}) THEN
                {self.refuse("state: % may not move from % to %", f"OLD.{column}", f"NEW.{column}")}
            END IF;
            RETURN NEW;
        """  # names come from the models, never from outside
