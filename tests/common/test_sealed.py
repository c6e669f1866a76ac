"""Columns that lie encrypted: what the database holds, what opens, and what no longer does."""

import os
from base64 import b64encode
from uuid import UUID

import pytest
from django.db import connection, transaction

from common import content_keys
from common.content_errors import ERASED_TEXT, ContentErased
from common.content_keys import KeyUnknown, SealBroken
from common.ids import new_id
from common.models import ContentKey, Tenant
from common.sealed import prefetch_keys, sealed_models, sealed_names
from tests import rows
from workflows.models import Document, Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    tenant = rows.tenant_row()
    tenant.save()
    run = rows.run_row(tenant)
    run.save()
    return run


def raw(table: str, column: str, pk: UUID) -> bytes:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column} FROM {table} WHERE id = %s", [pk])
        return bytes(cursor.fetchone()[0])


def stored(run: Run, content: bytes = b'{"name":"Jane Roe"}') -> Document:
    document = rows.document_row(run, content=content)
    document.save()
    return document


def test_the_database_holds_no_plain_byte_and_the_row_reads_it(run):
    document = stored(run)
    assert b"Jane" not in raw("workflows_document", "content", document.pk)
    assert Document.objects.get(pk=document.pk).content == b'{"name":"Jane Roe"}'


def test_the_same_content_looks_different_each_time(run):
    one, other = stored(run), stored(run)
    first, second = (raw("workflows_document", "content", row.pk) for row in (one, other))
    assert first != second


def test_one_key_for_each_run(run):
    stored(run)
    stored(run)
    assert ContentKey.objects.filter(run_id=run.pk).count() == 1


def copied(document: Document, content: bytes) -> Document:
    """A row beside it, written by SQL with these very bytes."""
    copy = new_id()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO workflows_document (id, tenant_id, run_id, kind, content, digest, created_at)"
            " SELECT %s, tenant_id, run_id, kind, %s, digest, created_at FROM workflows_document WHERE id = %s",
            [copy, content, document.pk],
        )
    return Document.objects.get(pk=copy)


def test_ciphertext_of_another_row_does_not_open(run):
    document = stored(run)
    with pytest.raises(SealBroken):
        _ = copied(document, raw("workflows_document", "content", document.pk)).content


def test_what_was_stored_before_is_read_as_it_is(run):
    assert copied(stored(run), b'{"old":1}').content == b'{"old":1}'


def test_without_its_key_nothing_opens(run):
    document = stored(run)
    ContentKey.objects.filter(run_id=run.pk).update(wrapped=None, erased_at=rows.now())
    with pytest.raises(ContentErased):
        _ = Document.objects.get(pk=document.pk).content
    with pytest.raises(ContentErased):
        stored(run)


def test_an_erased_text_says_so(run):
    run.cancel_reason = "Jane Roe asked for it."
    run.save()
    ContentKey.objects.filter(run_id=run.pk).update(wrapped=None, erased_at=rows.now())
    assert Run.objects.get(pk=run.pk).cancel_reason == ERASED_TEXT


def test_no_key_comes_back(run):
    stored(run)
    keys = ContentKey.objects.filter(run_id=run.pk)
    before = keys.get()
    keys.update(wrapped=None, erased_at=rows.now())
    for change in ({"wrapped": before.wrapped}, {"wrapped": before.wrapped, "erased_at": None}):
        with pytest.raises(Exception, match="common_contentkey"), transaction.atomic():
            keys.update(**change)
    with pytest.raises(Exception, match="frozen"), transaction.atomic():
        keys.delete()


def test_plain_values_cannot_be_written_past_the_seal(run):
    document = stored(run)
    with pytest.raises(TypeError, match="sealed"):
        Document.objects.filter(pk=document.pk).update(content=b"plain")


def test_saving_a_row_again_keeps_its_bytes(run):
    document = stored(run)
    before = raw("workflows_document", "content", document.pk)
    again = Document.objects.get(pk=document.pk)
    _ = again.content
    again.save()
    again.refresh_from_db()
    again.save()
    assert raw("workflows_document", "content", document.pk) == before


def test_keys_of_many_rows_are_read_at_once(run, django_assert_num_queries):
    others = []
    for _ in range(3):
        other = rows.run_row(Tenant.objects.get(pk=run.tenant_id))
        other.save()
        others.append(stored(other))
    found = list(Document.objects.filter(pk__in=[row.pk for row in others]))
    with django_assert_num_queries(1):
        prefetch_keys(found)
        assert all(row.content for row in found)


def key() -> str:
    return b64encode(os.urandom(32)).decode()


def test_a_new_wrapping_key_touches_no_content(run, settings):
    old, new = key(), key()
    settings.PLACET_CONTENT_KEYS = old
    document = stored(run)
    before = raw("workflows_document", "content", document.pk)
    settings.PLACET_CONTENT_KEYS = f"{new},{old}"
    found = ContentKey.objects.get(run_id=run.pk)
    found.wrapped = content_keys.rewrapped(run.tenant_id, run.pk, bytes(found.wrapped))
    found.save()
    settings.PLACET_CONTENT_KEYS = new
    assert Document.objects.get(pk=document.pk).content == b'{"name":"Jane Roe"}'
    assert raw("workflows_document", "content", document.pk) == before


def test_without_the_wrapping_key_it_is_said_and_nothing_is_guessed(run, settings):
    settings.PLACET_CONTENT_KEYS = key()
    document = stored(run)
    settings.PLACET_CONTENT_KEYS = key()
    with pytest.raises(KeyUnknown):
        _ = Document.objects.get(pk=document.pk).content


def test_every_sealed_model_names_its_run():
    models = sealed_models()
    assert {model.__name__ for model in models} == {
        "Answer", "Attestation", "Decision", "Document", "Evidence", "Incident", "IncidentNote", "IncidentRun",
        "Proposal", "Question", "Rejection",
        "RepairMove", "Replay", "Run", "Sample", "Step",
    }  # fmt: skip
    assert all(sealed_names(model) for model in models)
