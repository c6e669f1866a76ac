"""What the product's processes are told: addresses and secrets, from our engines or from the caller."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from launch import LaunchError, roles
from launch.datadir import DataDir
from launch.postgres import Postgres
from launch.valkey import Valkey

OWNER_VARIABLE = "DATABASE_OWNER_URL"
_APP_PASSWORD = "application_role_password"  # noqa: S105  (its name in the file)


class Backends:
    """PostgreSQL and Valkey: ours, or those that DATABASE_URL and REDIS_URL name."""

    def __init__(self, data: DataDir, given: Mapping[str, str]) -> None:
        self.data, self.given = data, given
        self.engines: list[Postgres | Valkey] = []

    def start(self) -> dict[str, str]:
        """Starts what is needed; returns their addresses, the database's for both roles."""
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
        roles.bootstrap(postgres.url(), owner_url=owner, app_url=app)
        return {"DATABASE_URL": app, OWNER_VARIABLE: owner}

    def _existing_database(self) -> dict[str, str]:
        owner = self.given["DATABASE_URL"]
        app = self.given.get("DATABASE_APP_URL")
        if app:
            roles.use_existing(owner, app, may_make=False)
        else:
            known = self.data.recall("secrets.json", _APP_PASSWORD) is not None
            app = roles.app_url(owner, self.data.secret(_APP_PASSWORD))
            self._use_made_role(owner, app, known=known)
        return {"DATABASE_URL": app, OWNER_VARIABLE: owner}

    def _use_made_role(self, owner: str, app: str, *, known: bool) -> None:
        """The application role with a password of ours. One that another installation made is left alone."""
        try:
            roles.use_existing(owner, app, may_make=True)
        except LaunchError as error:
            if known or "DATABASE_APP_URL does" not in str(error):
                raise
            raise LaunchError(
                f"The server has a role {roles.APP}, whose password this data directory does not know. "
                "Set DATABASE_APP_URL to its address."
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
    return made | {key: given[key] for key in made if given.get(key) and key != "PLACET_DATA_DIR"}


def for_process(extra: Mapping[str, str], *, owner: bool = False) -> dict[str, str]:
    """A child's whole environment. Only what migrates learns the owner's address."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("DATABASE_")} | dict(extra)
    if not owner:
        env.pop(OWNER_VARIABLE, None)
    return env
