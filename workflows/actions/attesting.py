"""A person's word about an outcome that nobody else can settle: it happened, in part, or it did not."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from pydantic import ValidationError

from access.enums import Posture, Role
from access.policies import RoleMissing
from access.selectors import Standing, standings
from approvals.models import Proposal
from approvals.refusals import OwnProposal
from audit.actions import record
from audit.actors import Actor, Via, clock_actor
from common.clock import Clock
from common.crashpoints import crashpoint
from common.errors import InvalidInput, NotFound, Refused
from common.tx import action
from workflows.actions.settle import lock_run
from workflows.contracts import bound_arguments
from workflows.doorbell import ring_on_commit
from workflows.enums import CommandStatus, Effect, SettledBy, Testimony
from workflows.hooks import half_said
from workflows.models import Attestation, Command, Run
from workflows.registry import operation as registered
from workflows.selectors import get_command
from workflows.worker.checks import intact_contract, settles_at
from workflows.worker.held import Held, hold
from workflows.worker.reconcile import nothing_happened, read_late_evidence
from workflows.worker.store import confirm

ATTESTERS: Final = (Role.OPERATOR, Role.OWNER, Role.ADMIN)
LONGEST_REFERENCE, LONGEST_REASON = 200, 500


class TokenCannotAttest(Refused):
    """Only a signed-in person says what happened, or asks again. A token never does, whatever its scopes."""

    code = "token_cannot_attest"
    http_status = 403


class UnknownTestimony(InvalidInput):
    """What is said is one of: happened, partial, did_not_happen. Nothing else counts."""

    code = "unknown_testimony"


class GroundsMissing(InvalidInput):
    """Say how you know: whoever finds it later must be able to follow."""

    code = "reason_missing"


class ReferenceMissing(InvalidInput):
    """To say that it happened takes the provider's own reference of it."""

    code = "reference_missing"


class ReferenceUnexpected(InvalidInput):
    """What did not happen has no reference at the provider. Say which of the two is so."""

    code = "reference_unexpected"


class AlreadySettled(Refused):
    """Nobody needs to say what happened here: the outcome is not in doubt. The details tell where it stands."""

    code = "already_settled"


class NotSettledYet(Refused):
    """It is too early to say that it did not happen: the request may still be on its way until then."""

    code = "not_settled_yet"


class Contradicts(Refused):
    """Somebody else said otherwise. Find out together what is so; each can replace their own word."""

    code = "contradicts"


@dataclass(frozen=True, slots=True)
class Word:
    """What a person says, with the provider's reference of an effect, and how they know."""

    says: Testimony
    reference: str
    reason: str


@dataclass(frozen=True, slots=True)
class Attested:
    """What a word led to: with ``given`` of ``needed`` people saying the same, the outcome is settled."""

    command: Command
    given: int
    needed: int

    @property
    def settled(self) -> bool:
        return self.given >= self.needed


def attest(
    *, tenant_id: UUID, command_id: UUID, says: str, reference: str, reason: str, by: Actor, clock: Clock
) -> Attested:
    """Record one person's word about an unknown command, and settle it once enough people say the same.

    1. lock proposal and command; what a stale worker learned meanwhile is read first, and stands above all words,
    2. check who (a person with a role for it, not on the proposer's side), and whether it is unknown and settled,
    3. from the operation's limit on it takes two people with the same word and the same reference,
    4. settle it as the reconciler would: confirmed, or what follows when nothing happened (design, 6.6).

    Whoever contradicts a word that counts is refused, and the history keeps what they said. It is no word beside the
    other one: outcomes are not voted on, and a third person must not be able to outvote the first. The first replaces
    their own word, or it ceases to count when they lose their role or another request is made.

    Raises a `Refused`; losing against the reconciler or another person is AlreadySettled.
    """
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotAttest()
    command = get_command(tenant_id, command_id)
    try:
        word = _checked(says, reference.strip(), reason.strip())
        attested = _attest(tenant_id, command.proposal_id, word, by=by, clock=clock)
        if attested is None:
            raise _settled_already(get_command(tenant_id, command_id))
    except NotFound:
        raise
    except Refused as refused:
        _record_refused(command, refused, says, reference, by=by)
        raise
    return attested


