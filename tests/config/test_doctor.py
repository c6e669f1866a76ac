"""Doctor finds what is really broken: each thing here is broken for real, and put right again."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from celery import current_app
from django.core.management import call_command
from django.db import connections

from config.doctor.database import clocks
from tests.config.examined import found, says
from tests.processes import ROOT
from tests.processes import test_environment as environment_of_test
from tests.workflows.later import as_superuser

pytestmark = pytest.mark.django_db


def run_doctor(**changed: str) -> subprocess.CompletedProcess[str]:
    """As people do, with another environment."""
    env = environment_of_test() | changed
    command = (str(ROOT / ".venv/bin/python"), "manage.py", "doctor")
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


# -- the whole ------------------------------------------------------------------------------------------------------


def examined(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", *arguments, stdout=out)
    return int(ended.value.code or 0), out.getvalue()


def test_in_words_and_for_programs() -> None:
    """The tests' own server keeps no promise to its disk, and nobody works here: both are problems."""
    code, words = examined()
    assert code == 2
    assert "PROBLEM guard_rails: fsync is off.\n          Switch it on" in words
    assert "ok      role: The role placet_app owns nothing and has no powers." in words
    code, text = examined("--json")
    document = json.loads(text)
    assert document["exit_code"] == code == 2
    assert {"check": "debug", "level": "ok", "says": "Debugging is off.", "do": ""} in document["findings"]
    for row in document["findings"]:
        assert bool(row["do"]) == (row["level"] != "ok"), row


def test_a_database_that_does_not_answer_is_said_and_the_rest_is_examined() -> None:
    done = run_doctor(DATABASE_URL="postgresql://placet_app:hush-hush@/placet?host=/nowhere")
    assert done.returncode == 2, done.stderr
    assert "PROBLEM database: The database does not answer" in done.stdout
    assert "base_url: " in done.stdout
    assert "hush-hush" not in done.stdout + done.stderr


# -- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "changed", "level", "words"),
    [
        ("base_url", {"PLACET_BASE_URL": "http://placet.example.org"}, "problem", "can be read and changed"),
        ("base_url", {"PLACET_BASE_URL": "https://placet.example.org"}, "ok", "https://placet.example.org"),
        ("hosts", {"ALLOWED_HOSTS": ["*"]}, "problem", "Every host name"),
        ("debug", {"DEBUG": True}, "problem", "Debugging is on"),
        ("cookies", {"SESSION_COOKIE_HTTPONLY": False}, "problem", "read by scripts"),
        ("cookies", {"PLACET_BASE_URL": "https://placet.example.org"}, "problem", "without https"),
        ("secret_key", {"SECRET_KEY": "changeme"}, "problem", "can be guessed"),
        ("secret_key", {"SECRET_KEY": "ab" * 40}, "problem", "can be guessed"),
        (
            "secret_key",
            {"SECRET_KEY_FALLBACKS": ["earlier"]},
            "problem",
            "An earlier secret key can be guessed",
        ),
        ("signing", {"PLACET_SIGNING_KEY": "no base64!"}, "problem", "cannot be signed"),
        ("signing", {"PLACET_SIGNING_KEY": "c2hvcnQ="}, "problem", "cannot be signed"),
        ("proxies", {"PLACET_BASE_URL": "https://placet.example.org"}, "warning", "no proxy is said"),
        ("proxies", {"PLACET_BEHIND_PROXY": True}, "warning", "anybody may claim https"),
        ("metrics_token", {"PLACET_METRICS_TOKEN": "short"}, "warning", "can be guessed"),
    ],
)
def test_settings(settings: Any, check: str, changed: dict[str, Any], level: str, words: str) -> None:
    for name, value in changed.items():
        setattr(settings, name, value)
    says(check, level, words)


# -- the database ---------------------------------------------------------------------------------------------------


def with_user(user: str, options: str = "") -> str:
    address = environment_of_test()["DATABASE_URL"].replace("placet_app@", f"{user}@")
    return f"{address}&options={quote(options)}" if options else address


def test_a_superuser_as_application_role() -> None:
    done = run_doctor(DATABASE_URL=with_user("postgres"))
    assert "PROBLEM role: The role postgres of DATABASE_URL is a superuser" in done.stdout
    assert "PROBLEM history_rights" in done.stdout
    assert done.returncode == 2


def test_limits_that_were_taken_away() -> None:
    options = "-c statement_timeout=0 -c synchronous_commit=off"
    done = run_doctor(DATABASE_URL=with_user("placet_app", options))
    assert "guard_rails: statement_timeout is 0." in done.stdout
    assert "guard_rails: synchronous_commit is off." in done.stdout
    assert "guard_rails: lock_timeout" not in done.stdout


def test_a_member_of_the_owners_role() -> None:
    as_superuser("CREATE ROLE doctors_owner")
    try:
        as_superuser("ALTER TABLE common_heartbeat OWNER TO doctors_owner")
        says("role", "ok", "owns nothing")
        as_superuser("GRANT doctors_owner TO placet_app")
        says("role", "problem", "is a member of the role that owns the tables")
        as_superuser("ALTER TABLE common_heartbeat OWNER TO placet_app")
        says("role", "problem", "owns tables")
    finally:
        as_superuser("ALTER TABLE common_heartbeat OWNER TO postgres")
        as_superuser("GRANT SELECT, INSERT, UPDATE, DELETE ON common_heartbeat TO placet_app")
        as_superuser("DROP ROLE doctors_owner")


