"""The product's settings, with the harness's own workflow installed and clocks that are over soon."""

import os

from config.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.faults"]  # noqa: F405
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
PLACET_OPEN_PROPOSALS = 1_000_000
PLACET_CLAIM_LEASE_S = float(os.environ.get("PLACET_FAULTS_LEASE_S", "4"))
PLACET_RELEASES_PER_SECOND = 50
