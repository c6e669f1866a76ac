"""The tenant *harbour* with its toy workflow and the real engine, as the tests of runs have it."""

from playwright.sync_api import expect

from tests.workflows.conftest import desk as toy

__all__ = ["toy"]
# What comes is waited for as long as a busy machine needs; how soon it came is no question of these tests.
expect.set_options(timeout=20_000)
