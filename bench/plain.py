"""The bare loop behind the same parts that the product stands on: a Django view approves, a Celery task executes.

No sign-in, no check, no lock, no event: one UPDATE in the view, and the task is `bench.bare`'s own loop, two commits a
row. What is slower than this is the product's doing; what this is slower than the bare loop is what a web server and a
broker between cost. The application is ``bench.plain:application``, the workers' ``celery -A bench.plain``.
"""

import os
import uuid
from typing import Any

import django
import psycopg
from celery import Celery
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path
from environ import Env

from bench.bare import CLAIM, RECORD, call, provider_at

QUEUE = "bench-plain"
_APPROVE = "UPDATE bench_bare SET state = 'ready', due_at = clock_timestamp() WHERE id = %s"


def _configure() -> None:
    database = Env.db_url_config(os.environ["BENCH_PLAIN_URL"]) | {"CONN_MAX_AGE": None}
    settings.configure(
        SECRET_KEY="plain",
        ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, DATABASES={"default": database},
    )  # fmt: skip
    django.setup()


app = Celery("plain", broker=os.environ.get("REDIS_URL"), fixups=[])
app.conf.task_default_queue = QUEUE
_mine: list[Any] = []


@app.task(name="bench.plain.work", ignore_result=True)  # type: ignore[untyped-decorator]
def work() -> None:
    """Until nothing is ready. Each process has its own connections, made at its first task."""
    if not _mine:
        address = os.environ["BENCH_PLAIN_URL"]
        _mine[:] = [
            psycopg.connect(address, autocommit=True),
            provider_at(int(os.environ["BENCH_PLAIN_SINK"])),
        ]
    database, provider = _mine
    while rows := [row for (row,) in database.execute(CLAIM, [1])]:
        for row in rows:
            call(provider, row)
        database.execute(RECORD, [rows])


def approve(request: HttpRequest, row: uuid.UUID) -> HttpResponse:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_APPROVE, [row])
        transaction.on_commit(work.delay)
    return HttpResponse(status=204)


urlpatterns = [path("approve/<uuid:row>", approve)]
if "BENCH_PLAIN_URL" in os.environ:
    _configure()
application = WSGIHandler() if settings.configured else None
