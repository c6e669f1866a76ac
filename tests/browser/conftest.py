"""The tenant *harbour* with its toy workflow and the real engine, as the tests of runs have it."""

from tests.workflows.conftest import desk as toy

__all__ = ["toy"]
