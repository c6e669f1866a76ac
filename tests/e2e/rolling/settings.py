"""The tests' settings, with the next release."""

from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.e2e.rolling"]  # noqa: F405
