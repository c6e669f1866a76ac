"""Logs: one JSON object a line, for structlog's and for the standard library's loggers.

JSON with `ensure_ascii` escapes every control and every non-ASCII character, so nothing that a
client sends can start a line of its own or reorder one on a terminal. Of an error the places and
names are written, and none of its words: these may quote what a customer wrote.
"""

import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse

from config import request_counters

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]
MOST_CAUSES = 10


def without_words(exc_info: ExcInfo) -> str:
    """A traceback, from the first cause on: files, lines and functions, and what each error is called.

    Schema errors and those of the database name the values that they complain about. Of the latter the code and the
    constraint are kept.
    """
    errors: list[BaseException] = []
    error: BaseException | None = exc_info[1]
    while error is not None and len(errors) < MOST_CAUSES:
        errors.insert(0, error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\nand then\n".join(_told(error) for error in errors)


def _told(error: BaseException) -> str:
    kind, diagnostics = type(error), getattr(error, "diag", None)
    facts = [getattr(diagnostics, name, None) for name in ("sqlstate", "constraint_name")]
    words = [f"{kind.__module__}.{kind.__qualname__}", *(fact for fact in facts if fact)]
    return "".join(traceback.format_tb(error.__traceback__)) + " ".join(words)


_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    structlog.processors.ExceptionRenderer(without_words),
]

# One list for good: loggers keep the one that they began with, also when this is configured once more.
_PROCESSORS: list[Any] = [
    structlog.stdlib.filter_by_level,
    *_SHARED,
    structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
]

log = structlog.get_logger("placet.request")


def logging_config(*, level: str) -> dict[str, Any]:
    """The configuration for `logging.config.dictConfig`; sets structlog up as well."""
    structlog.configure(
        processors=_PROCESSORS,
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": _SHARED,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(),
        ],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django's own handlers write plain text; ours takes over.
            "django": {"handlers": [], "propagate": True, "level": "INFO"},
            # It names the full path of every 4xx answer; the request log has the route instead.
            "django.request": {"handlers": [], "level": "ERROR"},
            # Two lines for each hint would drown what the tasks themselves say.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            # It warns at every connection through a Unix socket.
            "kombu.connection": {"level": "ERROR"},
            "django.server": {"handlers": [], "propagate": True, "level": "ERROR"},
        },
    }


class RequestLogMiddleware:
    """One line per request: method, route, status and milliseconds.

    The route (`review/<uuid:pk>/`) is named and neither path nor query string: an address may
    carry a secret, as those of webhooks do.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        start = time.perf_counter()
        response = self.get_response(request)
        seconds, match = time.perf_counter() - start, request.resolver_match
        route = match.route if match else None
        request_counters.count(request.method, route, response.status_code, seconds)
        log.info(
            "request",
            method=request.method,
            route=route,
            status=response.status_code,
            ms=round(seconds * 1000, 1),
        )
        return response
