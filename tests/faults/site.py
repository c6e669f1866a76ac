"""Engines, provider and processes of one run, in a temporary folder that is removed afterwards.

Nothing is shared with the environment: a harness that followed DATABASE_URL would one day shoot at somebody's server.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from launch import roles
from launch.postgres import Postgres
from launch.process import die_with_parent
from launch.valkey import Valkey
from tests.examples.refunds.conftest import RunningProvider, start_provider, stop_provider

ROOT = Path(__file__).resolve().parents[2]
TENANTS = 500
"""How many rounds one site can serve, each with a tenant of its own."""


class TimedPostgres(Postgres):
    """Durable, and it remembers when each transaction committed: the oracle compares it with what arrived."""

    def _options(self) -> dict[str, str]:
        return super()._options() | {"track_commit_timestamp": "on", "max_connections": "100"}

    def crash(self) -> None:
        """An immediate shutdown, as after a power cut: what was committed must still be there afterwards."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(20)


class Site:
    """What the faults are injected into."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="placet-faults-"))
        self.folder.chmod(0o755)
        self.postgres, self.valkey = TimedPostgres(self.folder), Valkey(self.folder)
        self.provider: RunningProvider
        self.count = 0
        self._never = threading.Event()

    def __enter__(self) -> "Site":
        self.postgres.start()
        self.valkey.start()
        owner = self.postgres.url(user=roles.OWNER, database=roles.DATABASE)
        self.database_url = self.postgres.url(user=roles.APP, database=roles.DATABASE)
        self.system_url = self.postgres.url(user=roles.SYSTEM, database=roles.DATABASE)
        roles.bootstrap(
            self.postgres.url(), owner_url=owner, app_url=self.database_url, system_url=self.system_url
        )
        self._start_provider()
        os.environ.update(self._environment())
        os.environ.pop("DATABASE_OWNER_URL", None)
        migrate = [sys.executable, "manage.py", "migrate", "--database", "owner", "--no-input", "-v", "0"]
        subprocess.run(migrate, cwd=ROOT, check=True, env=os.environ | {"DATABASE_OWNER_URL": owner})
        return self

    def __exit__(self, *_: Any) -> None:
        stop_provider(self.provider)
        self.valkey.stop()
        self.postgres.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def pause(self, seconds: float) -> None:
        """Let time pass: a lease, a settle time. What can be awaited is awaited elsewhere."""
        self._never.wait(seconds)

    def keep(self, folder: str) -> None:
        """Copy what the processes wrote, to look at after the run."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        for log in self.folder.glob("*.log"):
            shutil.copy(log, folder)

    def superuser_url(self) -> str:
        return self.postgres.url(database=roles.DATABASE)

    def start(self, name: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """A Python process of the product in a group of its own; its output lies in the folder."""
        self.count += 1
        with open(self.folder / f"{name}-{self.count}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=os.environ | environment, start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )  # fmt: skip

    def _start_provider(self) -> None:
        theirs, self.keys = self.folder / "provider-keys.json", self.folder / "keys.json"
        theirs.write_text(json.dumps({key_of(number): slug_of(number) for number in range(TENANTS)}))
        self.keys.write_text(json.dumps({slug_of(number): key_of(number) for number in range(TENANTS)}))
        self.provider = start_provider(self.folder / "provider", "--keys", str(theirs), "--orders", "0")

    def _environment(self) -> dict[str, str]:
        address = f"127.0.0.1:{self.provider.port}"
        return {
            "DATABASE_URL": self.database_url, "DATABASE_SYSTEM_URL": self.system_url, "REDIS_URL": self.valkey.url(),
            "PLACET_REFUNDS_URL": f"http://{address}", "PLACET_REFUNDS_KEYS": str(self.keys),
            "PLACET_TRUSTED_HOSTS": address, "PLACET_SECRET_KEY": "only-for-faults-" + "0123456789" * 4,
            "PLACET_BASE_URL": "http://localhost:1", "PLACET_ALLOWED_HOSTS": "localhost",
            "PLACET_DATA_DIR": str(self.folder / "data"), "PLACET_LOG_LEVEL": "INFO",
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
        }  # fmt: skip


def slug_of(number: int) -> str:
    return f"round-{number}"


def key_of(number: int) -> str:
    return f"provider-key-{number}"
