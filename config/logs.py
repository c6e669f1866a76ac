"""Logs: one JSON object a line, for structlog's and for the standard library's loggers.

JSON with `ensure_ascii` escapes every control and every non-ASCII character, so nothing that a
client sends can start a line of its own or reorder one on a terminal.
"""

import time
from collections.abc import Callable
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    structlog.processors.format_exc_info,
]

log = structlog.get_logger("placet.request")


def logging_config(*, level: str) -> dict[str, Any]:
    """The configuration for `logging.config.dictConfig`; sets structlog up as well."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
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
        match = request.resolver_match
        log.info(
            "request",
            method=request.method,
            route=match.route if match else None,
            status=response.status_code,
            ms=round((time.perf_counter() - start) * 1000, 1),
        )
        return response
