"""Taking a packet out of the house. Whoever does is written down first, and gets no personal value."""

from dataclasses import asdict
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from access.policies import membership_of
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.disclosure import Recipient
from common.errors import NotFound
from common.signing import sign
from common.strictjson import canonicalize
from common.tx import action
from common.verify_packet import DOMAIN
from repair.choices import offered
from repair.packet.case import case_of
from repair.packet.document import document_of
from repair.packet.markdown import markdown
from repair.selectors import get_packet

JSON: Final = "json"
MARKDOWN: Final = "md"


@action
def export_packet(*, tenant_id: UUID, packet_id: UUID, kind: str, by: Actor, clock: Clock) -> bytes:
    """The packet as a signed document, or as Markdown. Raises NotFound, for another tenant's too."""
    packet = get_packet(tenant_id, packet_id)
    membership, now = membership_of(by.user_id, tenant_id), clock()
    if membership is None:
        raise NotFound
    choices = offered(packet, membership, now)
    document = document_of(case_of(packet), Recipient(tenant_id), now, choices=choices)
    made = signed(document) if kind == JSON else markdown(document).encode()
    record(
        by=by, kind="packet.exported", tenant_id=tenant_id, subject_type="packet", subject_id=packet_id,
        run_id=packet.run_id, digest=sha256(made).hexdigest(), body={"as": kind, "bytes": len(made)},
    )  # fmt: skip
    return made


def signed(document: dict[str, Any]) -> bytes:
    """Signed is ``"placet.packet.v1\\n"`` and the RFC 8785 bytes of the document without its member ``signature``."""
    signature = asdict(sign(DOMAIN, canonicalize(document)))
    return canonicalize(document | {"signature": signature})
