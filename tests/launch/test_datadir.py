"""The data directory: one launcher at a time, private files, secrets that stay."""

import stat
from base64 import b64decode
from pathlib import Path

import pytest

from launch import LaunchError
from launch.datadir import DataDir
from launch.environment import product_environment


def test_one_launcher_at_a_time(tmp_path: Path) -> None:
    first, second = DataDir(tmp_path), DataDir(tmp_path)
    assert first.take()
    assert not second.take()
    first.release()
    assert second.take()
    second.release()


def test_addresses_are_there_while_the_launcher_runs(tmp_path: Path) -> None:
    first, second = DataDir(tmp_path), DataDir(tmp_path)
    first.take()
    assert second.published() is None
    first.publish({"DATABASE_URL": "postgresql://a@/d?host=/x y&options=-c%20z", "EMPTY": ""})
    assert second.published() == {"DATABASE_URL": "postgresql://a@/d?host=/x y&options=-c%20z", "EMPTY": ""}
    assert stat.S_IMODE((tmp_path / "run.env").stat().st_mode) == 0o600
    first.release()
    assert second.published() is None


def test_addresses_of_a_killed_launcher_are_not_used(tmp_path: Path) -> None:
    killed = DataDir(tmp_path)
    killed.publish({"DATABASE_URL": "postgresql://gone"})
    after = DataDir(tmp_path)
    assert after.take()
    assert after.published() is None
    after.release()


def test_secrets_stay_and_are_private(tmp_path: Path) -> None:
    secret = DataDir(tmp_path).secret("secret_key")
    assert len(secret) >= 50
    assert DataDir(tmp_path).secret("secret_key") == secret
    assert DataDir(tmp_path).secret("another") != secret
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600


def test_a_key_for_contents_is_made_once_and_is_private(tmp_path: Path) -> None:
    path = DataDir(tmp_path).content_key()
    made = path.read_text()
    assert len(b64decode(made, validate=False)) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert DataDir(tmp_path).content_key().read_text() == made
    assert [found.name for found in tmp_path.iterdir() if found.is_file()] == ["content.keys"]


def test_whoever_gives_content_keys_gets_no_file(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    for given in ({"PLACET_CONTENT_KEYS": "x"}, {"PLACET_CONTENT_KEYS_FILE": "/elsewhere"}):
        made = product_environment(data, given, port=1)
        assert "PLACET_CONTENT_KEYS_FILE" not in made
        assert not (tmp_path / "content.keys").exists()
    made = product_environment(data, {}, port=1)
    assert made["PLACET_CONTENT_KEYS_FILE"] == str(tmp_path / "content.keys")


def test_large_log_is_put_aside(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.log("web").write_bytes(b"x" * (10 * 1024 * 1024 + 1))
    assert not data.log("web").exists()
    assert (tmp_path / "logs" / "web.log.1").exists()


def test_unusable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LaunchError, match=r"The data directory .*file/inside cannot be used"):
        DataDir(tmp_path / "file" / "inside")
