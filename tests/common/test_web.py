"""A view that reads cannot write."""

from typing import Any

import pytest
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.template import engines
from django.template.response import SimpleTemplateResponse
from django.test import RequestFactory
from django.utils.functional import SimpleLazyObject

from common.models import Tenant
from common.web import WriteInRead, http_methods, is_read

READS = [
    "SELECT 1", "  select 1", "\n\tSELECT 1", "(SELECT 1) UNION (SELECT 2)", "SELECT 1 FOR UPDATE SKIP LOCKED",
    "WITH x AS (SELECT 1) SELECT * FROM x", "WITH x AS (SELECT 1 FOR UPDATE) SELECT * FROM x",
    "WITH x AS (SELECT 1 FOR NO KEY UPDATE) SELECT updated FROM x", "VALUES (1)", "SHOW work_mem",
    "SAVEPOINT s1", "RELEASE SAVEPOINT s1", "ROLLBACK TO SAVEPOINT s1", "SET TRANSACTION READ ONLY",
]  # fmt: skip
WRITES = [
    "INSERT INTO x VALUES (1)", "UPDATE x SET a = 1", "DELETE FROM x", "TRUNCATE x", "DROP TABLE x",
    "COPY x FROM stdin",
    "WITH x AS (INSERT INTO y VALUES (1) RETURNING *) SELECT * FROM x", "WITH x AS (SELECT 1) UPDATE y SET a = 1",
    "WITH x AS (SELECT 1) DELETE  FROM y", "MERGE INTO x USING y ON true WHEN MATCHED THEN DELETE", "CALL p()",
    "DO $$ BEGIN END $$", "CREATE TABLE x ()", "LOCK TABLE x", "", "-- SELECT\nINSERT INTO x VALUES (1)", "SELECTED",
]  # fmt: skip


@pytest.mark.parametrize("sql", READS)
def test_what_reads(sql: str) -> None:
    assert is_read(sql)


@pytest.mark.parametrize("sql", WRITES)
def test_what_writes_or_is_not_known(sql: str) -> None:
    assert not is_read(sql)


def write(_: Any = None) -> HttpResponse:
    Tenant.objects.create(slug="x", name="X")
    return HttpResponse("written")


@http_methods(read=("GET", "HEAD"), write=("POST",))
def both(request: HttpRequest) -> HttpResponse:
    return write()


@http_methods()
def reads(request: HttpRequest) -> HttpResponse:
    with transaction.atomic(), transaction.atomic():
        return HttpResponse(str(Tenant.objects.select_for_update().count()))


@http_methods()
def renders(request: HttpRequest) -> SimpleTemplateResponse:
    template = engines["django"].from_string("{{ value }}")
    return SimpleTemplateResponse(template, {"value": SimpleLazyObject(write)})


requests = RequestFactory()


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_write_in_a_read_is_stopped(method: str) -> None:
    with pytest.raises(WriteInRead, match="INSERT INTO"):
        both(requests.generic(method, "/"))
    assert not Tenant.objects.exists()


@pytest.mark.django_db
def test_the_writing_method_writes_and_the_guard_is_gone_after_a_read() -> None:
    with pytest.raises(WriteInRead):
        both(requests.get("/"))
    assert both(requests.post("/")).content == b"written"
    assert reads(requests.get("/")).content == b"1"
    assert connection.execute_wrappers == []


@pytest.mark.django_db
def test_rendering_is_part_of_the_read() -> None:
    with pytest.raises(WriteInRead):
        renders(requests.get("/"))


def test_other_methods_are_not_allowed() -> None:
    answer = both(requests.put("/"))
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD, POST")
    assert reads(requests.post("/")).status_code == 405
