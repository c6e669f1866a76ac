"""Rules of the security list that a reader of the code can check, checked. S17, S22, S23, S33, S40."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from config.celery import app
from tests.processes import ROOT
from tests.quality.test_sources import relative, sources, templates

_OURS = (
    "access",
    "approvals",
    "audit",
    "common",
    "config",
    "examples",
    "launch",
    "notify",
    "repair",
    "signer",
    "workflows",
)

READS_JSON = {
    "access/presence.py": "what a statement of ours has put together",
    "access/selectors.py": "what a statement of ours has put together",
    "audit/chain.py": "bodies of our own events, written canonically",
    "common/fields/naming.py": "our own declarations",
    "common/sealed.py": "what we wrote ourselves before it was sealed",
    "config/demo.py": "a file of the demo in the checkout",
    "config/management/commands/demo.py": "the file that the demo wrote",
    "config/observed.py": "what our own processes noted down",
    "examples/refunds/provider/admin.py": "the example's provider, a program of its own",
    "examples/refunds/provider/exchange.py": "the example's provider, a program of its own",
    "examples/refunds/provider/keys.py": "the example's provider, a program of its own",
    "examples/refunds/provider/seed.py": "the example's provider, a program of its own",
    "examples/refunds/provider/store.py": "the example's provider, a program of its own",
    "examples/refunds/site.py": "a file of the operator",
    "launch/datadir.py": "files that the launcher wrote",
    "launch/greeting.py": "the file that the demo wrote",
    "launch/pictures.py": "the file that the demo wrote",
    "signer/folder.py": "files that the signer wrote",
}
"""Everything from outside goes through `common.strictjson`, which reads a document in exactly one way."""
MARKS_SAFE = {
    "access/views_account.py": "the QR code that the library draws; it holds shapes and no text",
    "common/templatetags/desk.py": "a part of the page that a view of ours has rendered",
}


def product() -> list[Path]:
    return [path for path in sources() if path.relative_to(ROOT).parts[0] in _OURS]


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Each call by the dotted name it is made by."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def test_json_from_outside_has_one_reader() -> None:
    readers = {
        relative(path) for path in product() for name, _ in calls(path)
        if name in ("json.loads", "json.load", "loads", "orjson.loads")
        or name.endswith((".model_validate_json", ".parse_raw"))
    }  # fmt: skip
    assert readers <= set(READS_JSON), "use common.strictjson.parse"


def test_nothing_is_called_safe_that_somebody_else_wrote() -> None:
    marked = {
        relative(path) for path in product() for name, _ in calls(path)
        if name.split(".")[-1] in ("mark_safe", "SafeString", "SafeText")
    }  # fmt: skip
    assert marked <= set(MARKS_SAFE)
    for path in templates():
        if path.suffix == ".txt":
            continue  # mails: text, where nothing is markup
        assert not re.search(r"\|\s*safe(seq)?\b|autoescape\s+off", path.read_text()), relative(path)


def test_markup_is_built_from_a_text_of_our_own() -> None:
    """``format_html(f"…")`` or with a variable as the first argument escapes nothing of it."""
    for path in product():
        for name, call in calls(path):
            if name.split(".")[-1] == "format_html":
                first = call.args[0]
                assert isinstance(first, ast.Constant) and isinstance(first.value, str), relative(path)


def test_no_markdown_and_no_templates_from_data() -> None:
    for path in product():
        assert not imported(path) & {"markdown", "mistune", "markdown2", "bleach", "jinja2"}, relative(path)
        for name, call in calls(path):
            if name in ("Template", "Engine.from_string", "engine.from_string"):
                assert isinstance(call.args[0], ast.Constant), relative(path)


def test_nothing_is_unpickled() -> None:
    for path in product():
        assert not imported(path) & {"pickle", "cPickle", "dill", "marshal", "shelve", "yaml"}, relative(path)
    assert app.conf.task_serializer == app.conf.result_serializer == "json"
    assert set(app.conf.accept_content) == {"json"}
    assert settings.SESSION_SERIALIZER.endswith("JSONSerializer")


_SECRET = re.compile(
    r"(secret|token_text|digest|signature|sha256|fingerprint|hmac|mac|password|body_hash|input_hash)$"
)
COMPARED_IN_THE_OPEN = {
    # Which rows belong together, read from our own database on both sides; nobody outside learns of it by its time.
    "access/sessions.py", "approvals/rechecked.py", "workflows/actions/proposing.py",
}  # fmt: skip


def compared(node: ast.Compare) -> bool:
    if not any(isinstance(operator, (ast.Eq, ast.NotEq)) for operator in node.ops):
        return False
    sides = [node.left, *node.comparators]
    names = [
        side.attr if isinstance(side, ast.Attribute) else side.id if isinstance(side, ast.Name) else ""
        for side in sides
    ]
    # A comparison with a word of our own, such as "", tells nothing.
    return any(_SECRET.search(name) for name in names) and not any(
        isinstance(side, ast.Constant) for side in sides
    )


def test_secrets_are_compared_in_constant_time() -> None:
    found = {
        relative(path) for path in product() for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare) and compared(node)
    }  # fmt: skip
    assert found - COMPARED_IN_THE_OPEN == set(), "use common.digests.same"


@pytest.mark.parametrize("module", ["requests", "urllib.request", "httpx", "aiohttp", "urllib3"])
def test_only_the_one_client_calls_other_hosts(module: str) -> None:
    """S20. The launcher asks its own processes, and libraries bring clients of their own."""
    for path in product():
        if path.relative_to(ROOT).parts[0] == "launch":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [name.name for name in node.names] if isinstance(node, ast.Import)
                else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            )  # fmt: skip
            assert module not in names, relative(path)


@pytest.mark.django_db
def test_the_database_keeps_its_guard_rails() -> None:
    """S40, on the connection that serves."""
    from django.db import connection

    with connection.cursor() as cursor:
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone()[0] not in ("0", ""), name
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone()[0] == "on"
        cursor.execute(
            "SELECT rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        )
        assert cursor.fetchone() == (False, False, False)
