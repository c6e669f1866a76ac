"""The data directory: everything of one installation that must survive a restart."""

import base64
import contextlib
import fcntl
import json
import os
import secrets
import shlex
from pathlib import Path
from typing import Any, TypeVar

from launch import LaunchError

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = ROOT / "var"
T = TypeVar("T")
_LARGEST_LOG = 10 * 1024 * 1024


class DataDir:
    """A folder of this user's, used by one launcher at a time.

    Root lends its PostgreSQL another account, which must be able to walk through the folder (not to
    list it); every file and folder in it is private by its own mode.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        try:
            if not self.path.exists():
                self.path.mkdir(parents=True)
                self.path.chmod(0o700 if os.geteuid() else 0o711)
            self.folder("logs")
        except OSError as error:
            raise LaunchError(f"The data directory {self.path} cannot be used: {error.strerror}.") from error
        self._lock: int | None = None

    def folder(self, name: str) -> Path:
        """A private folder in it, made when missing."""
        path = self.path / name
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    # --- one launcher at a time ---------------------------------------------------------------
    def take(self) -> bool:
        """Whether the folder is ours from now on. However this process ends, the kernel gives it back."""
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._lock = handle
        self._environment_file.unlink(missing_ok=True)  # of a launcher that was killed
        return True

    def release(self) -> None:
        if self._lock is not None:
            self._environment_file.unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    # --- the addresses of a running `up` ------------------------------------------------------
    @property
    def _environment_file(self) -> Path:
        return self.path / "run.env"

    def publish(self, environment: dict[str, str]) -> None:
        """Leaves the addresses for other commands, readable by this user only."""
        lines = [f"{key}={shlex.quote(value)}" for key, value in sorted(environment.items())]
        write_private(self._environment_file, "\n".join(lines) + "\n")

    def published(self) -> dict[str, str] | None:
        """What a running launcher has left, or None. Ask only when `take` said no."""
        try:
            text = self._environment_file.read_text()
        except FileNotFoundError:
            return None
        return dict(word.split("=", 1) for word in shlex.split(text))

    # --- what is made once --------------------------------------------------------------------
    def secret(self, name: str) -> str:
        """A random value that stays the same for this folder."""
        return self.recall("secrets.json", name) or self.remember(
            "secrets.json", name, secrets.token_urlsafe(48)
        )

    def content_key(self) -> Path:
        """The file of the keys that contents are sealed under; made with one key where there is none.

        It is never written again: to rotate, people put a new key before the old one.
        """
        path = self.path / "content.keys"
        if not path.exists():
            fresh = path.with_name(f".new-{path.name}.{os.getpid()}")
            write_private(fresh, base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
            with contextlib.suppress(FileExistsError):
                os.link(fresh, path)  # whoever was first: a key that is in use is not replaced
            fresh.unlink()
        return path

    def recall(self, file: str, name: str) -> Any:
        """A remembered value, or None."""
        try:
            return json.loads((self.path / file).read_text()).get(name)
        except FileNotFoundError:
            return None

    def remember(self, file: str, name: str, value: T) -> T:
        path = self.path / file
        known = json.loads(path.read_text()) if path.exists() else {}
        write_private(path, json.dumps(known | {name: value}, indent=2) + "\n")
        return value

    def log(self, name: str) -> Path:
        """The log of a process. One that has grown large is put aside, over the one before."""
        path = self.path / "logs" / f"{name}.log"
        if path.exists() and path.stat().st_size > _LARGEST_LOG:
            path.replace(path.with_suffix(".log.1"))
        return path


def write_private(path: Path, text: str) -> None:
    """Writes the file whole or not at all, with mode 0600 from the first byte on."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
