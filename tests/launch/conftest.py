"""Engines of their own for the launcher's tests, which kill them."""

from collections.abc import Generator
from pathlib import Path

import pytest

from launch.postgres import Postgres
from launch.valkey import Valkey


def reachable(folder: Path) -> Path:
    """pytest's folders are closed to the account that root lends PostgreSQL."""
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)
    return folder


@pytest.fixture
def postgres(tmp_path: Path) -> Generator[Postgres]:
    server = Postgres(reachable(tmp_path), durable=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def valkey(tmp_path: Path) -> Generator[Valkey]:
    server = Valkey(tmp_path)
    server.start()
    yield server
    server.stop()
