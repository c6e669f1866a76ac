"""A pytest plugin (`-p launch.testing`): the tests' own PostgreSQL and Valkey, in a temporary folder.

Only engines that this run started are ever used, whatever the environment says: a suite that
follows DATABASE_URL would one day empty somebody's database. The engines must be up before
pytest-django reads the settings, so a conftest.py would be too late. With xdist each worker has
engines of its own: the sealer waits for every transaction of a cluster, another worker's too, and a
test may empty or stop its broker.

The `owner` alias of the tests is a superuser whose triggers and foreign keys are off, for preparing
and for clearing tables. `app` and `system` are the roles that they are in production. `default` is the system
role, as in workers; requests, those of Django's test client too, are the application role.
"""

import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from launch.postgres import SUPERUSER, Postgres
from launch.roles import APP, DATABASE, SIGNER, SYSTEM, default_rights, make_login
from launch.valkey import Valkey

_PREFIX = "placet-test-"


class Engines:
    """Both engines and their folder."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self.base.chmod(0o755)  # root's PostgreSQL runs under another account
        self.postgres = Postgres(self.base, durable=False)
        self.valkey = Valkey(self.base, durable=False)

    def start(self) -> dict[str, str]:
        """Starts both; returns the environment that the settings read."""
        self.postgres.start()
        self.valkey.start()
        self._prepare_template()
        return {
            "DATABASE_URL": self.postgres.url(user=APP, database=DATABASE),
            "DATABASE_SYSTEM_URL": self.postgres.url(user=SYSTEM, database=DATABASE),
            "DATABASE_OWNER_URL": self.postgres.url(
                database=DATABASE, options="-c session_replication_role=replica"
            ),
            "REDIS_URL": self.valkey.url(),
            "PLACET_SECRET_KEY": "only-for-tests-" + "0123456789" * 4,
            "PLACET_BASE_URL": "http://localhost:8000",
            "PLACET_ALLOWED_HOSTS": "localhost,127.0.0.1,testserver",
            "PLACET_DATA_DIR": str(self.base / "data"),
            "PLACET_DEBUG": "false",
            "PLACET_LOG_LEVEL": "WARNING",
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DJANGO_ALLOW_ASYNC_UNSAFE": "true",  # Playwright's synchronous API runs an event loop
        }

    def stop(self) -> None:
        self.valkey.stop()
        self.postgres.stop()
        shutil.rmtree(self.base, ignore_errors=True)

    def _prepare_template(self) -> None:
        """Every database made from the template lets both roles use what the superuser makes."""
        with psycopg.connect(self.postgres.url(database="template1"), autocommit=True) as connection:
            for role in (APP, SYSTEM):
                make_login(connection, role)
                default_rights(connection, owner=SUPERUSER, app=role)
            make_login(connection, SIGNER)
        with psycopg.connect(self.postgres.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")


def _remove_leftovers() -> None:
    """Folders of runs that were killed. Their engines died with them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).split("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    """A wrapper runs before every other implementation, pytest-django's included."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _remove_leftovers()
    engines = Engines()
    early_config.add_cleanup(engines.stop)
    os.environ.update(engines.start())
    return (yield)
