"""``POST /hooks/{endpoint_id}``: where outside systems deliver webhooks. Neither token nor session: a signature."""

from uuid import UUID

from django.http import HttpRequest, RawPostDataException
from django.http.request import UnreadablePostError
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, ConfigDict

from access.auth import request_id_of
from common.clock import db_clock
from common.problems import BadRequest, NotJson, Problem, check_length
from common.rates import check_caller
from common.strictjson import DEFAULT_LIMITS
from workflows.actions.hooks import receive
from workflows.webhooks import Message

router = Router(tags=["hooks"])
_LONGEST_ADDRESS = 64


class DeliveryOut(BaseModel):
    """The delivery is stored and will be worked on. A second delivery of the same gets the same answer."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"delivery_id": "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"}]}
    )

    delivery_id: UUID


@router.post(
    "/hooks/{endpoint_id}",
    response={202: DeliveryOut, frozenset({400, 401, 413, 415, 422, 429, 503}): Problem},
    auth=None,
    summary="Deliver a webhook",
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    },
)
def deliver(request: HttpRequest, endpoint_id: str) -> Status[dict[str, UUID]]:
    """202 once the signature holds and the delivery is stored; it is worked on afterwards.

    Signed as Standard Webhooks are (``webhook-id``, ``webhook-timestamp``, ``webhook-signature``), or as the endpoint
    was set up. The same id again gets the same answer and changes nothing; with another body 422 ``event_conflict``.
    401 ``hook_refused`` does not say what was wrong.
    """
    message = Message({name.lower(): value for name, value in request.headers.items()}, _raw(request))
    received = receive(
        address=endpoint_id[:_LONGEST_ADDRESS], message=message, clock=db_clock,
        request_id=request_id_of(request),
        before=lambda endpoint: check_caller(f"endpoint:{endpoint.pk}", endpoint.tenant_id),
    )  # fmt: skip
    return Status(202, {"delivery_id": received.delivery.pk})


def _raw(request: HttpRequest) -> bytes:
    """The body as it came, of at most 256 KiB; nothing is read of a longer one."""
    check_length(request, DEFAULT_LIMITS.max_bytes)
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise NotJson
    try:
        return request.body
    except (UnreadablePostError, RawPostDataException) as error:
        raise BadRequest from error
