"""Who lacks a key that contents lie under is named by doctor and by /readyz, and so is a key that is none."""

from base64 import b64encode
from typing import Any

import pytest
from django.test import Client

from common.content_keys import known_names
from common.heartbeat import Pulse
from common.ids import new_id
from common.models import ContentKey
from common.sealed import key_for
from config import observed
from tests import rows
from tests.common.test_sealed import key
from tests.config.examined import says
from tests.workflows.later import as_superuser

pytestmark = pytest.mark.django_db


def sealed_run() -> None:
    tenant = rows.tenant_row()
    tenant.save()
    run = rows.run_row(tenant)
    run.save()
    key_for(run)


def readyz(client: Client) -> tuple[int, str]:
    answer = client.get("/readyz")
    return answer.status_code, answer.json()["content_keys"]


def test_all_is_well(client: Client) -> None:
    sealed_run()
    assert Pulse().beat("worker", [])
    assert observed.signs()[0].keys == tuple(known_names())
    assert readyz(client) == (200, "ok")
    says("content_keys", "warning", "derived from the secret key")


def test_a_worker_without_the_key_is_named(client: Client, settings: Any) -> None:
    Pulse().beat("worker", [])
    settings.PLACET_CONTENT_KEYS = key()
    sealed_run()
    assert readyz(client) == (200, "missing")
    (name,) = observed.wrapped_with()
    finding = says("content_keys", "problem", f"worker {observed.signs()[0].name}: {name}")
    assert "PLACET_CONTENT_KEYS" in finding.do
    Pulse().beat("worker", [])
    assert readyz(client) == (200, "ok")


def test_this_process_without_the_key_is_named(client: Client, settings: Any) -> None:
    settings.PLACET_CONTENT_KEYS = key()
    sealed_run()
    settings.PLACET_CONTENT_KEYS = ""
    assert readyz(client) == (200, "missing")
    says("content_keys", "problem", "this one: ")


@pytest.mark.parametrize("given", ["not-base64!", b64encode(b"short").decode()])
def test_what_is_no_key_is_said(client: Client, settings: Any, given: str) -> None:
    settings.PLACET_CONTENT_KEYS = given
    assert readyz(client) == (503, "unreadable")
    says("content_keys", "problem", "a content key is none")


def test_a_file_that_is_not_there_is_said(client: Client, settings: Any, tmp_path: Any) -> None:
    settings.PLACET_CONTENT_KEYS_FILE = str(tmp_path / "content.keys")
    assert readyz(client) == (503, "unreadable")
    says("content_keys", "problem", "a content key is none")


@pytest.mark.parametrize(("mode", "level"), [(0o600, "ok"), (0o640, "problem"), (0o606, "problem")])
def test_a_file_for_others_eyes_is_said(settings: Any, tmp_path: Any, mode: int, level: str) -> None:
    path = tmp_path / "content.keys"
    path.write_text(key())
    path.chmod(mode)
    settings.PLACET_CONTENT_KEYS_FILE = str(path)
    says("content_keys", level, "file of content keys" if level == "problem" else "")


def test_every_name_is_found_whatever_lies_under_it(settings: Any) -> None:
    names = []
    for _ in range(3):
        settings.PLACET_CONTENT_KEYS = key()
        sealed_run_of(3)
        names.append(ContentKey.objects.order_by("-created_at")[0].wrapped_with)
    assert observed.wrapped_with() == sorted(names)


def sealed_run_of(count: int) -> None:
    tenant = rows.tenant_row(slug=f"t-{new_id().hex}")
    tenant.save()
    for _ in range(count):
        run = rows.run_row(tenant)
        run.save()
        key_for(run)
    as_superuser("ANALYZE common_contentkey")
