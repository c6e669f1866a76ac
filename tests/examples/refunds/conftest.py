"""The provider as a real process on a free port, and calls to it that the product never makes."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.examples.refunds.shop import Shop

ROOT = Path(__file__).resolve().parents[3]
KEY = "demo-provider-key"


@dataclass
class Seen:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


@dataclass
class RunningProvider:
    """A provider that was started, and calls to it. Each call has a connection of its own."""

    process: subprocess.Popen[str]
    port: int
    used: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(self, method: str, path: str, body: Any = None, *, key: str = KEY, **headers: str) -> Seen:
        sent = {"Authorization": f"Bearer {key}"} | {
            name.replace("_", "-"): text for name, text in headers.items()
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request(method, path, body if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return Seen(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def refund(
        self, order: str, amount: str, idempotency: str, *, currency: str = "EUR", **more: str
    ) -> Seen:
        body = {"order": order, "amount": amount, "currency": currency, "reason": "damaged"}
        return self.call("POST", "/refunds", body, Idempotency_Key=idempotency, **more)

    def switch(self, mode: str = "dedup", *rules: dict[str, Any], **more: Any) -> None:
        seen = self.call("PUT", "/_admin/switches", {"mode": mode, "rules": list(rules), **more})
        assert seen.status == 200, seen.raw

    def deliveries(self, idempotency: str) -> tuple[int, int]:
        found = self.call("GET", f"/_admin/deliveries?key={idempotency}").json
        return found["arrivals"], found["effects"]

    def new_order(self, paid: str = "100.00", **more: Any) -> str:
        """A fresh order of this test, so that tests do not meet in one order."""
        number = f"t{len(self.used)}"
        self.used.append(number)
        order = {"id": number, "customer": "c-1", "currency": "EUR", "paid": paid} | more
        assert self.call("POST", "/_admin/orders", order).status == 201
        return number


def start_provider(folder: Path, *arguments: str) -> RunningProvider:
    command = [
        sys.executable,
        "-m",
        "examples.refunds.provider",
        "--data",
        str(folder),
        "--port",
        "0",
        *arguments,
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    return RunningProvider(process, int(line.rsplit(":", 1)[1]))


def stop_provider(provider: RunningProvider) -> int:
    provider.process.terminate()
    with provider.process:
        return provider.process.wait(10)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProvider]:
    provider = start_provider(tmp_path_factory.mktemp("provider"))
    yield provider
    assert stop_provider(provider) == 0


@pytest.fixture
def provider(running: RunningProvider) -> Iterator[RunningProvider]:
    yield running
    running.call("DELETE", "/_admin/switches")


@pytest.fixture
def shop(transactional_db: None, provider: RunningProvider, tmp_path: Path, settings: Any) -> "Shop":
    """Two tenants with people and keys, before the real provider."""
    # shop.py imports this module for its provider, and models, which can be imported once Django is set up
    from common.clock import db_clock
    from tests.examples.refunds.shop import Shop
    from workflows import registry

    made = Shop(provider, tmp_path / "keys.json", settings)
    made.open()
    registry.register_definitions(clock=db_clock)
    return made
