"""Ask again, with one click: a new version of what lapsed, expired or was invalidated while nothing happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KT

from access.enums import Role
from access.policies import check_role, membership_of
from approvals.actions import lock_proposal
from approvals.enums import ProposalStatus
from approvals.models import Evidence, Proposal
from approvals.shown import view_of
from approvals.viewdoc import ASSERTED
from audit.actions import record
from audit.actors import Actor, Via
from audit.models import Event
from common.clock import Clock
from common.content_errors import ContentErased
from common.content_keys import SealBroken
from common.digests import evidence_digest, material_digest, same
from common.errors import NotFound, Refused
from common.sealed import check_intact, readable
from common.strictjson import JsonRefused
from common.tx import action
from workflows import registry
from workflows.actions.attesting import TokenCannotAttest
from workflows.actions.decided import lock_command_of
from workflows.actions.freezing import UnknownHold
from workflows.actions.outside import AlreadySuperseded, OperationNotOffered, prepare_or_refuse
from workflows.actions.proposing import create_proposal, piece_again
from workflows.actions.replaying import lock_effects_of
from workflows.actions.settle import lock_run, settle_run, steps_of
from workflows.classify import Meaning
from workflows.contracts import parse_object, read_contract
from workflows.endings import ending_of
from workflows.enums import CommandStatus, StepStatus, WaitingFor
from workflows.hooks import settled
from workflows.models import Attempt, Command, Hold, Run, Step
from workflows.operations import Site
from workflows.preparing import Prepared
from workflows.results import Propose
from workflows.secret_arguments import by_name_alone
from workflows.selectors import get_run
from workflows.tenants import slug_of

ASKERS: Final = (Role.OPERATOR, Role.OWNER, Role.ADMIN)
ENDED: Final = (ProposalStatus.LAPSED, ProposalStatus.INVALIDATED, ProposalStatus.EXPIRED)
"""How a proposal ends without effect and without a rejection; together with what the table of endings offers."""
MOST_AT_ONCE: Final = 200


class NothingToAskAgain(Refused):
    """Nothing waits here to be asked again: it goes on, it has ended, or a person must look at it first."""

    code = "nothing_to_ask_again"


class CancelRequested(Refused):
    """This run is to be cancelled, so nothing new is asked for in it."""

    code = "cancel_requested"


class MayHaveHappened(Refused):
    """A late answer says that it happened after all. Look at the provider first: asking again could do it twice."""

    code = "may_have_happened"


class ContractChanged(Refused):
    """What is stored of this action is not what was proposed, so nothing is asked again from it."""

    code = "contract_changed"


@dataclass(frozen=True, slots=True)
class NotAsked:
    """One step that could not be asked again, and why."""

    run_id: UUID
    step: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """What came of asking again about many: the new proposals, the refusals, and how many are left for another time."""

    proposals: tuple[UUID, ...]
    refused: tuple[NotAsked, ...]
    left: int


def ask_again(*, tenant_id: UUID, run_id: UUID, step: str, by: Actor, clock: Clock) -> Proposal:
    """Make a new version of the step's last proposal, and let people decide on it; returns it.

    1. what was proposed is prepared anew outside any transaction: the same material arguments and evidence, by the
       operation and policy of today, with fresh facts and pins,
    2. proposal, command and run are locked, and it is checked again whether it is still to be asked,
    3. the new version takes the old one's place. Its key is the old one while the action is the same (design, 5).

    For operators, owners and admins in a session. Who asks again proposes nothing of their own, so they may decide on
    it too, where they review. Raises a `Refused`, also when the policy refuses by now or the record is gone; nothing
    changes then. Of two people who ask at once, one is told AlreadySuperseded.
    """
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotAttest()
    run, row = get_run(tenant_id, run_id), step_of(tenant_id, run_id, step)
    check_role(membership_of(by.user_id, tenant_id), *ASKERS)
    old = last_proposal(row)
    _check_offered(run, row, old, Command.objects.filter(tenant_id=tenant_id, proposal=old).first())
    prepared = prepare_again(run, old)
    return _ask(tenant_id, old.pk, prepared, by=by, clock=clock)


def step_of(tenant_id: UUID, run_id: UUID, key: str) -> Step:
    """Raises NotFound."""
    found = next((step for step in steps_of(get_run(tenant_id, run_id)) if step.key == key), None)
    if found is None:
        raise NotFound()
    return found


def last_proposal(step: Step) -> Proposal:
    """Raises NothingToAskAgain where nothing was ever proposed."""
    if step.proposal_id is None:
        raise NothingToAskAgain(step=step.status)
    return Proposal.objects.get(tenant_id=step.tenant_id, pk=step.proposal_id)


def _check_offered(run: Run, step: Step, old: Proposal, command: Command | None) -> None:
    """Whether the step waits for a person because its last proposal ended in one of the ways that may be repeated."""
    if step.proposal_id != old.pk:
        raise AlreadySuperseded(proposal_id=str(step.proposal_id))
    if old.supersedes_id is not None and old.is_live:
        raise AlreadySuperseded(proposal_id=str(old.pk))
    waits = step.status == StepStatus.WAITING and step.waiting_for == WaitingFor.PERSON
    if not waits or not _ended_without_a_no(old) or not _may_repeat(command):
        raise NothingToAskAgain(step=step.status, proposal_status=old.status)
    if command is not None and happened_late(command):
        raise MayHaveHappened(command_id=str(command.pk))
    if run.cancel_requested_at is not None:
        raise CancelRequested()


def happened_late(command: Command) -> bool:
    """Whether the worker of a try came back after the end and said that it had happened."""
    said = Attempt.objects.filter(command=command, late_evidence__meaning=Meaning.CONFIRMED.value)
    return said.exists()


def _ended_without_a_no(old: Proposal) -> bool:
    """Of those that nobody decided in time: not one whose reviewer wished for changes, which a repetition is not."""
    return old.status in ENDED and (old.status != ProposalStatus.EXPIRED or old.decided_at is None)


def _may_repeat(command: Command | None) -> bool:
    """Whether the table of endings offers it. A proposal that nobody decided in time never had a command."""
    return command is None or (command.status in CommandStatus.final_states and ending_of(command).ask_again)


# -- outside any transaction --------------------------------------------------------------------------------------


def prepare_again(run: Run, old: Proposal, changes: Mapping[str, Any] | None = None) -> Prepared:
    """What was proposed, by the operation, policy and facts of today, with some arguments changed where a person edits.

    Raises OperationNotOffered, ContractChanged, and what `prepare_or_refuse` raises.
    """
    flow = registry.workflow(run.workflow)
    if old.operation not in {operation.name for operation in flow.operations}:
        raise OperationNotOffered()
    contract, pieces = _stored(old), list(old.evidence.all())
    if not _is_the_evidence(contract, pieces):
        raise ContractChanged()
    evidence = tuple(piece_again(row) for row in pieces)
    site = Site(run.tenant_id, slug_of(run.tenant_id), run.on_behalf_of)
    arguments = {**arguments_of(old), **(changes or {})}
    prepared = prepare_or_refuse(site, Propose(old.operation, arguments, old.reason, evidence))
    return replace(prepared, asserted_pins=_still_asserted(old, prepared))


def arguments_of(old: Proposal) -> dict[str, Any]:
    """All arguments of a stored proposal, as JSON; secrets by their names alone. Raises ContractChanged.

    Also where anything else that a next version takes over does not open: it must not go on without it.
    """
    contract = _stored(old)
    try:
        check_intact(old, "volatile", "reason")
    except (ContentErased, SealBroken) as error:
        raise ContractChanged() from error
    arguments = {**contract["arguments"], **parse_object(bytes(old.volatile))}
    return by_name_alone(registry.operation(old.operation).arguments, arguments)


def _stored(old: Proposal) -> Mapping[str, Any]:
    """The contract, if its material arguments are those that were proposed: reviewers would take changed ones for them.

    The keyed digest tells, also where other bytes of the contract were changed.
    """
    try:
        contract = read_contract(readable(old, "contract") or b"")
        digest = material_digest(
            old.tenant_id, operation=contract["operation"], version=contract["operation_version"],
            target=contract["target"], arguments=dict(contract["arguments"]),
        )  # fmt: skip
    except (JsonRefused, AssertionError, KeyError, TypeError, ValueError) as error:
        raise ContractChanged() from error
    if not same(digest, old.material_digest):
        raise ContractChanged()
    return contract


def _is_the_evidence(contract: Mapping[str, Any], pieces: Sequence[Evidence]) -> bool:
    found = [evidence_digest(bytes(row.salt), readable(row, "content") or b"") for row in pieces]
    return found == contract.get("evidence")


def _still_asserted(old: Proposal, prepared: Prepared) -> tuple[str, ...]:
    """The proposer's own words about records that the operation does not pin by itself, not today either."""
    rows = [row.text for row in view_of(old).unbound if row.label == ASSERTED]
    pinned = tuple(f"{record_} as " for record_ in prepared.draft.pins)
    return tuple(text for text in rows if not text.startswith(pinned))


