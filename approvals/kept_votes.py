"""Which votes outlive a new version, and why not.

Votes bind to one contract. A plan that is materially the same makes no new version, so they stay where they are, and
the history says so (*carried over*); any other takes the place of the old one and begins without votes, and whoever
had voted is told what did it.
"""

from collections.abc import Mapping
from typing import Any, Final

from approvals.enums import DecisionKind
from approvals.models import Proposal
from approvals.recorded import note
from audit.actors import Actor
from common.sealed import readable
from common.strictjson import JsonRefused, parse

BESIDE: Final = ("operation_version", "target", "pins", "evidence", "policy_version")
"""Members of the contract beside the arguments that make another plan of it. The rest is new in each contract."""


def what_changed(old: Proposal, new: Proposal) -> tuple[str, ...]:
    """What is another in the newer contract: ``arguments/<name>`` each, then members of `BESIDE`; ``contract`` where
    one of them cannot be read any more. Empty: the same was asked anew.
    """
    before, after = _contract(old), _contract(new)
    if before is None or after is None:
        return ("contract",)
    ours, theirs = before["arguments"], after["arguments"]
    names = dict.fromkeys([*theirs, *ours])
    arguments = [f"arguments/{name}" for name in names if _other(name, ours, theirs)]
    return (*arguments, *(name for name in BESIDE if _other(name, before, after)))


def _other(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return name not in before or name not in after or before[name] != after[name]


def _contract(proposal: Proposal) -> Mapping[str, Any] | None:
    try:
        contract = parse(readable(proposal, "contract") or b"")
    except JsonRefused:
        return None
    return contract if isinstance(contract, dict) and isinstance(contract.get("arguments"), dict) else None


def note_dropped(old: Proposal, new: Proposal, *, by: Actor) -> None:
    """Record that approvals of the old version do not count for the new one, and what did it. In the running action."""
    votes = old.decisions.filter(kind=DecisionKind.APPROVE, replaced_at__isnull=True, user__isnull=False)
    dropped = [str(pk) for pk in votes.values_list("pk", flat=True)]
    if dropped:
        body = {"of": str(old.pk), "votes": dropped, "changed": list(what_changed(old, new))}
        note(new, "proposal.votes_dropped", by=by, body=body)
