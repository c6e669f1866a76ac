"""The related record: what the approval was pinned to, what is known of it since, and what else was done to it.

Nobody is asked here: what is shown is the last that a proposal or a person saw, with its age. To look now is a choice
(`repair.choices.record`).
"""

from datetime import datetime

from common import spans
from repair.packet.case import Case
from repair.packet.texts import Part, instant, said
from workflows.models import Command


def record_part(case: Case, now: datetime) -> Part | None:
    """None for a stop before a record was named."""
    proposal, look = case.proposal, case.last_look
    if proposal is None:
        return None
    at, seen_by = (look.at, look.seen_by) if look is not None else (proposal.created_at, proposal.pk)
    return {
        "target": said(proposal.target), "last_looked_at": instant(at), "age": spans.span((now - at).total_seconds()),
        "seen_by": str(seen_by), "pins": [_pin(case, name, tag) for name, tag in sorted(case.pins.items())],
        "changed_since": "yes" if _void_by_pin(case) or differs(case) else ("no" if look else "not known"),
        "same_key": [_order(row) for row in case.same_key[:5]],
        "same_record": [_order(row) for row in case.same_target],
    }  # fmt: skip


def differs(case: Case) -> bool:
    """Whether the newest look at the record found another version of it."""
    return any(case.pins_now.get(name, tag) != tag for name, tag in case.pins.items())


def _void_by_pin(case: Case) -> bool:
    """The worker looked right before sending, and found another version; which one it did not write down."""
    return case.command is not None and case.command.void_reason == "pin"


def _pin(case: Case, name: str, tag: str) -> Part:
    now, asked, look = case.pins_now.get(name), case.proposal, case.last_look
    return {
        "record": said(name), "then": said(tag), "then_at": instant(asked.created_at if asked else None),
        "now": said(now) if now is not None else None,
        "now_at": instant(look.at) if look is not None and now is not None else None,
        "same": now == tag if now is not None else None,
    }  # fmt: skip


def _order(row: Command) -> Part:
    return {
        "command_id": str(row.pk), "run_id": str(row.run_id), "operation": row.operation, "status": row.status,
        "effect": row.effect, "provider_reference": said(row.provider_reference) or None,
        "created_at": instant(row.created_at), "ended_at": instant(row.ended_at),
    }  # fmt: skip