def _checked(says: str, reference: str, reason: str) -> Word:
    if says not in Testimony.values:
        raise UnknownTestimony()
    if not reason:
        raise GroundsMissing()
    if len(reference) > LONGEST_REFERENCE or len(reason) > LONGEST_REASON or "\x00" in reference + reason:
        raise InvalidInput(reference=LONGEST_REFERENCE, reason=LONGEST_REASON)
    if says == Testimony.DID_NOT_HAPPEN and reference:
        raise ReferenceUnexpected()
    if says != Testimony.DID_NOT_HAPPEN and not reference:
        raise ReferenceMissing()
    return Word(Testimony(says), reference, reason)


@action
def _attest(tenant_id: UUID, proposal_id: UUID, word: Word, *, by: Actor, clock: Clock) -> Attested | None:
    """None: a late answer that was found here has settled it, and not this word."""
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    assert held is not None and by.user_id is not None
    words = standing_words(held.command)
    # Locked: a revocation either comes before and counts, or waits until this has committed.
    people = standings(tenant_id, {by.user_id, *(row.user_id for row in words)}, lock=True)
    me = people.get(by.user_id)
    role = _check_who(held.proposal, me)
    accounts = me.accounts if me is not None else frozenset({by.user_id})
    if held.command.status != CommandStatus.UNKNOWN:
        raise _settled_already(held.command)
    if read_late_evidence(replace(held, by=clock_actor("late_answer"))):
        return None
    if word.says == Testimony.DID_NOT_HAPPEN and held.now < settles_at(held):
        raise NotSettledYet(until=settles_at(held).isoformat())
    others = [
        row for row in counting(words, held.command, held.proposal, people) if row.user_id not in accounts
    ]
    if any((row.says, row.reference) != (word.says, word.reference) for row in others):
        raise Contradicts()
    needed = people_needed(held.proposal, held.command)
    attested = Attested(
        held.command, given=1 + len({people[row.user_id].person for row in others}), needed=needed
    )
    mine = _earlier_word(words, by.user_id, accounts)
    _record_word(held, word, by.user_id, role, mine, attested, _posture(held.proposal, me))
    _carry_out(held, word, attested)
    crashpoint("CP15")
    return attested


def _settled_already(command: Command) -> AlreadySettled:
    return AlreadySettled(
        status=command.status, effect=command.effect, settled_by=command.settled_by or None,
        state_version=command.state_version,
    )  # fmt: skip


# -- who, and whose word counts -----------------------------------------------------------------------------------


def _check_who(proposal: Proposal, standing: Standing | None) -> Role:
    """The role in which this person says it. Raises RoleMissing, OwnProposal.

    Under break-glass a person says it of their own proposal too, and it is recorded so. Where two are needed, it still
    takes a second person.
    """
    role = next((role for role in ATTESTERS if standing is not None and role in standing.roles), None)
    if role is None or standing is None:
        raise RoleMissing(roles=sorted(ATTESTERS))
    if _is_closed_to(proposal, standing):
        raise OwnProposal("Nobody says what became of their own proposal, nor of one made on their behalf.")
    return role


def is_of_the_proposers_side(proposal: Proposal, accounts: Collection[UUID]) -> bool:
    """Whether one of these accounts asked for the action, or is a person behind the automation that did."""
    run = Run.objects.only("requested_by", "on_behalf_of").get(pk=proposal.run_id)
    asked = {proposal.proposed_by, run.requested_by, run.on_behalf_of}
    return any(user in proposal.excluded_users or f"user:{user}" in asked for user in accounts)


def _earlier_word(
    words: Sequence[Attestation], user_id: UUID, accounts: Collection[UUID]
) -> Attestation | None:
    """What this person said before: under this account, or else under another one of theirs."""
    theirs = [row for row in words if row.user_id in accounts]
    return next((row for row in theirs if row.user_id == user_id), theirs[0] if theirs else None)


def _posture(proposal: Proposal, standing: Standing | None) -> dict[str, Any]:
    """Said in the event only where it is not the ordinary one."""
    if standing is None or not standing.break_glass:
        return {}
    return {
        "posture": str(Posture.BREAK_GLASS), "own": is_of_the_proposers_side(proposal, standing.accounts)
    }  # fmt: skip