@pytest.mark.parametrize("right", ["UPDATE", "UPDATE (reason)", "DELETE", "TRUNCATE"])
def test_a_right_to_change_the_history(right: str) -> None:
    says("history_rights", "ok", "nothing else")
    as_superuser(f"GRANT {right} ON audit_event TO placet_app")
    try:
        says("history_rights", "problem", f"{right.split(maxsplit=1)[0]} on audit_event")
    finally:
        as_superuser(f"REVOKE {right} ON audit_event FROM placet_app")


STAMP: Final = "audit_event", "audit_event_stamp"
HOURS_AGO: Final = "clock_timestamp() - interval '9 hours'"


def stored_trigger(table: str, name: str) -> tuple[str, str, str]:
    """Its name in the database, and its function's name and source."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT t.tgname, p.oid::regprocedure::text, p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid"
            " WHERE t.tgrelid = %s::regclass AND t.tgname LIKE %s", [table, f"pgtrigger_{name}_%"],
        )  # fmt: skip
        [row] = cursor.fetchall()
        return row


@pytest.mark.parametrize(("table", "name"), [
    ("audit_event", "audit_event_append_only"), ("audit_seal", "audit_seal_no_truncate"), STAMP,
    ("approvals_decision", "approvals_decision_bound"), ("workflows_hold", "workflows_hold_moves"),
])  # fmt: skip
def test_a_wall_that_was_switched_off_or_taken_away(table: str, name: str) -> None:
    says("walls", "ok", "rules of the database are in force")
    stored, *_ = stored_trigger(table, name)
    for off, on in (("DISABLE", "ENABLE"), ("ENABLE REPLICA", "ENABLE")):
        as_superuser(f"ALTER TABLE {table} {off} TRIGGER {stored}")
        try:
            says(
                "walls", "problem", f"1 rules of the database are missing, switched off or changed: {name} on"
            )
        finally:
            as_superuser(f"ALTER TABLE {table} {on} TRIGGER {stored}")
    as_superuser(f"ALTER TRIGGER {stored} ON {table} RENAME TO taken_away")
    try:
        says("walls", "problem", f"{name} on {table}")
    finally:
        as_superuser(f"ALTER TRIGGER taken_away ON {table} RENAME TO {stored}")
    says("walls", "ok", "rules of the database are in force")


def test_a_wall_that_does_something_else() -> None:
    """The trigger is there and switched on, and stamps events with another time."""
    _, function, source = stored_trigger(*STAMP)
    changed = source.replace("clock_timestamp()", HOURS_AGO)
    assert changed != source
    as_superuser(f"CREATE OR REPLACE FUNCTION {function} RETURNS trigger LANGUAGE plpgsql AS $b${changed}$b$")
    try:
        says("walls", "problem", "audit_event_stamp on audit_event")
    finally:
        as_superuser(
            f"CREATE OR REPLACE FUNCTION {function} RETURNS trigger LANGUAGE plpgsql AS $b${source}$b$"
        )
    says("walls", "ok", "rules of the database are in force")


def test_row_security_that_is_not_forced() -> None:
    as_superuser("ALTER TABLE common_heartbeat ENABLE ROW LEVEL SECURITY")
    try:
        as_superuser("CREATE POLICY everybody ON common_heartbeat USING (true)")
        says("row_security", "problem", "common_heartbeat")
        as_superuser("ALTER TABLE common_heartbeat FORCE ROW LEVEL SECURITY")
        says("row_security", "ok", "in force on")
        as_superuser("ALTER TABLE common_heartbeat DISABLE ROW LEVEL SECURITY")
        says("row_security", "problem", "common_heartbeat")
    finally:
        as_superuser("DROP POLICY everybody ON common_heartbeat")
        as_superuser("ALTER TABLE common_heartbeat NO FORCE ROW LEVEL SECURITY")
        as_superuser("ALTER TABLE common_heartbeat DISABLE ROW LEVEL SECURITY")


def test_a_migration_that_is_missing() -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'sessions' RETURNING id, app, name, applied"
        )
        row = cursor.fetchone()
        try:
            says("migrations", "problem", "sessions.0001_initial")
        finally:
            cursor.execute(
                "INSERT INTO django_migrations OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s)", row
            )


@pytest.mark.parametrize(("seconds", "level"), [(0, "ok"), (-10, "warning"), (60, "problem")])
def test_clocks_that_differ(seconds: float, level: str) -> None:
    [finding] = clocks(lambda: datetime.now(UTC) + timedelta(seconds=seconds))
    assert finding.level == level, finding


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of 1 MB. Only root may mount one."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if os.geteuid() or done.returncode:
        pytest.skip("a disk of 1 MB cannot be mounted here: this needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills(settings: Any, tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk:
        settings.PLACET_DATA_DIR = disk
        says("disk", "ok", "100%")
        (disk / "first").write_bytes(b"0" * 950_000)
        says("disk", "warning", "9%")
        (disk / "second").write_bytes(b"0" * 80_000)
        says("disk", "problem", "of the disk")


# -- the broker -----------------------------------------------------------------------------------------------------


def test_a_broker_that_throws_messages_away() -> None:
    says("broker", "ok", "throws nothing away")
    with current_app.connection_for_write() as connection:
        client = connection.channel().client
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            says("broker", "warning", "maxmemory-policy allkeys-lru")
        finally:
            client.config_set("maxmemory-policy", "noeviction")


def test_a_broker_that_is_away() -> None:
    app = current_app._get_current_object()
    usual, app.conf.broker_url = app.conf.broker_url, "redis://127.0.0.1:1/0"
    try:
        assert found("broker").level == "warning"
        assert found("guard_rails"), "the rest is examined all the same"
    finally:
        app.conf.broker_url = usual
