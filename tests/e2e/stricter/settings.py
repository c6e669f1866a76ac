"""The tests' settings, with the stricter policy."""

from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.e2e.stricter"]  # noqa: F405
