"""The tests' settings, with poison."""

from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.e2e.poison"]  # noqa: F405
