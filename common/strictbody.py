"""Bodies of API requests: strict JSON of a limited size, and nothing that the schema does not name.

``body: Annotated[CancelIn, StrictBody()]`` in place of django-ninja's own ``Body``, whose parser keeps the last of
two equal keys and takes ``NaN``.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from django.http import HttpRequest, RawPostDataException
from django.http.request import UnreadablePostError
from django.utils.datastructures import MultiValueDict
from ninja.params.models import Body as NinjaBody
from ninja.params.models import BodyModel
from ninja.parser import Parser
from pydantic import BaseModel, ConfigDict, ValidationError

from common.errors import InvalidInput
from common.problems import BadRequest, NotJson, check_length
from common.strictjson import DEFAULT_LIMITS, JsonValue, Limits, parse

if TYPE_CHECKING:
    from ninja import NinjaAPI

Checked = TypeVar("Checked", bound=BaseModel)
SMALL: Final = DEFAULT_LIMITS
"""Bodies without evidence or inputs."""
LARGE: Final = Limits(
    max_bytes=2_097_152, max_depth=40, max_nodes=200_000, max_string=1_048_576, object_only=False
)
"""Arrays of many items. What they carry passes its own limits again."""
EVIDENCE: Final = Limits(
    max_bytes=8_388_608, max_depth=40, max_nodes=200_000, max_string=8_388_608, object_only=False
)
"""Bodies with pieces of evidence: a log or a thread of some megabytes is read a page at a time by whoever decides."""


class Body(BaseModel):
    """Base of all request bodies: unknown members are refused, and no value is turned into another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def read_json(request: HttpRequest, limits: Limits) -> JsonValue:
    """The body of a request. Raises NotJson (415), BodyTooLarge (413, before reading) or JsonRefused (400)."""
    _check_headers(request, limits)
    try:
        raw = request.body
    except (UnreadablePostError, RawPostDataException) as error:
        raise BadRequest from error
    return parse(raw, limits)


def _check_headers(request: HttpRequest, limits: Limits) -> None:
    charset = (request.content_params or {}).get("charset", "utf-8").lower().replace("_", "-")
    if request.content_type != "application/json" or charset not in ("utf-8", "utf8"):
        raise NotJson
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise NotJson
    check_length(request, limits.max_bytes)


class _StrictModel(BodyModel):
    """How django-ninja gets at the data: in its place, so that its own parser never sees a body."""

    limits: ClassVar[Limits] = SMALL

    @classmethod
    def get_request_data(
        cls, request: HttpRequest, api: "NinjaAPI", path_params: dict[str, Any]
    ) -> dict[str, Any]:
        name: str = cls.__read_from_single_attr__
        return {name: read_json(request, cls.limits)}


class _LargeModel(_StrictModel):
    limits: ClassVar[Limits] = LARGE


class _EvidenceModel(_StrictModel):
    limits: ClassVar[Limits] = EVIDENCE


class StrictBody(NinjaBody):  # type: ignore[misc]  # django-ninja's way, though pydantic calls it final
    """Marks a parameter as the strictly read body of at most 256 KiB."""

    _model = _StrictModel

    @classmethod
    def _param_source(cls) -> str:
        return "body"

    def __init__(self) -> None:
        super().__init__(...)


class LargeBody(StrictBody):  # type: ignore[misc]
    """The same for bodies of at most 2 MiB."""

    _model = _LargeModel


class EvidenceBody(StrictBody):  # type: ignore[misc]
    """The same for bodies of at most 8 MiB."""

    _model = _EvidenceModel


class BadText(InvalidInput):
    """A query parameter holds U+0000, which no text of ours does."""

    code = "bad_text"


class QueryParser(Parser):
    """Query parameters as django-ninja reads them, but for U+0000, at which PostgreSQL would break off."""

    def parse_querydict(
        self, data: MultiValueDict[str, str], list_fields: list[str], request: HttpRequest
    ) -> dict[str, Any]:
        if any("\x00" in value for _, values in data.lists() for value in values):
            raise BadText
        found: dict[str, Any] = super().parse_querydict(data, list_fields, request)
        return found


def checked(model: type[Checked], value: Any) -> Checked:
    """The value as the schema has it. Raises InvalidInput with every place that does not fit, never with a value."""
    try:
        return model.model_validate(value)
    except ValidationError as invalid:
        raise InvalidInput(errors=[schema_error(dict(error)) for error in invalid.errors()]) from None


def schema_error(error: dict[str, Any]) -> dict[str, str]:
    """One of pydantic's errors as clients see it: where, and what. The value is left out; it may be personal."""
    path = [str(step) for step in error["loc"]]
    return {"path": "/".join(path), "code": error["type"], "message": error["msg"]}
