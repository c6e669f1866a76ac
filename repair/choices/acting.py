"""Make a choice: one winner for each state of a packet, everything checked once more, and all of it in the history.

The packet is moved first, in a transaction of its own: whoever saw an older state of it loses there, and is told who
was faster. Then the action behind the choice runs, and checks everything again under its own locks. If this process
ends between the two, the packet says who chose what, and is as open as before.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from access.models import Membership
from access.policies import check_role, membership_of
from audit.actions import record
from audit.actors import Actor, Via
from common.clock import Clock
from common.crashpoints import crashpoint
from common.errors import NotFound, Refused
from common.ids import new_id
from common.tx import action
from repair.choices.case import REPAIRERS, Case, Seen, load
from repair.choices.causes import cause_named
from repair.choices.declared import Choice, Typed
from repair.choices.facts import Why
from repair.choices.registry import BY_CODE
from repair.enums import PacketStatus
from repair.models import RepairMove, RepairPacket
from workflows.actions.attesting import TokenCannotAttest
from workflows.enums import SettledBy

LOOKED_AT_WITHIN: Final = timedelta(hours=24)
BY_ITSELF: Final = (
    SettledBy.ANSWER, SettledBy.LATE_ANSWER, SettledBy.LOOKUP, SettledBy.RESEND, SettledBy.EARLIER_EFFECT,
)  # fmt: skip
"""Who or what settles an order without a person."""


class UnknownChoice(NotFound):
    """There is no such choice."""


class ChoiceNotOffered(Refused):
    """This is not offered here, and so it is not done. The details tell why."""

    code = "choice_not_offered"


class Overtaken(Refused):
    """This case has moved since you looked at it, so nothing was done. Look at where it stands now."""

    code = "packet_moved"


def choice_named(code: str) -> Choice:
    """Raises UnknownChoice."""
    if code not in BY_CODE:
        raise UnknownChoice
    return BY_CODE[code]


def choose(
    *, tenant_id: UUID, packet_id: UUID, choice: Choice, seen: Seen, typed: Typed, membership: Membership, by: Actor,
    clock: Clock,
) -> str:  # fmt: skip
    """Do it; returns what came of it, as a sentence.

    1. read the case anew: was it seen as it is, and is the choice offered for it,
    2. move the packet, under its lock: of several at once one wins, and the others are `Overtaken`,
    3. run the action behind it, which locks and checks for itself,
    4. close the packet where the choice does, and nothing has closed it yet.

    For signed-in operators, owners and admins. Raises a `Refused`, which is in the history too.
    """
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotAttest()
    case = load(tenant_id, packet_id, membership, clock())
    try:
        refusal = why_refused(case, choice, seen)
        if refusal is not None:
            raise refusal
        told = _begin(case, choice, seen, typed, by=by, clock=clock)
        crashpoint("CP15")
        if choice.act is not None:
            told = choice.act(case, typed, by, clock)
        if choice.finish is not None:
            _finish(case, choice.finish, by=by, clock=clock)
    except NotFound:
        raise
    except Refused as refused:
        _record_refused(case.packet, choice, refused, by=by, clock=clock)
        raise
    return told


def why_refused(case: Case, choice: Choice, seen: Seen | None) -> Refused | None:
    """Whether it was seen as it is, and is offered for it; by a read under no lock."""
    if seen != case.seen:
        return overtaken(case)
    why = choice.rule(case.facts)
    return not_offered(choice, why) if why is not None else None


def refuse(case: Case, choice: Choice, refusal: Refused | None, *, by: Actor, clock: Clock) -> Refused:
    """Write down that somebody tried it; returns what they are told."""
    refusal = refusal or Overtaken()
    _record_refused(case.packet, choice, refusal, by=by, clock=clock)
    return refusal


def not_offered(choice: Choice, why: Why) -> ChoiceNotOffered:
    return ChoiceNotOffered(f"“{choice.title}” is not offered: {why.words}", choice=choice.code, why=why.code)


def overtaken(case: Case) -> Overtaken:
    """Who was faster, with what and when, as far as a person was."""
    packet = case.packet
    last = (
        RepairMove.objects.filter(packet=packet, refused="")
        .select_related("user")
        .order_by("-at", "-id")
        .first()
    )
    facts: dict[str, Any] = {"status": packet.status, "state_version": packet.state_version}
    if last is None or _settled_since(case, last.at):
        return Overtaken(**facts)
    title = BY_CODE[last.choice].title if last.choice in BY_CODE else last.choice
    said = f"{last.user} was faster: “{title}”, {last.at:%d %b %H:%M:%S} UTC. Look at where it stands now."
    return Overtaken(said, by=f"user:{last.user_id}", choice=last.choice, at=last.at.isoformat(), **facts)


def _settled_since(case: Case, at: datetime) -> bool:
    """Whether something else than a person has settled the order after this moment."""
    command = case.command
    if command is None or command.ended_at is None or command.ended_at <= at:
        return False
    return command.settled_by in BY_ITSELF


@action
def _begin(case: Case, choice: Choice, seen: Seen, typed: Typed, *, by: Actor, clock: Clock) -> str:
    check_role(membership_of(by.user_id, case.tenant_id), *REPAIRERS)
    packet = _locked(case)
    now = clock()
    if (packet.wait_id, packet.state_version) != (seen.wait_id, seen.state_version):
        raise overtaken(Case(packet, case.run, case.step, case.proposal, case.command, case.membership, now))
    before, told = packet.status, ""
    if choice.inside is not None:
        told = choice.inside(packet, typed, by, now)
    packet.state_version += 1
    if packet.status in PacketStatus.open_states and choice.inside is not None:
        packet.wait_id, packet.waiting_until = new_id(), now + LOOKED_AT_WITHIN
    packet.save()
    _write_move(packet, choice, typed, by=by, now=now)
    _record(packet, "packet.chosen", choice.code, by=by, before=before)
    return told


def _locked(case: Case) -> RepairPacket:
    rows = RepairPacket.objects.select_for_update(of=("self",), no_key=True)
    return rows.get(tenant_id=case.tenant_id, pk=case.packet.pk)


def _write_move(packet: RepairPacket, choice: Choice, typed: Typed, *, by: Actor, now: datetime) -> None:
    assert by.user_id is not None
    cause = typed.get("cause") if choice.resolves else ""
    RepairMove.objects.create(
        tenant_id=packet.tenant_id, packet=packet, choice=choice.code, user_id=by.user_id, at=now,
        root_cause=cause_named(packet.tenant_id, cause, by=by, now=now) if cause else None,
        words=typed.get("words", ""),
    )  # fmt: skip


@action
def _finish(case: Case, finish: Callable[[RepairPacket, datetime], None], *, by: Actor, clock: Clock) -> None:
    packet = _locked(case)
    if packet.status not in PacketStatus.open_states:
        return
    before = packet.status
    finish(packet, clock())
    packet.state_version += 1
    packet.save()
    _record(packet, "packet.resolved", packet.resolution, by=by, before=before)


def _record(packet: RepairPacket, kind: str, what: str, *, by: Actor, before: str) -> None:
    record(
        by=by, kind=kind, tenant_id=packet.tenant_id, subject_type="packet", subject_id=packet.pk,
        run_id=packet.run_id, from_state=before if packet.status != before else "",
        to_state=packet.status if packet.status != before else "", reason=packet.cause,
        body={"step": packet.step, "choice": what, "version": packet.state_version, "owner": packet.owner,
              "assignee": str(packet.assignee_id) if packet.assignee_id else None},
    )  # fmt: skip


@action
def _record_refused(
    packet: RepairPacket, choice: Choice, refused: Refused, *, by: Actor, clock: Clock
) -> None:
    """What was refused changes nothing, and is known to have been tried, by whom and why it was not done."""
    assert by.user_id is not None
    why = refused.details.get("why", refused.code)
    RepairMove.objects.create(
        tenant_id=packet.tenant_id,
        packet=packet,
        choice=choice.code,
        user_id=by.user_id,
        at=clock(),
        refused=why,
    )
    record(
        by=by, kind="packet.choice_refused", tenant_id=packet.tenant_id, subject_type="packet", subject_id=packet.pk,
        run_id=packet.run_id, reason=why, body={"step": packet.step, "choice": choice.code},
    )  # fmt: skip
