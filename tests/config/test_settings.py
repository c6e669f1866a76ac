"""What the settings insist on, and what they tell browsers."""

import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.test import Client

from config.celery import app
from tests.processes import ROOT

_READ = (
    "from config import settings as s; print(s.SESSION_COOKIE_NAME, s.ALLOWED_HOSTS, s.SECURE_HSTS_SECONDS)"
)


def read_settings(**changes: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in (os.environ | changes).items() if value}
    return subprocess.run(
        [sys.executable, "-c", _READ], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "name",
    [
        "DATABASE_URL",
        "DATABASE_SYSTEM_URL",
        "REDIS_URL",
        "PLACET_SECRET_KEY",
        "PLACET_BASE_URL",
        "PLACET_DATA_DIR",
    ],
)
def test_missing_variable_is_named_with_a_hint(name: str) -> None:
    done = read_settings(**{name: ""})
    assert done.returncode != 0
    assert f"{name} is not set. It holds " in done.stderr
    assert ".env.example" in done.stderr


def test_https_makes_cookies_and_connections_strict() -> None:
    done = read_settings(PLACET_BASE_URL="https://placet.example.org/", PLACET_ALLOWED_HOSTS="")
    assert done.stdout.split("\n")[0] == "__Host-placet_session ['placet.example.org'] 31536000"


def test_plain_http_works_on_one_machine() -> None:
    assert read_settings().stdout.startswith("placet_session ")


def test_only_the_application_role_serves() -> None:
    assert settings.DATABASES["app"]["USER"] == settings.PLACET_APP_ROLE == "placet_app"
    assert settings.DATABASES["system"]["USER"] == settings.PLACET_SYSTEM_ROLE == "placet_system"


def test_connections_have_limits() -> None:
    options = settings.DATABASES["default"]["OPTIONS"]["options"]
    for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
        assert f"-c {name}=" in options


@pytest.mark.django_db
def test_browsers_are_told_to_be_strict(client: Client) -> None:
    headers = client.get("/healthz").headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"


def test_every_scheduled_task_exists() -> None:
    app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert scheduled <= set(app.tasks)


def test_messages_are_json_hints() -> None:
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_ignore_result
    assert not app.conf.task_acks_late
    assert not app.fixups
