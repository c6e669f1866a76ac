"""What lay in clear from before is sealed by one command, in batches, and twice changes nothing."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections

from access.management.operator import at_the_console
from audit.models import Event
from common.content_errors import ContentErased
from common.models import ContentKey
from common.sealed import sealed_models, sealed_names
from tests.common.test_sealed import key
from tests.workflows.conftest import Desk
from tests.workflows.later import as_superuser, end_of
from tests.workflows.test_erasing import ended, erase
from workflows.actions.sealing_old import seal_old
from workflows.models import Document, Run

pytestmark = pytest.mark.django_db


def in_clear() -> int:
    """As an installation of before has it: every sealed value as plain as it reads; no keys. Returns how many."""
    count = 0
    for model in sealed_models():
        for row in list(model._base_manager.all()):
            for name in sealed_names(model):
                field, value = model._meta.get_field(name), getattr(row, name)
                if value:
                    kind = field.db_type(connections["owner"])
                    plain: Any = connection.ops.adapt_json_value(value, None) if kind == "jsonb" else value
                    sql = f"UPDATE {model._meta.db_table} SET {field.column} = %s WHERE id = %s"
                    as_superuser(sql, plain, row.pk)
                    count += 1
    as_superuser("DELETE FROM common_contentkey")
    return count


def words_in_tables(word: bytes) -> int:
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM workflows_document WHERE position(%s::bytea in content) > 0", [word]
        )
        return int(cursor.fetchone()[0])


def test_it_seals_everything_once_and_all_goes_on(desk: Desk) -> None:
    done, ready = ended(desk), desk.approved(order="2042")
    before = {row.pk: bytes(row.content) for row in Document.objects.all()}
    assert in_clear() > 8
    assert words_in_tables(b"1042") > 0
    assert seal_old(by=at_the_console(), batch=2) >= len(before)
    assert words_in_tables(b"1042") == 0
    assert {row.pk: bytes(row.content) for row in Document.objects.all()} == before
    assert seal_old(by=at_the_console()) == 0
    assert Event.objects.filter(kind="tenant.contents_sealed").exists()
    desk.work()
    assert end_of(ready)["command"] == "confirmed"
    assert erase(desk, done).left_plain == 0
    with pytest.raises(ContentErased):
        _ = Document.objects.filter(run_id=done.pk)[0].content


def test_the_walls_stand_again_afterwards(desk: Desk) -> None:
    ended(desk)
    in_clear()
    seal_old(by=at_the_console())
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'D'"
        )
        assert cursor.fetchall() == []


def test_what_an_erased_run_left_in_clear_is_removed(desk: Desk) -> None:
    run = ended(desk)
    in_clear()
    ContentKey.objects.create(
        id=run.pk, tenant_id=run.tenant_id, run_id=run.pk, wrapped=None, wrapped_with="0" * 16,
        created_at=run.created_at, erased_at=run.created_at,
    )  # fmt: skip
    assert words_in_tables(b"1042") > 0
    seal_old(by=at_the_console())
    assert words_in_tables(b"1042") == 0
    with pytest.raises(ContentErased):
        _ = Document.objects.filter(run_id=run.pk)[0].content


def test_the_command(desk: Desk) -> None:
    ended(desk)
    in_clear()
    said = []
    for _ in range(2):
        out = StringIO()
        call_command("content", "seal", stdout=out)
        said.append(out.getvalue())
    assert [text.startswith("0 rows sealed.") for text in said] == [False, True]


def test_one_key_that_does_not_open_keeps_no_other_from_being_wrapped_anew(desk: Desk, settings: Any) -> None:
    bad, good = ended(desk, "1"), ended(desk, "2")
    as_superuser("UPDATE common_contentkey SET wrapped = '\\x0102' WHERE run_id = %s", bad.pk)
    settings.PLACET_CONTENT_KEYS = key()
    with pytest.raises(CommandError, match=r"^1 keys wrapped anew.* 1 others do not open"):
        call_command("rotate_content_key", stdout=StringIO())
    assert Run.objects.get(pk=good.pk).user_message == "It was paid."
    row = ContentKey.objects.get(run_id=good.pk)
    assert row.wrapped is not None and bytes(row.wrapped)[:8].hex() == row.wrapped_with