def standing_words(command: Command) -> list[Attestation]:
    """The words that their speakers have not replaced, oldest first."""
    return list(Attestation.objects.filter(command=command, replaced_at__isnull=True))


def counting(
    words: Sequence[Attestation], command: Command, proposal: Proposal, people: dict[UUID, Standing]
) -> list[Attestation]:
    """Those about all requests made so far, by people who still have the role in which they said it.

    Not by those who have turned out since to be of the proposer's side; under break-glass their word counts.
    """
    return [
        row for row in words
        if _is_about_all(row, command) and row.user_id in people and row.role in people[row.user_id].roles
        and not _is_closed_to(proposal, people[row.user_id])
    ]  # fmt: skip


def _is_closed_to(proposal: Proposal, standing: Standing) -> bool:
    return not standing.break_glass and is_of_the_proposers_side(proposal, standing.accounts)


def _is_about_all(word: Attestation, command: Command) -> bool:
    """The count alone does not tell: after a restored backup, requests may have been made that no row knows of, and
    the last one then counts as made when the backup was restored.
    """
    last = command.last_sent_at
    return word.tries == command.tries and (last is None or word.at >= last)


def people_needed(proposal: Proposal, command: Command) -> int:
    """How many people must say the same, by the operation's limit. Where the contract was changed, or does not fit its
    operation, two: nobody can tell the amount.
    """
    operation: Any = registered(command.operation, command.operation_version)
    contract = intact_contract(proposal, command)
    if contract is None:
        return 2
    try:
        arguments = bound_arguments(operation, contract)
    except ValidationError:
        return 2
    return 2 if operation.needs_second_person(arguments) else 1


# -- recorded, and carried out ------------------------------------------------------------------------------------


def _record_word(
    held: Held,
    word: Word,
    user_id: UUID,
    role: Role,
    mine: Attestation | None,
    attested: Attested,
    posture: dict[str, Any],
) -> None:
    """It takes the place of the person's own earlier one; the very same word again is no other, and writes nothing."""
    command = held.command
    new = Attestation(
        tenant_id=command.tenant_id, command=command, user_id=user_id, role=role, says=word.says,
        reference=word.reference, reason=word.reason, tries=command.tries, at=held.now,
    )  # fmt: skip
    if mine is not None and _is_about_all(mine, command) and _bound(mine) == _bound(new):
        return
    if mine is not None:
        mine.replaced_at = held.now
        mine.save(update_fields=["replaced_at"])
    new.save()
    record(
        by=held.by, kind="command.attested", tenant_id=command.tenant_id, subject_type="command",
        subject_id=command.pk, run_id=command.run_id, digest=held.proposal.digest,
        body={
            "says": word.says, "reference": word.reference, "role": role, "tries": command.tries,
            "given": attested.given, "needed": attested.needed, "replaces": str(mine.pk) if mine else None,
            **posture,
        },
    )  # fmt: skip


def _bound(row: Attestation) -> tuple[str, str, str, str, int]:
    return row.says, row.reference, row.reason, row.role, row.tries


def _carry_out(held: Held, word: Word, attested: Attested) -> None:
    if not attested.settled:
        run = lock_run(held.command.tenant_id, held.command.run_id)
        half_said(run, held.command.pk, by=held.by, at=held.now)
    elif word.says == Testimony.DID_NOT_HAPPEN:
        nothing_happened(held, SettledBy.PERSON)
        if held.command.status == CommandStatus.READY:
            ring_on_commit()
    else:
        effect = Effect.PARTIAL if word.says == Testimony.PARTIAL else Effect.HAPPENED
        confirm(held, reference=word.reference, by=SettledBy.PERSON, body={}, effect=effect)


@action
def _record_refused(command: Command, refused: Refused, says: str, reference: str, *, by: Actor) -> None:
    """What was refused changes nothing, and is known to have been tried; of a contradiction, with what was said."""
    said = {"says": says, "reference": reference.strip()} if isinstance(refused, Contradicts) else {}
    record(
        by=by, kind="command.attestation_refused", tenant_id=command.tenant_id, subject_type="command",
        subject_id=command.pk, run_id=command.run_id, reason=refused.code, body=said,
    )  # fmt: skip
