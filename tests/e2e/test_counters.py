"""Two web processes count together: whichever of them is asked tells of all requests."""

import http.client
import re
import signal
import sys
from pathlib import Path

import pytest

from launch.process import stop
from tests.e2e.fleet import eventually
from tests.processes import Processes, free_port

pytestmark = pytest.mark.django_db
COUNTED = re.compile(
    r'^placet_requests_total\{method="GET",route="healthz",status="200"\} (\S+)$', re.MULTILINE
)


def get(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def answers(port: int) -> bool:
    try:
        return bool(get(port, "/healthz"))
    except OSError:
        return False


def test_whoever_is_asked_has_counted_all(processes: Processes, tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    processes.env["TMPDIR"] = str(folder)
    port = free_port()
    options = (
        "--preload",
        "--no-control-socket",
        "--worker-class",
        "gthread",
        "--workers",
        "2",
        "--threads",
        "2",
    )
    command = (sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}", *options)
    web = processes.start("web", *command)
    eventually(lambda: answers(port), seconds=90, what=lambda: processes.log("web")[-2000:])
    before = float(COUNTED.findall(get(port, "/metrics"))[0])
    for _ in range(20):
        get(port, "/healthz")
    told = {COUNTED.findall(get(port, "/metrics"))[0] for _ in range(10)}
    assert told == {f"{before + 20}"}
    assert len(list(folder.glob("placet-counters-*/counter_*.db"))) >= 2, "of two processes"
    stop(web, signal.SIGTERM, grace=20)
    assert not list(folder.glob("placet-counters-*")), "nothing is left of it"
