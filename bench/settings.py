"""The product's settings, with the benchmark's own workflow installed."""

from config.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "bench"]  # noqa: F405
PLACET_OPEN_PROPOSALS = 1_000_000  # nobody reads these
