"""Errors of the API as problem documents (RFC 9457), each with a stable ``code`` of the list in `docs/errors.md`.

A refusal says what it is by itself. Everything else that goes wrong becomes one of the few documents below, with a
request id and nothing about our insides.
"""

import json
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from pydantic import BaseModel, ConfigDict, Field

from common.errors import NotFound, Refused
from common.strictjson import JsonRefused

MEDIA_TYPE: Final = "application/problem+json"
API_ROOT: Final = "/api/"
TYPE_PREFIX: Final = "urn:placet:problem:"


class Problem(BaseModel):
    """An RFC 9457 problem document. Programs look at ``code``; ``details`` holds facts that help to go on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:placet:problem:digest_mismatch",
                    "title": "The action is not the one that you were shown.",
                    "status": 409,
                    "detail": "The action is not the one that you were shown. Open the page again.",
                    "code": "digest_mismatch",
                    "instance": "/api/v1/proposals/0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11/decisions",
                    "request_id": "0199d3f07b7e7cc28f606c1f0d3c5a12",
                    "details": {},
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str
    request_id: str
    details: dict[str, Any] = Field(default_factory=dict)


class Unavailable(Refused):
    """The service cannot do this at the moment. Nothing was changed by this request, or you will find out by asking
    for the same thing again."""

    code = "unavailable"
    http_status = 503


class ServerError(Refused):
    """Something went wrong on our side. The request id leads to the details in our logs."""

    code = "internal_error"
    http_status = 500


class MethodNotAllowed(Refused):
    """This address does not take that method."""

    code = "method_not_allowed"
    http_status = 405


class BadRequest(Refused):
    """The request could not be read."""

    code = "bad_request"
    http_status = 400


class BodyTooLarge(Refused):
    """The body is larger than this call takes. It was not read."""

    code = "too_large"
    http_status = 413


class NotJson(Refused):
    """This call takes application/json in UTF-8, without compression."""

    code = "unsupported_media_type"
    http_status = 415


class RefusedJson(Refused):
    """The body is not JSON that everybody reads in the same way. The code says what is wrong with it."""

    code = "syntax"
    http_status = 400

    def __init__(self, refused: JsonRefused) -> None:
        super().__init__(refused.message, path=refused.path)


_LENGTH: Final = re.compile(r"[0-9]{1,15}", re.ASCII)


def check_length(request: HttpRequest, most: int) -> None:
    """Raises BodyTooLarge for more than ``most`` bytes, and for a length that is not in plain digits."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not _LENGTH.fullmatch(length) or int(length) > most:
        raise BodyTooLarge(limit=most)


STRICT_JSON_CODES: Final = (
    "bom", "confusable_keys", "duplicate_key", "integer_out_of_range", "invalid_utf8", "key_too_long",
    "lone_surrogate", "noncharacter", "not_canonical", "nul", "number_overflow", "number_precision",
    "raw_control_char", "string_too_long", "syntax", "too_deep", "too_many_nodes", "top_level_not_object",
    "trailing_data",
)  # fmt: skip
"""What the strict parser refuses, each with status 400; `too_large` has 413."""


def document_of(request: HttpRequest, refused: Refused, *, code: str = "") -> dict[str, Any]:
    """The problem document of a refusal; ``code`` where it is narrower than the refusal's own."""
    code = code or refused.code
    return {
        "type": TYPE_PREFIX + code,
        "title": title_of(type(refused)),
        "status": refused.http_status,
        "detail": refused.message,
        "code": code,
        "instance": request.path,
        "request_id": str(getattr(request, "request_id", "")),
        "details": refused.details,
    }


def problem(request: HttpRequest, refused: Refused, *, code: str = "") -> HttpResponse:
    """The answer to a refused request. ``retry_after`` among the details becomes a header too."""
    document = document_of(request, refused, code=code)
    status: int = document["status"]
    response = HttpResponse(json.dumps(document, default=str), status=status, content_type=MEDIA_TYPE)
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    if "retry_after" in refused.details:
        response["Retry-After"] = str(refused.details["retry_after"])
    return response


def title_of(kind: type[Refused]) -> str:
    """The first sentence of a refusal: the same for each occurrence, as RFC 9457 wants it."""
    return re.split(r"(?<=[.])\s", " ".join((kind.__doc__ or "").split()), maxsplit=1)[0]


def json_problem(request: HttpRequest, refused: JsonRefused) -> HttpResponse:
    """The answer to a body that is not strict JSON."""
    if refused.code == BodyTooLarge.code:
        return problem(request, BodyTooLarge(refused.message))
    return problem(request, RefusedJson(refused), code=refused.code)


_BY_STATUS: Final[Mapping[int, type[Refused]]] = {
    400: BadRequest,
    404: NotFound,
    405: MethodNotAllowed,
    413: BodyTooLarge,
    503: Unavailable,
}


class ProblemMiddleware:
    """Below ``/api/`` no error is a page: what Django itself refuses there becomes a problem document too.

    Nothing from there is kept by caches: an answer is true for its instant and for its credential.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if not request.path.startswith(API_ROOT):
            return response
        response.headers.setdefault("Cache-Control", "no-store")
        ours = response.headers.get("Content-Type", "").startswith(MEDIA_TYPE)
        if response.status_code < HTTPStatus.BAD_REQUEST or ours:
            return response
        refused = _BY_STATUS.get(response.status_code)
        if refused is None:
            refused = BadRequest if response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR else ServerError
        answer = problem(request, refused())
        if "Allow" in response:
            answer["Allow"] = response["Allow"]
        return answer
