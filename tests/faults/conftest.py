"""The harness's own tests: a nursery and a provider for each module, and fast clocks."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["PLACET_FAULTS_PACE"] = "0.5"  # before anything imports the flows

from launch.process import die_with_parent, stop
from tests.examples.refunds.conftest import RunningProvider, start_provider, stop_provider

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProvider]:
    """The provider, whose journal the oracle reads."""
    running = start_provider(tmp_path_factory.mktemp("witness"), "--orders", "0")
    yield running
    stop_provider(running)


@pytest.fixture(scope="module")
def environment(
    django_db_setup: None, witness: RunningProvider, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """Of processes that work on the test's database under the harness's settings."""
    from tests.processes import test_environment

    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_text(json.dumps({}))
    return test_environment() | {
        "DJANGO_SETTINGS_MODULE": "tests.faults.settings", "PLACET_REFUNDS_URL": witness.url,
        "PLACET_REFUNDS_KEYS": str(keys), "PLACET_TRUSTED_HOSTS": f"127.0.0.1:{witness.port}",
        "PLACET_CALLS_AT_ONCE": "1", "PLACET_FAULTS_LEASE_S": "1", "PLACET_FAULTS_BATCH_S": "40",
        "PLACET_FAULTS_PACE": os.environ["PLACET_FAULTS_PACE"],
    }  # fmt: skip


@pytest.fixture(scope="module")
def nursery(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from tests.faults.nursery import Nursery

    log = tmp_path_factory.mktemp("nursery") / "nursery.log"

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        with open(log, "ab") as errors:
            return subprocess.Popen(
                [sys.executable, *arguments], cwd=ROOT, env=environment, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=errors, preexec_fn=die_with_parent(signal.SIGKILL),
            )  # fmt: skip

    made = Nursery(start)
    yield made
    made.kill_all()
    stop(made.process, signal.SIGTERM, grace=5)
    for pipe in (made.process.stdin, made.process.stdout):
        assert pipe is not None
        pipe.close()


@pytest.fixture
def stage_for(
    transactional_db: None, nursery: Any, witness: RunningProvider, environment: dict[str, str], settings: Any
) -> Iterator[Callable[..., Any]]:
    """``stage_for(kind, planted)``: a place for one scenario. Its processes are ended afterwards."""
    from common.clock import db_clock
    from tests.faults import flows  # noqa: F401 - makes its workflow known
    from tests.faults.stage import Stage
    from workflows import registry

    settings.PLACET_REFUNDS_URL = witness.url
    settings.PLACET_REFUNDS_KEYS = environment["PLACET_REFUNDS_KEYS"]
    settings.OUTGOING_TRUSTED_HOSTS = [f"127.0.0.1:{witness.port}"]
    registry.register_definitions(clock=db_clock)
    yield lambda kind, planted="", together=False: Stage(nursery, witness, kind, planted, together)
    nursery.kill_all()
