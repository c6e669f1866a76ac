"""The desk with its toy workflow, as the tests of runs have it."""

from tests.workflows.conftest import desk

__all__ = ["desk"]
