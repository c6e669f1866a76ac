"""The provider's API as typed calls: each is one try and says how far it got, and judges nothing."""

import json
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from common.deadline import Deadline
from common.outgoing import Outcome, OutgoingRequest, send

READ_LIMIT = 512 * 1024
EFFECT_LIMIT = 64 * 1024


@dataclass(frozen=True)
class Provider:
    """Where the provider listens, without a slash at the end, and the key that says which tenant asks."""

    base_url: str
    api_key: str = field(repr=False)


@dataclass(frozen=True)
class Refund:
    """What POST /refunds takes: ``amount`` is a decimal text in the scale of ``currency``."""

    order: str
    amount: str
    currency: str
    reason: str
    receipt_to: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class Reversal:
    """What POST /reversals takes: a refund of an order, and how much that was."""

    refund: str
    order: str
    amount: str
    currency: str


@dataclass(frozen=True)
class Message:
    """What POST /messages takes: a mail in the merchant's name."""

    to: str
    subject: str
    text: str


def get_order(provider: Provider, order: str, *, deadline: Deadline, etag: str | None = None) -> Outcome:
    """The order with its refunds so far and its ETag; 304 when it is still the one of ``etag``."""
    headers = {"If-None-Match": etag} if etag else {}
    return _get(provider, f"/orders/{quote(order, safe='')}", deadline, headers)


def get_refunds(provider: Provider, order: str, *, deadline: Deadline) -> Outcome:
    """All refunds of an order, oldest first."""
    return _get(provider, f"/orders/{quote(order, safe='')}/refunds", deadline)


def get_customer(provider: Provider, customer: str, *, deadline: Deadline) -> Outcome:
    return _get(provider, f"/customers/{quote(customer, safe='')}", deadline)


def lookup_refund(provider: Provider, key: str, *, deadline: Deadline) -> Outcome:
    """The refunds that were made under an idempotency key: none, one, or, without dedup, several."""
    return _get(provider, "/refunds?" + urlencode({"key": key}), deadline)


def lookup_message(provider: Provider, key: str, *, deadline: Deadline) -> Outcome:
    return _get(provider, "/messages?" + urlencode({"key": key}), deadline)


def issue_refund(
    provider: Provider, refund: Refund, *, key: str, if_match: str | None, deadline: Deadline
) -> Outcome:
    """Refund once per ``key``; refused with 412 when the order is not the one of ``if_match`` any more."""
    return _post(provider, "/refunds", _json(refund), key, deadline, if_match)


def lookup_reversal(provider: Provider, key: str, *, deadline: Deadline) -> Outcome:
    return _get(provider, "/reversals?" + urlencode({"key": key}), deadline)


def reverse_refund(
    provider: Provider, reversal: Reversal, *, key: str, if_match: str | None, deadline: Deadline
) -> Outcome:
    """Call a refund back once per ``key``, while the provider has not paid it out."""
    return _post(provider, "/reversals", _json(reversal), key, deadline, if_match)


def send_message(provider: Provider, message: Message, *, key: str, deadline: Deadline) -> Outcome:
    """Send a mail once per ``key``."""
    return _post(provider, "/messages", _json(message), key, deadline)


def _json(body: Refund | Reversal | Message) -> bytes:
    """The same bytes for the same values, because the provider compares bodies under one key byte by byte."""
    values = {name: value for name, value in vars(body).items() if value is not None}
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _get(provider: Provider, path: str, deadline: Deadline, headers: dict[str, str] | None = None) -> Outcome:
    sent = _authorization(provider) | (headers or {})
    return send(OutgoingRequest("GET", provider.base_url + path, sent, max_bytes=READ_LIMIT), deadline)


def _post(
    provider: Provider, path: str, body: bytes, key: str, deadline: Deadline, if_match: str | None = None
) -> Outcome:
    headers = _authorization(provider) | {"Content-Type": "application/json", "Idempotency-Key": key}
    if if_match is not None:
        headers["If-Match"] = if_match
    request = OutgoingRequest("POST", provider.base_url + path, headers, body, EFFECT_LIMIT)
    return send(request, deadline)


def _authorization(provider: Provider) -> dict[str, str]:
    return {"Authorization": f"Bearer {provider.api_key}"}
