"""One JSON object a line, whatever is in it; addresses only as routes."""

import io
import json
import logging
import logging.config
from collections.abc import Callable, Generator

import pytest
import structlog
from django.db import DatabaseError, connection
from django.test import Client
from pydantic import BaseModel

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


CANARY = "jane.canary@example.org"


class Person(BaseModel):
    age: int


def a_schema_that_complains() -> None:
    Person.model_validate({"age": CANARY})


def a_key_that_is_missing() -> None:
    try:
        {}[CANARY]
    except KeyError as error:
        raise RuntimeError(f"nobody is called {CANARY}") from error


@pytest.mark.parametrize("fail", [a_schema_that_complains, a_key_that_is_missing])
@pytest.mark.parametrize("logger", [structlog.get_logger("placet.test"), logging.getLogger("django.request")])
def test_an_error_is_logged_by_its_places_and_without_its_words(
    lines: Callable[[], list[str]], fail: Callable[[], None], logger: logging.Logger
) -> None:
    """Field report S1, invariant I30: what an error complains about may be a customer's own."""
    try:
        fail()
    except Exception:
        logger.exception("broke")
    [line] = [json.loads(line) for line in lines()]
    assert line["event"] == "broke"
    assert fail.__name__ in line["exception"]
    assert ("ValidationError" in line["exception"]) or ("KeyError" in line["exception"])
    assert "canary" not in json.dumps(line)


@pytest.mark.django_db
def test_a_database_error_is_logged_with_its_code(lines: Callable[[], list[str]]) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s::uuid", [CANARY])
    except DatabaseError:
        structlog.get_logger("placet.test").exception("broke")
    [line] = [json.loads(line) for line in lines()]
    assert "22P02" in line["exception"]
    assert "canary" not in json.dumps(line)
