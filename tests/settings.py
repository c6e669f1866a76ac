"""The product's settings, made quicker where a test loses nothing by it."""

from config.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# WhiteNoise warns about a folder that is not there, and here a warning is an error.
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # noqa: F405

# A thread would hold a connection to the database that the tests clear, and at last remove.
PLACET_PULSE_S = 0

# Tests are quicker than people and programs may be, the more so on a quick machine. Those about the limits set them.
PLACET_REQUESTS_PER_MINUTE = PLACET_TENANT_REQUESTS_PER_MINUTE = PLACET_DECISIONS_PER_MINUTE = 0
