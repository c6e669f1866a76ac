"""Doctor on whether people are told."""

from typing import Any

import pytest

from launch.greeting import greeting
from tests import rows
from tests.config.examined import found, says
from tests.factories import make_tenant, make_user
from tests.notify.rows import mail_row, message_row, notice_row
from tests.workflows.later import as_superuser

pytestmark = pytest.mark.django_db


def test_whether_mails_leave(settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    says("mail", "warning", "mails become files in")
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = "mail.example"
    says("mail", "ok", "Mails go to mail.example")


def test_what_is_late_and_what_was_given_up() -> None:
    tenant = make_tenant()
    message = message_row(tenant)
    message.save()
    notice = notice_row(message, make_user(tenant))
    notice.save()
    row = mail_row(notice)
    row.save()
    assert found("notices").level == "ok", "for the moment"
    as_superuser("UPDATE notify_dispatch SET due_at = now() - interval '20 minutes'")
    says("notices", "problem", "the oldest message has been due for 20 min")
    row.refresh_from_db()
    row.give_up(at=rows.now(), problem="smtp_550")
    row.save()
    as_superuser("UPDATE notify_dispatch SET ended_at = now()")
    says("notices", "warning", "1 mails and chat messages were given up")


def test_the_first_words_say_that_there_is_no_mail_server(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.delenv("PLACET_MAIL_URL", raising=False)
    assert f"mails become files in {tmp_path / 'mail'}" in greeting("http://localhost:1", None, tmp_path, 1.0)
    monkeypatch.setenv("PLACET_MAIL_URL", "smtp://mail.example")
    assert "Mails go to the server" in greeting("http://localhost:1", None, tmp_path, 1.0)
