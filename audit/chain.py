"""How one event becomes one link: the canonical document that is hashed, shared by the sealer and the verifier.

``hash = SHA-256("placet.event.v1\\n" + RFC 8785 bytes of the document)``. The document has ``v``, ``seq``,
``previous`` and the members of `MEMBERS`. ``previous`` is the hash of the tenant's event before it; the first
one has 64 zeros there. ``v`` is 2. Events of before it was recorded through what an actor came have ``v`` 1 and no
``through``: each is hashed for ever as it was written.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, NoReturn

from common.strictjson import MAX_INTEGER, JsonRefused, canonicalize

DOMAIN: Final = b"placet.event.v1\n"
CONTENT_DOMAIN: Final = b"placet.event-content.v1\n"
GENESIS: Final = "0" * 64

MEMBERS: Final = {
    "id": "e.id::text",
    "tenant": "e.tenant_id::text",
    "kind": "e.kind",
    "subject": "e.subject_type || ':' || e.subject_id",
    "run": "e.run_id::text",
    "from": "e.from_state",
    "to": "e.to_state",
    "performed_by": "e.performed_by",
    "on_behalf_of": "e.on_behalf_of",
    "via": "e.via",
    "owner": "e.owner",
    "reason": "e.reason",
    "request_id": "e.request_id",
    "digest": "e.digest",
    "through": "e.through",
}
"""The document's members and the SQL that gives each as text; `at` and `body` come before them."""
_AT: Final = """to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
SELECT_CONTENT: Final = ", ".join([_AT, "e.body::text", *MEMBERS.values()])


class Content(NamedTuple):
    """What an event says: UTC with six digits, jsonb's own text of the body (always the same for the same value,
    and readable whatever is in it), and the other members."""

    at: str
    body: str
    members: dict[str, str | None]

    @property
    def id(self) -> str:
        return str(self.members["id"])

    @property
    def tenant(self) -> str:
        return str(self.members["tenant"])


def content_of(columns: Sequence[Any]) -> Content | None:
    """The content in the columns of `SELECT_CONTENT`; None where an outer join found no event."""
    at, body, *members = columns
    return None if at is None else Content(at, body, dict(zip(MEMBERS, members, strict=True)))


def link_hash(seq: int, previous: str, content: Content) -> str:
    """The hash of the event at place ``seq`` after the event whose hash is ``previous``."""
    return hashlib.sha256(DOMAIN + canonical_link(seq, previous, content)).hexdigest()


def canonical_link(seq: int, previous: str, content: Content) -> bytes:
    """The RFC 8785 bytes of the document.

    Beside ``body`` there are texts, integers and None under plain names: for those the standard encoder gives the
    same bytes as RFC 8785, several times faster. ``at`` and ``body`` sort before all other names.
    """
    return _canonical(content, {"seq": seq, "previous": previous})


def content_hash(content: Content) -> str:
    """Of the event alone, wherever it stands in the chain; so it is known before the event has a place."""
    return hashlib.sha256(CONTENT_DOMAIN + canonical_content(content)).hexdigest()


def canonical_content(content: Content) -> bytes:
    """The RFC 8785 bytes of the document without ``seq`` and ``previous``."""
    return _canonical(content, {})


def _canonical(content: Content, more: dict[str, Any]) -> bytes:
    members = {**more, **content.members, "v": 2}
    if members.get("through") is None:
        members["v"] = 1
        members.pop("through", None)
    rest = _encode(members)
    return b'{"at":"%s","body":%s,%s' % (
        content.at.encode(),
        _canonical_body(content.body),
        rest[1:].encode(),
    )


def _canonical_body(body: str) -> bytes:
    """The body as a value; one that has no canonical form is taken as its text.

    `record` writes none of that kind, but the application role could, and no row may stop a whole chain.
    """
    if body == "{}":
        return b"{}"
    try:
        return _plain(body) or canonicalize(json.loads(body))
    except (JsonRefused, ValueError, RecursionError):
        return canonicalize(body)


_encode: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode


class _NotPlain(Exception):
    """There is a number for which the encoders differ."""


def _refuse(_digits: str) -> NoReturn:
    raise _NotPlain


def _small(digits: str) -> int:
    if len(digits) > 16 or abs(int(digits)) > MAX_INTEGER:
        raise _NotPlain
    return int(digits)


_decode: Final = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse, parse_int=_small).decode


def _plain(body: str) -> bytes | None:
    """The canonical bytes of a body of ASCII texts and small integers; None for any other."""
    if not body.isascii() or "\\u" in body:
        return None
    try:
        return _encode(_decode(body)).encode()
    except _NotPlain:
        return None
