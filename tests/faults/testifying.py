"""People who settle what a blind provider leaves unknown: they look at the provider, as the journal lets us do."""

import random
from uuid import UUID

from common.clock import db_clock
from common.errors import Refused
from tests.faults import voting
from tests.faults.facts import journal
from tests.faults.people import Office, insist, stop
from workflows.actions.attesting import attest
from workflows.enums import CommandStatus
from workflows.models import Command


def testify(office: Office, chance: random.Random, left_alone: set[object]) -> None:
    """One look at everything unknown; some of it nobody ever gets to, and it stays in a person's hands."""
    unknown = insist(
        lambda: list(Command.objects.filter(tenant_id=office.tenant.pk, status=CommandStatus.UNKNOWN))
    )
    happened = {row["key"]: row["ref"] for row in journal(office.provider, office.slug) if row["effect"]}
    for command in unknown:
        if command.pk in left_alone or chance.random() < 0.1:
            left_alone.add(command.pk)
            continue
        _say(office, command, happened.get(command.idempotency_key))


def _say(office: Office, command: Command, reference: str | None) -> None:
    """By as many as it takes; the first one says it twice, which must not count as two."""
    try:
        for user in (office.owen, office.owen, office.olga):
            insist(lambda user=user: say_so(office.tenant.pk, command.pk, user.pk, reference or ""))
    except Refused:
        return  # too early to say no, or settled meanwhile: the next look will tell


def say_so(tenant_id: UUID, command_id: UUID, user_id: UUID, reference: str) -> None:
    """Without a reference it did not happen. Raises a `Refused`."""
    attest(
        tenant_id=tenant_id, command_id=command_id, says="happened" if reference else "did_not_happen",
        reference=reference, reason="I looked at the provider.", by=voting.person(user_id), clock=db_clock,
    )  # fmt: skip


def stop_it(tenant_id: UUID, run_id: UUID, user_id: UUID) -> str:
    """A wish to cancel, or the end at once where nothing was sent."""
    return stop(tenant_id, run_id, voting.person(user_id))
