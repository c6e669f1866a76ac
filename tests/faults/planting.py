"""Defects to plant: each takes one safeguard out of a running process. The product's own files stay as they are.

A harness that never fails proves nothing. Each of these makes it fail, in a small directed scenario, with the
invariant named that the defect breaks (`tests/faults/test_defects.py`).
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

PLANTS: dict[str, Callable[[], None]] = {}


def plants(function: Callable[[], None]) -> Callable[[], None]:
    PLANTS[function.__name__] = function
    return function


def plant(name: str) -> None:
    """Take the safeguard out of this process."""
    from tests.faults import planting_acts, planting_checks, planting_settling  # noqa: F401 - they fill the list

    PLANTS[name]()


def patch(where: str, make: Callable[[Any], Any]) -> None:
    """Replace ``module.name`` by what ``make`` makes of it."""
    module_name, _, name = where.rpartition(".")
    module = import_module(module_name)
    setattr(module, name, make(getattr(module, name)))


def everywhere(name: str, modules: tuple[str, ...], make: Callable[[Any], Any]) -> None:
    """The same function under all the names by which it was imported."""
    made = make(getattr(import_module(modules[0]), name))
    for module in modules:
        assert hasattr(import_module(module), name), f"{module} has no {name} any more"
        setattr(import_module(module), name, made)


def always(value: Any) -> Callable[[Any], Any]:
    """A function that says the same whatever it is asked."""
    return lambda _: lambda *args, **kwargs: value
