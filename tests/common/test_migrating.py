"""The faster ``migrate`` arrives where Django's own does, and is the one that is run."""

from typing import Any

from django.core.management import get_commands
from django.db import models
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddConstraint, AddField
from django.db.migrations.state import ModelState, ProjectState
from pgtrigger.migrations import AddTrigger

from common.migrating import unrendered_options


def all_migrations() -> ProjectState:
    return MigrationLoader(None).project_state()


def options_of(state: ProjectState) -> dict[tuple[str, str], dict[str, list[Any]]]:
    """The deconstructed constraints, indexes and triggers of each model, in their order."""
    return {
        key: {
            name: [
                thing.name if name == "triggers" else thing.deconstruct()
                for thing in model.options.get(name, ())
            ]
            for name in ("constraints", "indexes", "triggers")
        }
        for key, model in state.models.items()
    }


def test_it_is_what_migrate_means_here() -> None:
    assert get_commands()["migrate"] == "common"


def test_the_state_after_all_migrations_is_the_same() -> None:
    own = all_migrations()
    with unrendered_options():
        lighter = all_migrations()
    assert options_of(lighter) == options_of(own)
    assert sum(len(kinds["triggers"]) for kinds in options_of(own).values()) > 40
    assert not MigrationAutodetector(own, lighter)._detect_changes()


def test_a_rendered_model_has_what_was_added_and_keeps_it() -> None:
    with unrendered_options():
        state = ProjectState()
        state.add_model(ModelState("common", "Thing", [("id", models.AutoField(primary_key=True))]))
        rendered = state.apps.get_model("common", "Thing")
        positive = models.CheckConstraint(condition=models.Q(id__gt=0), name="thing_positive")
        AddConstraint("thing", positive).state_forwards("common", state)
        assert state.apps.get_model("common", "Thing") is rendered
        assert rendered._meta.constraints == [positive]
        AddField("thing", "name", models.TextField()).state_forwards("common", state)
    anew = state.apps.get_model("common", "Thing")
    assert anew is not rendered
    assert [rule.name for rule in anew._meta.constraints] == ["thing_positive"]


def test_django_is_as_it_was_afterwards() -> None:
    before = ProjectState._append_option, AddTrigger.state_forwards
    with unrendered_options():
        assert ProjectState._append_option is not before[0]
    assert (ProjectState._append_option, AddTrigger.state_forwards) == before
