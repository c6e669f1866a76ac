"""Can enough people decide before its time is over? Told when a proposal is made, and again when people change."""

from dataclasses import dataclass
from datetime import UTC, datetime

from access.presence import Muster, Question, muster
from approvals.models import Proposal
from audit.actions import record
from audit.actors import Actor
from common import prepared
from common.tx import require_transaction


@dataclass(frozen=True, slots=True)
class Manning:
    """``why``: one sentence without names where too few can; empty where enough can."""

    why: str
    roster: str


def manning_of(proposal: Proposal, now: datetime) -> Manning:
    """Who could decide from now on until its time is over, and is not on the proposer's side."""
    groups = (proposal.group_id, *proposal.also_groups) if proposal.group_id else ()
    found = muster(Question(
        proposal.tenant_id, groups, tuple(proposal.also_roles), tuple(proposal.excluded_users), now, proposal.decide_by,
    ))  # fmt: skip
    needed = max(1, proposal.needed)
    return Manning("" if found.able >= needed else _sentence(found, needed, proposal.decide_by), found.roster)


def note_manning(proposal: Proposal, found: Manning, *, by: Actor) -> bool:
    """Keep it beside a locked proposal, as an event where it is news; whether it is."""
    require_transaction()
    was, proposal.unmanned, proposal.roster = proposal.unmanned, found.why, found.roster
    prepared.update(proposal, ["unmanned", "roster"])
    if was == found.why:
        return False
    record(
        by=by, kind="proposal.unmanned" if found.why else "proposal.manned", tenant_id=proposal.tenant_id,
        subject_type="proposal", subject_id=proposal.pk, run_id=proposal.run_id, digest=proposal.digest,
        body={"why": found.why},
    )  # fmt: skip
    return True


def _sentence(found: Muster, needed: int, decide_by: datetime) -> str:
    if not found.asked:
        return "Not enough people may decide this: nobody has the role and the group that are asked."
    people = "person is" if needed == 1 else "people are"
    parts = [
        f"{found.own} on the proposer's side" if found.own else "",
        f"{found.away} away all that time" if found.away else "",
        f"{found.off} not at work before then" if found.off else "",
    ]
    told = ", ".join(part for part in parts if part)
    sentence = (
        f"Not enough people may decide this before {_instant(decide_by)}: {needed} {people} needed, {found.able} can. "
        f"Of {found.asked} who are asked: {told or 'nobody else'}."
    )
    if found.opens_at is not None:
        sentence += f" Work begins again at {_instant(found.opens_at)}."
    return sentence


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
