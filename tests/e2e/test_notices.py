"""Telling by a real sweep process: killed between handing a mail over and storing that, and without a mail server."""

import signal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from access.models import User
from audit.sealer import seal
from common.clock import db_clock
from notify.models import Dispatch, Notice
from tests.notify.letterbox import letterbox
from tests.processes import Processes
from tests.workflows.conftest import Desk, desk

__all__ = ["desk"]
pytestmark = pytest.mark.django_db


def swept(processes: Processes) -> int:
    return processes.sweep("--once").wait(timeout=120)


def lease_over() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE notify_dispatch SET due_at = now(), claimed_until = now() WHERE status = 'pending'"
        )


def test_a_sweep_that_is_killed_after_a_mail_left_sends_it_once_more_under_the_same_id(
    desk: Desk, processes: Processes
) -> None:
    User.objects.filter(pk=desk.ada.pk).update(email="ada@post.example")
    with letterbox() as box:
        processes.env["PLACET_MAIL_URL"] = f"smtp://127.0.0.1:{box.port}"
        desk.proposed()
        seal(db_clock)
        processes.env["PLACET_CRASHPOINT"] = "CP16:kill"
        assert swept(processes) == -signal.SIGKILL
        assert len(box.taken) == 1
        assert list(Dispatch.objects.values_list("status", "tries")) == [("pending", 1)]
        del processes.env["PLACET_CRASHPOINT"]
        assert swept(processes) == 0
        assert len(box.taken) == 1, "the lease is not over"
        lease_over()
        assert swept(processes) == 0
        assert len(box.taken) == 2
        assert len(set(box.ids)) == 1
        assert list(Dispatch.objects.values_list("status", "tries")) == [("delivered", 2)]


def test_without_a_mail_server_mails_are_files_and_notices_are_there(
    desk: Desk, processes: Processes, tmp_path: Any
) -> None:
    User.objects.filter(pk=desk.ada.pk).update(email="ada@post.example")
    processes.env["PLACET_DATA_DIR"] = str(tmp_path / "data")
    (tmp_path / "data").mkdir()
    desk.proposed()
    swept(processes)
    swept(processes)
    [letter] = Path(tmp_path / "data" / "mail").iterdir()
    assert "Pay EUR 10.00 for order" in letter.read_text()
    assert Notice.objects.count() == 2
