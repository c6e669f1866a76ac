"""The file of secrets for tests, as an administrator writes it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest


class SecretsFile:
    """`write` puts another file in its place, as tools that rotate secrets do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, content: Any, *, mode: int = 0o600) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(content if isinstance(content, str) else json.dumps(content))
        new.chmod(mode)
        os.replace(new, self.path)


@pytest.fixture
def secrets_file(tmp_path: Path, settings: Any) -> SecretsFile:
    """Named in the settings, and not there until the test writes it."""
    path = tmp_path / "secrets-of-tenants.json"
    settings.PLACET_SECRETS_FILE = str(path)
    return SecretsFile(path)
