"""What the product's processes are told: addresses and secrets, from our engines or from the caller."""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from launch import LaunchError, roles
from launch.datadir import DataDir
from launch.postgres import Postgres
from launch.valkey import Valkey

OWNER_VARIABLE = "DATABASE_OWNER_URL"
SYSTEM_VARIABLE = "DATABASE_SYSTEM_URL"
SIGNER_VARIABLE = "DATABASE_SIGNER_URL"
_APP_PASSWORD = "application_role_password"  # noqa: S105  (its name in the file)
_SYSTEM_PASSWORD = "system_role_password"  # noqa: S105
_SIGNER_PASSWORD = "signer_role_password"  # noqa: S105


class Backends:
    """PostgreSQL and Valkey: ours, or those that DATABASE_URL and REDIS_URL name."""

    def __init__(self, data: DataDir, given: Mapping[str, str]) -> None:
        self.data, self.given = data, given
        self.engines: list[Postgres | Valkey] = []

    def start(self) -> dict[str, str]:
        """Starts what is needed; returns their addresses, the database's for each role."""
        found = self._existing_database() if self.given.get("DATABASE_URL") else self._own_database()
        return found | {"REDIS_URL": self.given.get("REDIS_URL") or self._own_broker()}

    def stop(self) -> None:
        for engine in reversed(self.engines):
            engine.stop()

    def _own_database(self) -> dict[str, str]:
        postgres = Postgres(self.data.path)
        self.engines.append(postgres)
        postgres.start()
        owner = postgres.url(user=roles.OWNER, database=roles.DATABASE)
        app = postgres.url(user=roles.APP, database=roles.DATABASE)
        system = postgres.url(user=roles.SYSTEM, database=roles.DATABASE)
        signer = postgres.url(user=roles.SIGNER, database=roles.DATABASE)
        roles.bootstrap(postgres.url(), owner_url=owner, app_url=app, system_url=system, signer_url=signer)
        return {"DATABASE_URL": app, SYSTEM_VARIABLE: system, OWNER_VARIABLE: owner, SIGNER_VARIABLE: signer}

    def _existing_database(self) -> dict[str, str]:
        owner = self.given["DATABASE_URL"]
        app = self._existing_role(owner, "DATABASE_APP_URL", roles.APP, _APP_PASSWORD)
        system = self._existing_role(owner, SYSTEM_VARIABLE, roles.SYSTEM, _SYSTEM_PASSWORD)
        signer = self._existing_role(owner, SIGNER_VARIABLE, roles.SIGNER, _SIGNER_PASSWORD)
        return {"DATABASE_URL": app, SYSTEM_VARIABLE: system, OWNER_VARIABLE: owner, SIGNER_VARIABLE: signer}

    def _existing_role(self, owner: str, variable: str, role: str, secret: str) -> str:
        """The address of a role that the caller names, or of one with a password of ours."""
        if given := self.given.get(variable):
            roles.use_existing(
                owner, given, may_make=False, variable=variable, signs=variable == SIGNER_VARIABLE
            )
            return given
        known = self.data.recall("secrets.json", secret) is not None
        address = roles.app_url(owner, self.data.secret(secret), role)
        self._use_made_role(owner, address, variable, role, known=known)
        return address

    def _use_made_role(self, owner: str, address: str, variable: str, role: str, *, known: bool) -> None:
        """A role with a password of ours. One that another installation made is left alone."""
        try:
            roles.use_existing(
                owner, address, may_make=True, variable=variable, signs=variable == SIGNER_VARIABLE
            )
        except LaunchError as error:
            if known or f"{variable} does" not in str(error):
                raise
            raise LaunchError(
                f"The server has a role {role}, whose password this data directory does not know. "
                f"Set {variable} to its address."
            ) from error

    def _own_broker(self) -> str:
        valkey = Valkey(self.data.path)
        self.engines.append(valkey)
        valkey.start()
        return valkey.url()


def needs_no_engine(given: Mapping[str, str]) -> bool:
    return bool(given.get("DATABASE_URL") and given.get("REDIS_URL"))


def product_environment(data: DataDir, given: Mapping[str, str], *, port: int) -> dict[str, str]:
    """The PLACET_ variables; what the caller has set stays."""
    base_url = given.get("PLACET_BASE_URL") or f"http://localhost:{port}"
    host = urlsplit(base_url).hostname or "localhost"
    made = {
        "PLACET_SECRET_KEY": data.secret("secret_key"),
        "PLACET_BASE_URL": base_url,
        "PLACET_ALLOWED_HOSTS": ",".join(dict.fromkeys([host, "localhost", "127.0.0.1"])),
        "PLACET_DATA_DIR": str(data.path),
    }
    # Whoever gives content keys has them in a place of their own.
    if not (given.get("PLACET_CONTENT_KEYS") or given.get("PLACET_CONTENT_KEYS_FILE")):
        made["PLACET_CONTENT_KEYS_FILE"] = str(data.content_key())
    return made | {key: given[key] for key in made if given.get(key) and key != "PLACET_DATA_DIR"}


def for_process(extra: Mapping[str, str], *, owner: bool = False) -> dict[str, str]:
    """A child's whole environment. Only what migrates learns the owner's address, and the signer's role."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("DATABASE_")} | dict(extra)
    if not owner:
        env.pop(OWNER_VARIABLE, None)
        env.pop(SIGNER_VARIABLE, None)
    return env


def for_signer(addresses: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The signer's whole environment: its own address and folder, and none of the product's secrets."""
    env = {key: os.environ[key] for key in ("PATH", "PYTHONPATH", "LANG", "TZ") if key in os.environ}
    return env | {SIGNER_VARIABLE: addresses[SIGNER_VARIABLE], "PLACET_SIGNER_DIR": str(folder)}
