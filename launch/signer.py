"""`./placet signer COMMAND`: the signer's own commands, and how `./placet up` starts it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from launch.datadir import ROOT, DataDir
from launch.environment import Backends, for_signer
from launch.manage import addresses_of, run_child

MODULE = ("-m", "signer")


def signer(arguments: list[str], data_dir: Path) -> int:
    """Runs the command with the engines of a running `up`, or with engines of its own; its exit code."""
    data = DataDir(data_dir)
    backends = Backends(data, os.environ)
    try:
        environment = for_signer(addresses_of(data, backends), folder(data, os.environ))
        return run_child([sys.executable, *MODULE, *arguments], environment, cwd=ROOT)
    finally:
        backends.stop()
        data.release()


def folder(data: DataDir, given: Mapping[str, str]) -> Path:
    """Where its key lies: the caller's place for it, else a folder in the data directory."""
    return Path(given.get("PLACET_SIGNER_DIR") or data.path / "signer").resolve()
