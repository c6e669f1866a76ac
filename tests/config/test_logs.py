"""One JSON object a line, whatever is in it; addresses only as routes."""

import io
import json
import logging
import logging.config
from collections.abc import Callable, Generator

import pytest
import structlog
from django.test import Client

from config.logs import logging_config


@pytest.fixture
def lines() -> Generator[Callable[[], list[str]]]:
    """What the product's own logging has written, line by line."""
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers[:], root.level
    logging.config.dictConfig(logging_config(level="INFO"))
    ours = next(handler for handler in root.handlers if isinstance(handler, logging.StreamHandler))
    ours.setStream(stream)
    yield lambda: stream.getvalue().split("\n")[:-1]
    root.handlers[:], root.level = before


@pytest.mark.parametrize(
    "nasty", ["a\nb", "a\r\nb", "\x1b[2J", "a\u2028b", "\u202eabc", "\x85", "\x00", '"}\n{"event": "forged"}']
)
def test_control_characters_are_escaped(lines: Callable[[], list[str]], nasty: str) -> None:
    structlog.get_logger("placet.test").info("said", what=nasty)
    logging.getLogger("anything").warning("said %s", nasty)
    written = lines()
    assert len(written) == 2
    assert json.loads(written[0])["what"] == nasty
    assert json.loads(written[1])["event"] == f"said {nasty}"
    assert all(line.isascii() and line.isprintable() for line in written)


@pytest.mark.django_db
def test_requests_are_logged_by_route_without_query(client: Client, lines: Callable[[], list[str]]) -> None:
    client.get("/healthz?token=secret-value")
    client.get("/nowhere/secret-value?token=secret-value")
    requests = [json.loads(line) for line in lines()]
    assert [(line["method"], line["route"], line["status"]) for line in requests] == [
        ("GET", "healthz", 200),
        ("GET", None, 404),
    ]
    assert "secret-value" not in json.dumps(requests)
