"""Statements that are sent together are the same as one after another, with their errors and their order."""

import pytest
from django.db import DataError, IntegrityError, connection, transaction

from common.models import Tenant
from common.pipelined import Question, ask, pipeline, rows_of, then
from common.prepared import Reading, cursor
from tests.factories import make_tenant

pytestmark = pytest.mark.django_db
ONE = Reading(Tenant, "WHERE r.slug = %s", only=("slug",))


def number(sql: str, *parameters: object) -> Question[int]:
    return Question(sql, parameters, lambda rows: rows[0][0])


def test_answers_come_in_the_order_of_the_questions() -> None:
    make_tenant("quay")
    names = then(rows_of(ONE, "quay"), lambda rows: [row.slug for row in rows])
    for _ in range(5):  # the first ones are not prepared, the others are
        assert ask(number("SELECT %s::int + 1", 1), names, number("SELECT %s::int + 1", 2)) == [
            2,
            ["quay"],
            3,
        ]


def test_a_later_statement_sees_what_an_earlier_one_did() -> None:
    tenant = make_tenant("quay")
    rename = Question("UPDATE common_tenant SET name = 'new' WHERE id = %s RETURNING id", [tenant.pk], len)
    assert ask(rename, number("SELECT count(*) FROM common_tenant WHERE name = 'new'")) == [1, 1]


def test_what_was_sent_is_counted_when_the_block_is_left() -> None:
    make_tenant("quay")
    with cursor() as first, cursor() as second:
        with pipeline():
            first.execute("UPDATE common_tenant SET name = 'a'")
            second.execute("UPDATE common_tenant SET name = 'b' WHERE name = 'c'")
        assert (first.rowcount, second.rowcount) == (Tenant.objects.count(), 0)


def test_an_error_is_the_frameworks_and_undoes_the_transaction() -> None:
    make_tenant("quay")
    rename = Question("UPDATE common_tenant SET name = 'new' RETURNING id", [], len)
    for _ in range(4):
        with pytest.raises(DataError), transaction.atomic():
            ask(rename, number("SELECT 1 / %s::int", 0), number("SELECT 1"))
        assert not Tenant.objects.filter(name="new").exists()
        assert ask(number("SELECT 7")) == [7]


def test_a_constraint_says_its_name() -> None:
    make_tenant("quay")
    twice = "INSERT INTO common_tenant (id, slug, name) VALUES (gen_random_uuid(), 'quay', 'x') RETURNING 1"
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        ask(number(twice))
    assert caught.value.__cause__.diag.constraint_name == "common_tenant_slug_key"  # type: ignore[union-attr]


def test_statements_are_seen_by_hooks_as_ever(django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    seen: list[str] = []

    def hook(execute, sql, parameters, many, context):  # type: ignore[no-untyped-def]
        seen.append(sql)
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(hook), django_assert_num_queries(2):
        ask(number("SELECT 1"), number("SELECT 2"))
    assert seen == ["SELECT 1", "SELECT 2"]
