"""Where programs lie, and where data and sockets may lie."""

import hashlib
import importlib.util
import os
import pwd
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch import LaunchError

# sun_path of a Unix socket holds 104 bytes on macOS and 108 on Linux.
_LONGEST_SOCKET_PATH = 100


@dataclass(frozen=True)
class Account:
    """The user a server runs as; `None` in both means: as we do."""

    uid: int | None = None
    gid: int | None = None

    def popen(self) -> dict[str, Any]:
        """Arguments for subprocess."""
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Gives `path` to the account."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def server_account() -> Account:
    """PostgreSQL refuses to run as root, so root lends it another account. Makes no account."""
    if os.geteuid() != 0:
        return Account()
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise LaunchError(
        "PostgreSQL does not run as root, and there is neither a 'postgres' nor a 'nobody' account."
    )


def reachable(path: Path) -> bool:
    """Whether a user who owns nothing on the way can walk to `path`."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents)


def digest(path: Path) -> str:
    """A short name for a folder, the same every time."""
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]


def socket_dir(base: Path, longest_name: str) -> Path:
    """`base`, or a folder in the temporary directory when a socket's path would be too long there.

    Raises LaunchError when that folder belongs to somebody else.
    """
    if len(os.fsencode(base / longest_name)) < _LONGEST_SOCKET_PATH:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        return base
    folder = Path(tempfile.gettempdir()) / f"placet-{os.getuid()}-{digest(base)}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or (os.geteuid() and status.st_uid != os.geteuid()):
        raise LaunchError(f"{folder} is not a folder of ours: remove it, or use a shorter --data-dir.")
    return folder


def wheel_dir(package: str, *parts: str) -> Path | None:
    """A folder inside an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))).joinpath(*parts)
    return folder if folder.exists() else None
