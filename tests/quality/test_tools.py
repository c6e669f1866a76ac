"""The checks that need no database: style, types, import direction, drift. One pytest run proves all."""

import os
import subprocess
import sys

import pytest

from tests.processes import ROOT

_MODULES = (
    "config",
    "common",
    "audit",
    "access",
    "notify",
    "approvals",
    "workflows",
    "repair",
    "examples",
    "launch",
    "verify_history.py",
    "signer",
)
_CHECKS = {
    "ruff": ("-m", "ruff", "check", "."),
    "format": ("-m", "ruff", "format", "--check", "."),
    "types": ("-m", "mypy", *_MODULES),
    "imports": ("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"),
    "migrations": ("manage.py", "makemigrations", "--check", "--dry-run"),
    "diagrams": ("manage.py", "state_diagrams", "--check"),
    "system": ("manage.py", "check", "--fail-level", "WARNING"),
}


@pytest.mark.parametrize("name", _CHECKS)
def test_check(name: str) -> None:
    command = [sys.executable, *_CHECKS[name]]
    env = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(_CHECKS[name])}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("script", ["placet", ".ci/run"])
def test_shell_scripts_parse(script: str) -> None:
    shell = "sh" if script == "placet" else "bash"
    subprocess.run([shell, "-n", str(ROOT / script)], check=True)
    assert os.access(ROOT / script, os.X_OK)
