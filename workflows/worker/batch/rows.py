"""The rows of a batch, each kind locked with one statement and in the order of the design's section 6.

Nobody is waited for: a row that somebody else has locked just now is left to go its way alone, where waiting holds up
nobody but itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db import models

from approvals.models import Decision, Proposal
from common.pipelined import Question, rows_of, then
from common.prepared import Reading, as_stored
from common.tx import require_transaction
from workflows.models import Attempt, Command, Run, Step
from workflows.worker.claim import Claim

Row = TypeVar("Row", bound=models.Model)
_LOCK = " ORDER BY r.id FOR NO KEY UPDATE SKIP LOCKED"

_PROPOSALS = Reading(
    Proposal, "WHERE r.id = ANY(%s::uuid[])" + _LOCK,
    # Without the view document and the words around the contract, which nobody needs here.
    only=(
        "tenant_id", "run_id", "step", "version", "workflow", "workflow_version", "contract", "digest", "view_digest",
        "needed", "group_id", "excluded_users", "status", "execute_by", "decided_at", "ended_at", "end_reason",
        "state_version",
    ),
)  # fmt: skip
_COMMANDS = Reading(
    Command, "JOIN unnest(%s::uuid[], %s::uuid[]) AS t(id, token) ON t.id = r.id"
    " WHERE r.lease_token = t.token AND r.status = %s ORDER BY r.id FOR NO KEY UPDATE OF r SKIP LOCKED",
)  # fmt: skip
_RUNS = Reading(Run, "WHERE r.id = ANY(%s::uuid[])" + _LOCK)


def lock_proposals(claims: Iterable[Claim]) -> Question[dict[UUID, Proposal]]:
    """By id."""
    return _by_id(_PROPOSALS, [claim.proposal_id for claim in claims])


def lock_commands(claims: Sequence[Claim], status: str) -> Question[dict[UUID, Command]]:
    """By id: those in this state whose token is still the claim's."""
    ids, tokens = [claim.command_id for claim in claims], [claim.token for claim in claims]
    return _by_id(_COMMANDS, ids, tokens, str(status))


def lock_runs(claims: Iterable[Claim]) -> Question[dict[UUID, Run]]:
    """By id; a run's lock covers its steps."""
    return _by_id(_RUNS, _runs(claims))


def _runs(claims: Iterable[Claim]) -> list[UUID]:
    return list({claim.run_id for claim in claims})


def _by_id(reading: Reading[Row], *parameters: Any) -> Question[dict[UUID, Row]]:
    require_transaction()
    return then(rows_of(reading, *parameters), lambda rows: {row.pk: row for row in rows})


# -- what is read under those locks ------------------------------------------------------------------------------

_VOTES = Reading(
    Decision, "WHERE r.proposal_id = ANY(%s::uuid[]) AND r.replaced_at IS NULL ORDER BY r.at, r.id",
    only=("proposal_id", "kind", "user_id", "in_stead_of_id", "rule", "digest", "view_digest", "posture"),
)  # fmt: skip
_ATTEMPTS = Reading(Attempt, "WHERE r.token = ANY(%s::uuid[]) AND r.status = %s")
_STEPS = Reading(Step, "WHERE r.run_id = ANY(%s::uuid[]) ORDER BY r.run_id, r.position")
_OF_RUNS = Reading(Command, "WHERE r.run_id = ANY(%s::uuid[])", only=("run_id", "status", "effect"))


def votes_on(claims: Iterable[Claim]) -> Question[dict[UUID, list[Decision]]]:
    """The votes that have not been replaced, oldest first, by proposal."""
    return _grouped(rows_of(_VOTES, [claim.proposal_id for claim in claims]), lambda vote: vote.proposal_id)


def attempts_of(claims: Iterable[Claim], status: str) -> Question[dict[UUID, Attempt]]:
    """The physical try of each claim, by command, if it is in this state."""
    found = rows_of(_ATTEMPTS, [claim.token for claim in claims], str(status))
    return then(found, lambda rows: {attempt.command_id: attempt for attempt in rows})


def name_runs(commands: Mapping[UUID, Command], claims: Iterable[Claim]) -> None:
    """Let each command know for whom its run is: the connector chooses its credential by it."""
    for claim in claims:
        if claim.command_id in commands:
            run = as_stored(Run, {"id": claim.run_id, "on_behalf_of": claim.on_behalf_of})
            commands[claim.command_id].run = run


def steps_of_runs(claims: Iterable[Claim]) -> Question[dict[UUID, list[Step]]]:
    return _grouped(rows_of(_STEPS, _runs(claims)), lambda step: step.run_id)


def commands_of_runs(claims: Iterable[Claim]) -> Question[dict[UUID, list[Command]]]:
    return _grouped(rows_of(_OF_RUNS, _runs(claims)), lambda command: command.run_id)


def _grouped(question: Question[list[Row]], key: Callable[[Row], UUID]) -> Question[dict[UUID, list[Row]]]:
    def group(rows: list[Row]) -> dict[UUID, list[Row]]:
        found: dict[UUID, list[Row]] = {}
        for row in rows:
            found.setdefault(key(row), []).append(row)
        return found

    return then(question, group)


_IN_THE_WAY = """
    SELECT c.id FROM workflows_command c
    WHERE c.id = ANY(%s::uuid[]) AND (
        EXISTS (
            SELECT FROM workflows_command o WHERE o.tenant_id = c.tenant_id AND o.business_key = c.business_key
                AND o.id <> c.id AND (o.effect IN ('happened', 'partial', 'unknown') OR EXISTS (
                    SELECT FROM workflows_attempt a
                    WHERE a.command_id = o.id AND a.late_evidence ->> 'meaning' = 'confirmed')))
        OR EXISTS (
            SELECT FROM workflows_command o JOIN approvals_proposal q ON q.id = o.proposal_id
            WHERE o.tenant_id = c.tenant_id AND o.provider = c.provider AND o.target = c.target
                AND o.effect IN ('happened', 'partial') AND q.created_at > (
                    SELECT p.created_at FROM approvals_proposal p WHERE p.id = c.proposal_id)))
"""


def with_others_in_the_way(claims: Iterable[Claim]) -> Question[frozenset[UUID]]:
    """Those whose business key another command has that had an effect, or may have had one, or by a late answer did;
    and those whose target was changed by something that was proposed later.
    """
    parameters = [[claim.command_id for claim in claims]]
    return Question(_IN_THE_WAY, parameters, lambda rows: frozenset(id_ for (id_,) in rows))


_POLICIES = """
    SELECT name, version FROM workflows_definition WHERE kind = 'policy' AND name = ANY(%s::text[]) AND is_current
    ORDER BY name FOR SHARE
"""


def lock_policies(names: Sequence[str]) -> Question[dict[str, int]]:
    """The current versions. A newer one waits for us, or we see it: part of the shared scope, first in the order."""
    require_transaction()
    return Question(_POLICIES, [sorted(set(names))], dict)