# -- under the locks ----------------------------------------------------------------------------------------------


@action
def _ask(tenant_id: UUID, old_id: UUID, prepared: Prepared, *, by: Actor, clock: Clock) -> Proposal:
    lock_effects_of(tenant_id, old_id, prepared.draft)
    old = lock_proposal(tenant_id, old_id)
    command = lock_command_of(old)
    run = lock_run(tenant_id, old.run_id)
    now = clock()
    check_role(membership_of(by.user_id, tenant_id), *ASKERS)
    step = next(step for step in steps_of(run) if step.key == old.step)
    _check_offered(run, step, old, command)
    # What stopped here is over; what stops now, such as nobody being eligible, opens a packet of its own.
    settled(run, step.key, "asked_again", by=by, at=now)
    proposal = create_proposal(
        run, step, prepared, tenant=slug_of(tenant_id), by=by, clock=clock, now=now, supersedes=old
    )
    _record_asked(step, old, proposal, by=by)
    if run.user_message == registry.contract_of(run.workflow).stopped_tell:
        run.user_message = ""  # it goes on
    settle_run(run, by=by, now=now)
    return proposal


def _record_asked(step: Step, old: Proposal, proposal: Proposal, *, by: Actor) -> None:
    record(
        by=by, kind="step.asked_again", tenant_id=step.tenant_id, subject_type="step", subject_id=step.pk,
        run_id=step.run_id, reason=old.end_reason, digest=proposal.digest,
        body={
            "key": step.key, "proposal_id": str(proposal.pk), "instead_of": str(old.pk), "ended": old.status,
            "same_key": proposal.idempotency_key == old.idempotency_key,
        },
    )  # fmt: skip


