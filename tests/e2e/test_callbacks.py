"""Callbacks with real processes: a sweep that is killed between the request and its answer, and one that goes on."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.processes import Processes
from tests.workflows.conftest import Desk, desk
from tests.workflows.later import as_superuser
from tests.workflows.receiver import receiving
from tests.workflows.test_callbacks import ended, outcomes, register

__all__ = ["desk"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.e2e]


def eventually(check: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.1)


def test_a_sweep_that_is_killed_after_the_request_sends_it_again(
    desk: Desk, processes: Processes, settings: Any
) -> None:
    with receiving() as receiver:
        settings.OUTGOING_TOLD_HOSTS = [receiver.authority]
        processes.env["PLACET_CALLBACK_HOSTS"] = receiver.authority
        secret, _ = register(desk, receiver.url)
        ended(desk)
        processes.env["PLACET_CRASHPOINT"] = "CP7:kill"  # all of the request is written
        assert processes.sweep("--once").wait(60) == -9
        eventually(lambda: len(receiver.heard) == 1)
        assert outcomes() == [("failed", "pending", 1)]

        del processes.env["PLACET_CRASHPOINT"]
        as_superuser(
            "UPDATE workflows_callbackcall SET due_at = now(), claimed_until = now()"
        )  # the lease is over
        processes.sweep("--every", "0.2")
        eventually(lambda: outcomes() == [("failed", "delivered", 2)])
        assert len({heard.id for heard in receiver.heard}) == 1
        assert all(heard.signed_with(secret) for heard in receiver.heard)
