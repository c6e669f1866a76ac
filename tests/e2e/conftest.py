"""The fleet of the process tests, on the refunds example."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from access.enums import Role
from common.clock import db_clock
from tests.e2e.fleet import Fleet
from tests.examples.refunds.conftest import KEY, start_provider, stop_provider
from tests.factories import make_group, make_tenant, make_user
from tests.processes import Processes
from workflows import registry


@pytest.fixture
def fleet(processes: Processes, tmp_path: Path, settings: Any) -> Iterator[Fleet]:
    """A provider that knows no keys (a provider that does would hide most faults), and a tenant with a reviewer."""
    registry.register_definitions(clock=db_clock)
    provider = start_provider(tmp_path / "orders")
    provider.switch("lookup_only")
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"demo": KEY}))
    settings.PLACET_REFUNDS_URL, settings.PLACET_REFUNDS_KEYS = provider.url, str(keys)
    settings.OUTGOING_TRUSTED_HOSTS = [f"127.0.0.1:{provider.port}"]
    processes.env |= {"PLACET_REFUNDS_URL": provider.url, "PLACET_REFUNDS_KEYS": str(keys)}
    tenant = make_tenant("demo")
    groups = [make_group(tenant, name) for name in ("Refund desk", "Finance")]
    yield Fleet(tenant, make_user(tenant, "rita", roles=[Role.REVIEWER], groups=groups), provider, processes)
    stop_provider(provider)