# -- everything that a hold let lapse -----------------------------------------------------------------------------


def ask_again_all(*, tenant_id: UUID, hold_id: UUID, by: Actor, clock: Clock) -> AskedAgain:
    """Ask again about every action of the tenant that ended while this freeze or open circuit held it, the oldest
    first, each in a transaction of its own; one that is refused leaves the others as they are.

    At most `MOST_AT_ONCE` of them, because each is read anew from outside. Raises UnknownHold, also for another
    tenant's; one of the whole installation is everybody's.
    """
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotAttest()
    ours = Q(tenant_id=tenant_id) | Q(tenant__isnull=True)
    if not Hold.objects.filter(ours, pk=hold_id).exists():
        raise UnknownHold()
    check_role(membership_of(by.user_id, tenant_id), *ASKERS)
    waiting = list(ended_under(tenant_id, hold_id).values_list("run_id", "step__key"))
    made, refused = [], []
    for run_id, key in waiting[:MOST_AT_ONCE]:
        try:
            made.append(ask_again(tenant_id=tenant_id, run_id=run_id, step=key, by=by, clock=clock).pk)
        except Refused as error:
            refused.append(NotAsked(run_id, key, error.code, error.message))
    return AskedAgain(tuple(made), tuple(refused), left=max(0, len(waiting) - MOST_AT_ONCE))


def ended_under(tenant_id: UUID, hold_id: UUID) -> QuerySet[Command]:
    """The commands that went from *held* to their end under this hold and may still be asked again, oldest first.

    The row forgets what held it when it ends; the history does not.
    """
    mine = Event.objects.filter(tenant_id=tenant_id, subject_id=OuterRef("pk"))
    held = mine.filter(kind="command.held").annotate(hold=KT("body__hold")).order_by("-at", "-id")
    return Command.objects.filter(
        Exists(mine.filter(kind="command.void", from_state=CommandStatus.HELD)), tenant_id=tenant_id,
        status=CommandStatus.VOID, step__status=StepStatus.WAITING, step__waiting_for=WaitingFor.PERSON,
        step__proposal_id=F("proposal_id"),
    ).annotate(
        by_hold=Subquery(held.values("hold")[:1])
    ).filter(by_hold=str(hold_id)).order_by("created_at", "pk")  # fmt: skip
