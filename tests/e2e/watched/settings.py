"""The tests' settings; each new connection adds a line to the file of its process."""

import json
import os
from pathlib import Path
from typing import Any

from django.db.backends.signals import connection_created

from tests.settings import *  # noqa: F403

NAMES = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "synchronous_commit")


def write_down(connection: Any, **_: Any) -> None:
    with connection.connection.cursor() as cursor:
        shown = {name: cursor.execute(f"SELECT current_setting('{name}')").fetchone()[0] for name in NAMES}
        shown["session_user"] = cursor.execute("SELECT session_user").fetchone()[0]
    with open(Path(os.environ["PLACET_TEST_SEEN"]) / f"{os.getpid()}", "a") as seen:
        seen.write(json.dumps(shown) + "\n")


connection_created.connect(write_down)
