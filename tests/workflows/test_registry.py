"""Versions of what is installed: what counts as a change, and who may write one down."""

import ast

import pytest

from common.clock import db_clock
from tests.workflows.conftest import Desk
from tests.workflows.later import as_superuser
from tests.workflows.together import at_once
from workflows.models import Definition
from workflows.registry import ChangedUnderOldNumber, definitions, register_definitions, shape_of

WRITTEN = """
class Rule(Base):
    name = "rule"
    none = None

    def judge(self, amount):
        return amount if amount > 1.50 else []
"""


def of_a_newer_python(node: ast.AST) -> ast.AST:
    """The same class as a Python reads it that knows type parameters."""
    newer = type("ClassDef", (ast.ClassDef,), {"_fields": (*ast.ClassDef._fields, "type_params")})
    return newer(**dict(ast.iter_fields(node)), type_params=[])


def test_a_newer_python_reads_the_same_definition() -> None:
    """Field report R1: an upgrade that changes no rule must not refuse to start."""
    [found] = ast.parse(WRITTEN).body
    assert shape_of(of_a_newer_python(found)) == shape_of(found)


@pytest.mark.parametrize(
    ("old", "new"), [("1.50", "2.50"), ("amount >", "amount <"), ("= None", "= []"), ('"rule"', '"role"')]
)
def test_a_changed_rule_is_another_shape(old: str, new: str) -> None:
    assert old in WRITTEN
    assert shape_of(ast.parse(WRITTEN.replace(old, new))) != shape_of(ast.parse(WRITTEN))


@pytest.mark.django_db
def test_a_change_under_an_old_number_is_refused_and_a_new_number_is_not(desk: Desk) -> None:
    as_superuser("UPDATE workflows_definition SET content_hash = 'another' WHERE name = 'toy-policy'")
    with pytest.raises(ChangedUnderOldNumber, match="policy toy-policy was changed under version 1"):
        register_definitions(clock=db_clock)
    as_superuser("UPDATE workflows_definition SET version = 0 WHERE name = 'toy-policy'")
    assert register_definitions(clock=db_clock) == ["policy toy-policy@1"]
    assert Definition.objects.get(name="toy-policy", is_current=True).version == 1


@pytest.mark.django_db
def test_processes_that_start_together_write_each_version_once(desk: Desk) -> None:
    as_superuser("DELETE FROM workflows_definition")
    at_once(4, lambda _: len(register_definitions(clock=db_clock)))
    written = Definition.objects.values_list("kind", "name", "version")
    assert sorted(written) == sorted(definition[:3] for definition in definitions())
