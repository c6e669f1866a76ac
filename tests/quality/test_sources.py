"""Rules about our own files that no tool knows."""

import ast
import re
from functools import cache
from pathlib import Path

import allauth
import pytest

from tests.processes import ROOT

_LONGEST_FILE, _LONGEST_TEST, _LONGEST_FUNCTION = 400, 500, 40
# An auditor takes one file along, and reads it; so it imports nothing of ours.
_ONE_FILE = {"verify_history.py": 1900}


@cache
def files(*endings: str) -> list[Path]:
    """The checkout's files with these endings, without what was installed, made or is hidden."""
    found = (path for path in ROOT.rglob("*") if path.suffix in endings and path.is_file())
    return sorted(path for path in found if not _is_foreign(path.relative_to(ROOT)))


def _is_foreign(path: Path) -> bool:
    return path.parts[0] == "var" or any(part.startswith(".") for part in path.parts)


def sources() -> list[Path]:
    return [path for path in files(".py") if "migrations" not in path.parts]


def templates() -> list[Path]:
    return [path for path in files(".html", ".txt") if "templates" in path.parts]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_file_is_too_long_to_read() -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in sources()}
    long = {name: length for name, length in lengths.items() if length > _longest_file(name)}
    assert long == {}


def _longest_file(name: str) -> int:
    """Tables of cases make tests longer."""
    return _ONE_FILE.get(name, _LONGEST_TEST if name.startswith("tests/") else _LONGEST_FILE)


def test_no_function_is_too_long_to_read() -> None:
    long = {}
    for path in sources():
        if path.relative_to(ROOT).parts[0] == "tests":
            continue  # a factory or a scenario reads well from top to bottom
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > _LONGEST_FUNCTION:
                    long[f"{relative(path)}:{node.name}"] = length
    assert long == {}


def test_every_template_is_used() -> None:
    """By its name, in a template or in code; names put together from pieces end in a suffix that is known."""
    text = "\n".join(path.read_text() for path in [*sources(), *templates()])
    names = [str(path).rpartition("/templates/")[2] for path in templates()]
    # allauth's views and mails find ours in the place of theirs.
    known = _BY_CONVENTION | {name for name in names if (_ALLAUTHS / name).exists()}
    unused = [name for name in names if name not in text and name not in known]
    assert unused == []


# Looked up by Django or by a library under a fixed name.
_ALLAUTHS = Path(allauth.__file__).parent / "templates"
_BY_CONVENTION = {"400.html", "403.html", "403_csrf.html", "404.html", "500.html"}


def test_every_static_file_named_by_a_template_exists() -> None:
    from django.contrib.staticfiles import finders

    named = {
        name
        for path in templates()
        for name in re.findall(r"""{%\s*static\s+["']([^"']+)["']""", path.read_text())
    }
    assert {name for name in named if finders.find(name) is None} == set()


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("an inline script", r"<script(?![^>]*\ssrc=)[^>]*>"),
        ("an inline event handler", r"<[^>]*\son[a-z]+\s*="),
        ("an inline style", r"<[^>]*\sstyle\s*=|<style"),
        ("a script language in htmx", r"hx-on[:a-z-]*=|js:"),
    ],
)
def test_templates_contain_no(what: str, pattern: str) -> None:
    """The content security policy would stop it in the browser, where nobody sees it."""
    found = [relative(path) for path in templates() if re.search(pattern, path.read_text())]
    assert found == [], what


def test_every_form_that_posts_has_a_csrf_token() -> None:
    without = [
        relative(path)
        for path in templates()
        for form in re.findall(r"<form\b.*?</form>", path.read_text(), flags=re.DOTALL)
        if re.search(r"""method=["']post["']""", form) and "csrf_token" not in form
    ]
    assert without == []
