"""A signer for tests: its own role on the test's database, its own folder."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.db import connections

from audit.sealer import seal
from common.clock import db_clock
from launch.roles import SIGNER
from signer.database import Database, connect
from signer.folder import Folder
from signer.work import Work
from tests.audit.events import write


def address() -> str:
    """The signer's address of this test's database."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    name, place = connections["default"].settings_dict["NAME"], parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{SIGNER}@{place[2]}", path=f"/{name}"))


@contextmanager
def signer(folder: Path, **options: Any) -> Generator[Work]:
    """A signer that has just been started. It looks at every tenant each time, unless ``every_s`` says otherwise."""
    with connect(address()) as connection:
        yield Work(Folder(folder), Database(connection), **({"every_s": 0.0} | options))


def look(folder: Path) -> None:
    """Start a signer, let it look at everything once, and end it."""
    with signer(folder) as work:
        work.once()


def sealed(tenant_id: Any, count: int) -> None:
    write(tenant_id, count)
    seal(db_clock)


def as_signer(sql: str) -> Any:
    with psycopg.connect(address(), autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else None
