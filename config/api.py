"""The public API, `/api/v1`: the routers of the apps, one way of authentication for each, and one shape of errors."""

from typing import Any, Final

import structlog
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema

from access.auth import SessionAuth
from approvals import api as approvals_api
from approvals import api_questions
from audit import api as audit_api
from common import unavailable
from common.away import AWAY
from common.errors import InvalidInput, NotFound, Refused
from common.problems import (
    MEDIA_TYPE,
    BadRequest,
    BodyTooLarge,
    ServerError,
    json_problem,
    problem,
)
from common.strictbody import QueryParser, schema_error
from common.strictjson import JsonRefused
from config.limits import TokenAuth
from workflows import api as workflows_api
from workflows import api_hooks, api_settling

log = structlog.get_logger("placet.api")

DESCRIPTION = """
Automations start runs and propose actions; people decide on what they were shown; a worker does it once.

Bearer tokens work on every call but those that decide, attest or ask again: these take a signed-in session with its
CSRF token and nothing else. Errors are problem documents (RFC 9457) whose `code` comes from a closed list. Each status
answer has one `next_action`, and with `wait` a `retry_after` in seconds.
""".strip()


def _problem(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


_ANYWHERE: Final = {
    429: _problem("Too many requests in a short time; `Retry-After` says how long to wait."),
    503: _problem("Not now: nothing was read or changed. `Retry-After` says how long to wait."),
}
_OF_A_RUN: Final = frozenset({"{run_id}", "{proposal_id}", "{command_id}", "{ref}"})
_ERASED: Final = _problem("The content of the run was erased.")


class PlacetAPI(NinjaAPI):
    """django-ninja's API, with the media type of problem documents in its OpenAPI description."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        for path, operations in schema["paths"].items():
            everywhere = _ANYWHERE | ({410: _ERASED} if _OF_A_RUN.intersection(path.split("/")) else {})
            for operation in operations.values():
                operation["responses"] = everywhere | operation["responses"]
                _name_problems(operation["responses"])
        return schema


def _name_problems(responses: dict[int, Any]) -> None:
    for status, response in responses.items():
        content = response.get("content", {})
        if int(status) >= 400 and "application/json" in content:
            content[MEDIA_TYPE] = content.pop("application/json")


api = PlacetAPI(
    title="Placet", version="1", description=DESCRIPTION, urls_namespace="api-v1", docs_url=None,
    parser=QueryParser(),
)  # fmt: skip
token_auth, session_auth = TokenAuth(), SessionAuth()
for _router in (workflows_api.router, approvals_api.tokens, api_questions.router, audit_api.router):
    api.add_router("", _router, auth=token_auth)
api.add_router("", approvals_api.sessions, auth=session_auth)
api.add_router("", api_hooks.router, auth=None)
api.add_router("", api_settling.sessions, auth=api_settling.SettlingAuth())


@api.exception_handler(Refused)
def _refused(request: HttpRequest, refused: Refused) -> HttpResponse:
    return problem(request, refused)


@api.exception_handler(JsonRefused)
def _refused_json(request: HttpRequest, refused: JsonRefused) -> HttpResponse:
    return json_problem(request, refused)


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, invalid: ValidationError) -> HttpResponse:
    """What does not fit the schema. An address that names nothing is missing, whatever it looks like."""
    if any(error["loc"][0] == "path" for error in invalid.errors):
        return problem(request, NotFound())
    return problem(request, InvalidInput(errors=[_error(error) for error in invalid.errors]))


def _error(error: dict[str, Any]) -> dict[str, str]:
    """django-ninja puts the kind of parameter, and for a body its name, before the path."""
    kind, *path = error["loc"]
    return schema_error(error | {"loc": path[1:] if kind == "body" else path})


@api.exception_handler(Http404)
def _missing(request: HttpRequest, missing: Http404) -> HttpResponse:
    return problem(request, NotFound())


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return problem(request, NotFound() if error.status_code == 404 else BadRequest())


@api.exception_handler(RequestDataTooBig)
def _too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    """A form on a session's route: the CSRF check looks into it before our own check of the body can refuse it."""
    return problem(request, BodyTooLarge())


@api.exception_handler(SuspiciousOperation)
def _suspicious(request: HttpRequest, error: SuspiciousOperation) -> HttpResponse:
    return problem(request, BadRequest())


def _database_away(request: HttpRequest, error: Exception) -> HttpResponse:
    """The database is away, read-only, or too busy to give a lock in time: nothing was promised to anybody."""
    return unavailable.answer(request, error)


for _kind in AWAY:
    api.exception_handler(_kind)(_database_away)


@api.exception_handler(Exception)
def _broken(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("request failed", path=request.path, exc_info=error)
    return problem(request, ServerError())
