"""What every test stands on: both database roles, a browser, real processes.

A test that needs the database says `pytestmark = pytest.mark.django_db` (or asks for `db`). It
always gets real transactions and both aliases: the suite is about locks, commits and triggers,
and the application role's connection is a mirror that cannot share the owner's transaction.
"""

import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import database

# A busy machine is slow at making examples too; that says nothing about the product.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
_DATABASE_FIXTURES = {"db", "transactional_db", "live_server", "processes"}
# What these are about must not happen even once.
_ONE_TRY = {"audit", "common", "faults", "model", "security", "tenants"}
# But for this one, about the harness itself: in which moment a planted defect shows is left to chance.
_BY_CHANCE = "test_a_planted_defect_is_found"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_BROWSER_ARGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Turns every database test into a transactional one on both aliases; marks browser and process tests."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if item.get_closest_marker("django_db") or fixtures & _DATABASE_FIXTURES:
            item.add_marker(pytest.mark.django_db(transaction=True, databases="__all__"), append=False)
        if "page" in fixtures:
            item.add_marker(pytest.mark.browser)
        if "processes" in fixtures:
            item.add_marker(pytest.mark.e2e)
        if os.environ.get("CI") and _has_two_tries(item):
            item.add_marker(pytest.mark.flaky(reruns=1))  # ADR 37: the summary names it as RERUN


def _has_two_tries(item: pytest.Item) -> bool:
    return item.path.parent.name not in _ONE_TRY or item.name.startswith(_BY_CHANCE)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """After the migrations: what they left in the tables is what each test starts from."""
    with django_db_blocker.unblock():
        database.remember_pristine_rows()
    database.use_instead_of_flush()


@pytest.fixture
def django_assert_num_queries() -> Any:
    """pytest-django's, over all connections: a request works on others than the test itself."""
    return database.assert_num_queries


# --- browser -----------------------------------------------------------------------------------
def _chromium() -> str | None:
    candidates = (os.environ.get("CHROMIUM"), *(shutil.which(name) for name in _BROWSERS))
    return next((path for path in candidates if path and Path(path).exists()), None)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The system's Chromium. Without one the test is skipped; where CI is set, it fails."""
    path = _chromium()
    if path is None:
        text = "no Chromium: apt-get install chromium, or set CHROMIUM=/path/to/it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(text)
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    return {**browser_type_launch_args, "executable_path": path, "args": [*_BROWSER_ARGS, *sandbox]}


# --- processes ---------------------------------------------------------------------------------
@pytest.fixture
def processes(transactional_db: None, tmp_path: Path) -> Generator[Any]:
    """Starts real worker, sweep and provider processes on the test's database; stops them at the end."""
    from tests.processes import Processes  # it imports Django, which is not set up when this file is read

    started = Processes(tmp_path)
    yield started
    started.stop_all()
