"""The product on engines of its own, durable as in production, in a folder that is removed afterwards."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import redis

from launch import roles
from launch.postgres import Postgres
from launch.process import die_with_parent, stop
from launch.up import QUIET
from launch.valkey import Valkey

ROOT = Path(__file__).resolve().parent.parent
WEB_PROCESSES = 2
_PATIENCE_S = 120


class Site:
    """Engines, sink and, when asked for, web server, workers and sweep."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="placet-bench-"))
        self.folder.chmod(0o755)
        self.postgres, self.valkey = Postgres(self.folder), Valkey(self.folder)
        self.running: list[subprocess.Popen[bytes]] = []
        self.web_port, self.sink_port = free_port(), free_port()
        self.web: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Site":
        try:
            self._start_engines()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        for process in reversed(self.running):
            stop(process, 15, grace=5)
        self.valkey.stop()
        self.postgres.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.postgres.base != self.folder:
            shutil.rmtree(self.postgres.base, ignore_errors=True)

    def _start_engines(self) -> None:
        self.postgres.start()
        self.valkey.start()
        owner = self.postgres.url(user=roles.OWNER, database=roles.DATABASE)
        self.database_url = self.postgres.url(user=roles.APP, database=roles.DATABASE)
        self.system_url = self.postgres.url(user=roles.SYSTEM, database=roles.DATABASE)
        roles.bootstrap(
            self.postgres.url(), owner_url=owner, app_url=self.database_url, system_url=self.system_url
        )
        os.environ.pop("DATABASE_OWNER_URL", None)
        os.environ.update(self._environment())
        migrate = [sys.executable, "manage.py", "migrate", "--database", "owner", "--no-input", "-v", "0"]
        subprocess.run(migrate, cwd=ROOT, check=True, env=os.environ | {"DATABASE_OWNER_URL": owner})
        self.start("-m", "bench.sink", str(self.sink_port))
        wait_until(lambda: _answers(f"http://127.0.0.1:{self.sink_port}/arrivals"), "the sink answers")

    def _environment(self) -> dict[str, str]:
        sink = f"127.0.0.1:{self.sink_port}"
        return {
            "DATABASE_URL": self.database_url, "DATABASE_SYSTEM_URL": self.system_url,
            "REDIS_URL": self.valkey.url(), "BENCH_SINK": f"http://{sink}",
            "PLACET_TRUSTED_HOSTS": sink, "PLACET_SECRET_KEY": "only-for-benchmarks-" + "0123456789" * 4,
            "PLACET_BASE_URL": f"http://localhost:{self.web_port}", "PLACET_ALLOWED_HOSTS": "localhost,127.0.0.1",
            "PLACET_DATA_DIR": str(self.folder / "data"), "PLACET_LOG_LEVEL": "WARNING",
            "DJANGO_SETTINGS_MODULE": "bench.settings",
        }  # fmt: skip

    @property
    def superuser_url(self) -> str:
        """For seeding: no trigger and no foreign key is looked at."""
        return self.postgres.url(database=roles.DATABASE, options="-c session_replication_role=replica")

    # -- processes --------------------------------------------------------------------------------------------

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{len(self.running)}.log", "ab") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=die_with_parent(15),
            )  # fmt: skip
        self.running.append(process)
        return process

    def logs(self) -> str:
        """The end of what each process has written."""
        return "\n".join(
            path.read_text(errors="replace")[-2000:] for path in sorted(self.folder.glob("*.log"))
        )

    def start_web(self) -> None:
        """Once: two web processes, started as `./placet up` starts them."""
        if self.web is not None:
            return
        bind = f"127.0.0.1:{self.web_port}"
        self.web = self.start(
            "-m", "gunicorn", "config.wsgi", "--bind", bind, "--preload", "--worker-class", "gthread",
            "--workers", str(WEB_PROCESSES), "--threads", "8", "--no-control-socket",
        )  # fmt: skip
        wait_until(lambda: _answers(f"http://127.0.0.1:{self.web_port}/healthz"), "the web server answers")

    def restart_web(self) -> subprocess.Popen[bytes]:
        """New web processes, which have served nothing yet."""
        stop(self.web, 15, grace=10)
        self.web = None
        self.start_web()
        assert self.web is not None
        return self.web

    def start_workers(self, processes: int) -> subprocess.Popen[bytes]:
        """One Celery worker with so many processes; returns when it waits for messages."""
        options = ("-c", str(processes), *QUIET, "-l", "WARNING")
        worker = self.start("-m", "celery", "-A", "config", "worker", *options)
        wait_until(self.waits_for_messages, "the worker waits for messages")
        return worker

    def waits_for_messages(self) -> bool:
        with self.broker() as broker:
            return int(broker.info("clients")["blocked_clients"]) > 0

    def broker(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.valkey.socket))

    # -- the sink ---------------------------------------------------------------------------------------------

    def arrivals(self) -> dict[str, list[float]]:
        """When each key came to the sink."""
        return self._ask_sink("GET", "/arrivals")  # type: ignore[no-any-return]

    def arrival(self, key: str) -> float:
        """When this key came first; waits until it does."""
        return float(self._ask_sink("GET", f"/arrivals/{key}")[0])

    def forget_arrivals(self) -> None:
        self._ask_sink("DELETE", "/arrivals")

    def _ask_sink(self, method: str, path: str) -> Any:
        sink = http.client.HTTPConnection("127.0.0.1", self.sink_port, timeout=_PATIENCE_S)
        try:
            sink.request(method, path)
            return json.loads(sink.getresponse().read())
        except TimeoutError:
            raise SystemExit(f"{path} did not come to the sink.\n{self.logs()}") from None
        finally:
            sink.close()


def wait_until(true: Callable[[], bool], what: str, *, every: float = 0.02) -> None:
    """Raises SystemExit when it does not come true within two minutes."""
    end = time.monotonic() + _PATIENCE_S
    while not true():
        if time.monotonic() > end:
            raise SystemExit(f"In vain waited until {what}.")
        time.sleep(every)


def _answers(url: str) -> bool:
    try:
        urlopen(url, timeout=2).close()
    except HTTPError:
        return True
    except OSError:
        return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
