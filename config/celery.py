"""The Celery application. A message only says "look now"; what is to be done stands in PostgreSQL.

Celery's own Django support is off (`fixups=[]`): it closes the database connection before and
after every task, which costs half the throughput. What it does besides is done here: set Django
up, find the tasks, and never let a forked process share its parent's connection. And a worker that
is told to stop tells the processes that execute.
"""

import os
import signal
from typing import Any

import django
from celery import Celery, signals
from django.apps import apps
from django.db import close_old_connections, connections

from common import stopping
from common.away import drop_failed_connection

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("placet", fixups=[])
app.set_default()  # for every thread: the doorbell has one of its own, where "current" would be Celery's own default
app.config_from_object("django.conf:settings", namespace="CELERY")


def _task_packages() -> list[str]:
    """The installed apps; called when a worker or beat imports its tasks, so Django is set up here."""
    if not apps.ready:
        django.setup()
    return [config.name for config in apps.get_app_configs()]


app.autodiscover_tasks(_task_packages)


@signals.worker_before_create_process.connect
def _close_before_fork(**_: Any) -> None:
    """Two processes on one socket would read each other's answers."""
    connections.close_all()


_usual: list[Any] = []
"""In a process that a worker has forked: what SIGTERM means between two tasks."""


@signals.task_prerun.connect
def _begin_task(**_: Any) -> None:
    """As Django does before a request: keep a good connection, close one that is too old."""
    stopping.go_on()
    if _usual:
        _usual[0] = signal.signal(signal.SIGTERM, lambda *_: stopping.stop_alone())
    close_old_connections()


@signals.task_postrun.connect
def _end_task(**_: Any) -> None:
    """What was wrong with a connection may be over for the next one."""
    drop_failed_connection()
    close_old_connections()
    if _usual:
        signal.signal(signal.SIGTERM, _usual[0])


@signals.worker_shutting_down.connect
def _begin_nothing_more(**_: Any) -> None:
    """Sent in the worker's parent, which then waits for its children: they read the flag between two commands."""
    stopping.stop()


@signals.worker_process_init.connect
def _outlive_the_signal(**_: Any) -> None:
    """Who ends a whole group of processes (systemd, for one) sends SIGTERM to the children too, where it would end
    them in the middle of a call. During a task they finish what is in flight, and are ended by their parent. The
    hard time limit does not depend on this signal: SIGKILL follows it at once.
    """
    _usual[:] = [signal.SIG_DFL]
