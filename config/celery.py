"""The Celery application. A message only says "look now"; what is to be done stands in PostgreSQL.

Celery's own Django support is off (`fixups=[]`): it closes the database connection before and
after every task, which costs half the throughput. What it does besides is done here: set Django
up, find the tasks, and never let a forked process share its parent's connection.
"""

import os
from typing import Any

import django
from celery import Celery, signals
from django.apps import apps
from django.db import close_old_connections, connections

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


@signals.task_prerun.connect
@signals.task_postrun.connect
def _drop_broken_connections(**_: Any) -> None:
    """As Django does around a request: keep a good connection, close one that failed or is too old."""
    close_old_connections()
