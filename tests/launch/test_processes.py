"""The harness's real processes and its browser."""

import time
import urllib.request

from playwright.sync_api import ConsoleMessage, Page
from pytest_django.live_server_helper import LiveServer

from config.celery import app
from tests.processes import Processes


def wait_for(processes: Processes, name: str, text: str, *, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while text not in processes.log(name):
        assert time.monotonic() < end, processes.log(name)
        time.sleep(0.1)


def test_worker_takes_messages_of_this_test_only(processes: Processes) -> None:
    app.send_task("from.an.earlier.test")
    worker = processes.worker()
    wait_for(processes, "worker", " ready.")
    app.send_task("of.this.test")
    wait_for(processes, "worker", "of.this.test")
    assert "from.an.earlier.test" not in processes.log("worker")
    processes.kill(worker)
    assert worker.returncode == -9


def test_sweep_runs_on_the_tests_database(processes: Processes) -> None:
    sweep = processes.sweep()
    time.sleep(3)
    assert sweep.poll() is None, processes.log("sweep")
    assert "rror" not in processes.log("sweep")


def test_provider_answers(processes: Processes) -> None:
    address = processes.provider()
    with urllib.request.urlopen(f"{address}/healthz", timeout=5) as response:
        assert response.status == 200


def test_browser_shows_a_page_with_its_static_files(page: Page, live_server: LiveServer) -> None:
    complaints: list[str] = []
    failed: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    page.on("console", note)
    page.on("response", lambda response: failed.append(response.url) if response.status >= 400 else None)
    answer = page.goto(f"{live_server.url}/sign-in/")
    assert answer is not None
    assert answer.status == 200
    assert page.evaluate("document.styleSheets.length") > 0
    assert (complaints, failed) == ([], [])
