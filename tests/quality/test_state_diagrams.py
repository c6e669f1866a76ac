"""The pages in docs/states/ are what the declarations say."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command


def test_committed_pages_are_up_to_date() -> None:
    call_command("state_diagrams", check=True)


def test_drift_is_noticed(tmp_path: Path) -> None:
    call_command("state_diagrams", folder=tmp_path, stdout=StringIO())
    call_command("state_diagrams", folder=tmp_path, check=True)
    page = tmp_path / "command.md"
    page.write_text(page.read_text().replace("claim", "grab"))
    with pytest.raises(CommandError, match=r"command\.md"):
        call_command("state_diagrams", folder=tmp_path, check=True)


def test_page_of_a_thing_that_is_gone_is_noticed(tmp_path: Path) -> None:
    call_command("state_diagrams", folder=tmp_path, stdout=StringIO())
    (tmp_path / "gone.md").write_text("# Gone\n")
    with pytest.raises(CommandError, match=r"gone\.md"):
        call_command("state_diagrams", folder=tmp_path, check=True)
