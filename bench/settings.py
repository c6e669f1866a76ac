"""The product's settings, with the benchmark's own workflow installed."""

from config.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "bench"]  # noqa: F405
PLACET_OPEN_PROPOSALS = PLACET_OPEN_PROPOSALS_TENANT = 1_000_000  # nobody reads these
# Speed is measured, not how it is limited.
PLACET_REQUESTS_PER_MINUTE = PLACET_TENANT_REQUESTS_PER_MINUTE = PLACET_DECISIONS_PER_MINUTE = 0
