"""The product's settings, made quicker where a test loses nothing by it."""

from config.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# WhiteNoise warns about a folder that is not there, and here a warning is an error.
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # noqa: F405
