"""The values of secrets: from a file that only its owner may read, into memory and nowhere else.

`PLACET_SECRETS_FILE` names it: JSON, `{tenant: {name: value}}`. It is looked at whenever a value is needed, and read
again once it was written to, so that a new value counts at once.
"""

import os
import stat
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from django.conf import settings
from pydantic import SecretStr

from common.strictjson import JsonRefused, parse

SHORTEST: Final = 8
"""Characters. What is shorter is soon guessed, and cannot be found and hidden in what a provider says."""

Values = Mapping[str, SecretStr]


class SecretsUnreadable(Exception):
    """The file of secrets cannot be read, or not only by its owner, or is not what it should be. Says no value."""


def values_of(tenant: str) -> Values:
    """The secrets of the tenant with this slug, by name; none where no file is named. Raises SecretsUnreadable."""
    path = str(settings.PLACET_SECRETS_FILE)
    if not path:
        return {}
    try:
        found = os.stat(path)
        return _read(path, found.st_mtime_ns, found.st_ctime_ns).get(tenant, {})
    except OSError as error:
        raise SecretsUnreadable("the file of PLACET_SECRETS_FILE cannot be read") from error


@lru_cache(maxsize=1)
def _read(path: str, _written_at: int, _changed_at: int) -> Mapping[str, Values]:
    """Both times are part of the cache's key: the second one also tells that its rights were changed."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SecretsUnreadable("the file of PLACET_SECRETS_FILE is open to others than its owner")
        found = _parsed(file.read())
    if not isinstance(found, dict):
        raise SecretsUnreadable("the file of PLACET_SECRETS_FILE is not {tenant: {name: value}}")
    return {tenant: _values(tenant, named) for tenant, named in found.items()}


def _parsed(content: bytes) -> object:
    # An error of the parser may hold what it read: it goes no further.
    try:
        return parse(content)
    except JsonRefused:
        return None


def _values(tenant: str, named: object) -> Values:
    if not isinstance(named, dict):
        raise SecretsUnreadable(f"the secrets of {tenant} are not {{name: value}}")
    for name, value in named.items():
        if not isinstance(value, str) or len(value) < SHORTEST:
            raise SecretsUnreadable(
                f"the secret {name} of {tenant} is no text of {SHORTEST} characters or more"
            )
    return {name: SecretStr(value) for name, value in named.items()}
