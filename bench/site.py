"""The product on engines of its own, durable as in production, in a folder that is removed afterwards."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from launch import roles
from launch.postgres import Postgres
from launch.process import die_with_parent, stop
from launch.valkey import Valkey
from tests.processes import free_port

ROOT = Path(__file__).resolve().parent.parent


class Site:
    """Engines, sink and, when asked for, web server, workers and sweep."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="placet-bench-"))
        self.folder.chmod(0o755)
        self.postgres, self.valkey = Postgres(self.folder), Valkey(self.folder)
        self.running: list[subprocess.Popen[bytes]] = []
        self.web_port, self.sink_port = free_port(), free_port()

    def __enter__(self) -> "Site":
        self.postgres.start()
        self.valkey.start()
        owner = self.postgres.url(user=roles.OWNER, database=roles.DATABASE)
        self.database_url = self.postgres.url(user=roles.APP, database=roles.DATABASE)
        roles.bootstrap(self.postgres.url(), owner_url=owner, app_url=self.database_url)
        os.environ.update(self._environment())
        migrate = [sys.executable, "manage.py", "migrate", "--database", "owner", "--no-input", "-v", "0"]
        subprocess.run(migrate, cwd=ROOT, check=True, env=os.environ | {"DATABASE_OWNER_URL": owner})
        self.start("-m", "bench.sink", str(self.sink_port))
        return self

    def __exit__(self, *_: Any) -> None:
        for process in reversed(self.running):
            stop(process, 15, grace=5)
        self.valkey.stop()
        self.postgres.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        sink = f"127.0.0.1:{self.sink_port}"
        return {
            "DATABASE_URL": self.database_url, "REDIS_URL": self.valkey.url(), "BENCH_SINK": f"http://{sink}",
            "PLACET_TRUSTED_HOSTS": sink, "PLACET_SECRET_KEY": "only-for-benchmarks-" + "0123456789" * 4,
            "PLACET_BASE_URL": f"http://localhost:{self.web_port}", "PLACET_ALLOWED_HOSTS": "localhost,127.0.0.1",
            "PLACET_DATA_DIR": str(self.folder / "data"), "PLACET_LOG_LEVEL": "WARNING",
            "DJANGO_SETTINGS_MODULE": "bench.settings",
        }  # fmt: skip

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{len(self.running)}.log", "ab") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=die_with_parent(15),
            )  # fmt: skip
        self.running.append(process)
        return process

    def start_web(self) -> None:
        bind = f"127.0.0.1:{self.web_port}"
        self.start("-m", "gunicorn", "config.wsgi", "--bind", bind, "--worker-class", "gthread", "--workers", "2",
                   "--threads", "8", "--no-control-socket")  # fmt: skip

    def start_worker(self) -> subprocess.Popen[bytes]:
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "WARNING")
        return self.start("-m", "celery", "-A", "config", "worker", "-c", "1", *quiet)
