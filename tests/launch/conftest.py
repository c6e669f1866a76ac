"""Engines of their own for the launcher's tests, which kill them."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from launch.postgres import Postgres
from launch.valkey import Valkey


@contextmanager
def temporary_folder() -> Generator[Path]:
    """A folder that the account which root lends PostgreSQL can reach; pytest's own are closed to it."""
    with TemporaryDirectory(prefix="placet-launch-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def folder() -> Generator[Path]:
    with temporary_folder() as made:
        yield made


@pytest.fixture
def postgres(folder: Path) -> Generator[Postgres]:
    server = Postgres(folder, durable=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def valkey(tmp_path: Path) -> Generator[Valkey]:
    server = Valkey(tmp_path)
    server.start()
    yield server
    server.stop()
