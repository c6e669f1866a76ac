"""All rows of one run, read once, and told apart by step: what the run page and the repair desk are made of."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from approvals.models import Decision, Proposal
from workflows.models import Attempt, Command, Lookup, Run, SourceEvent, Step


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that hangs on a run."""

    run: Run
    steps: tuple[Step, ...]
    proposals: Mapping[str, Sequence[Proposal]]
    """By step key, oldest first."""
    commands: Mapping[UUID, Command]
    """By proposal."""
    votes: Mapping[UUID, Sequence[Decision]]
    """By proposal: those that stand."""
    attempts: Mapping[UUID, Sequence[Attempt]]
    lookups: Mapping[UUID, Sequence[Lookup]]
    sources: tuple[SourceEvent, ...]

    @property
    def version(self) -> str:
        """Changes with everything that the page shows by itself."""
        facts: list[Any] = [self.run.state_version]
        facts += [(step.status, step.attempt, step.waiting_until) for step in self.steps]
        facts += [
            (command.status, command.state_version, command.lookups) for command in self.commands.values()
        ]
        facts += [len(votes) for votes in self.votes.values()]
        facts += [(one.status, one.late_evidence is None) for some in self.attempts.values() for one in some]
        facts += [(one.duplicates, one.pk) for one in self.sources]
        return sha256(repr(facts).encode()).hexdigest()[:16]

    def commands_of(self, step: Step) -> list[Command]:
        return [command for command in self.commands.values() if command.step_id == step.pk]


def story_of(run: Run) -> Story:
    """Seven queries, however many rows there are."""
    tenant_id = run.tenant_id
    proposals = list(Proposal.objects.filter(tenant_id=tenant_id, run_id=run.pk).order_by("created_at", "pk"))
    commands = list(Command.objects.filter(tenant_id=tenant_id, run=run).order_by("created_at", "pk"))
    votes = Decision.objects.filter(tenant_id=tenant_id, proposal__in=proposals, replaced_at__isnull=True)
    attempts = Attempt.objects.filter(tenant_id=tenant_id, command__in=commands).order_by("number")
    lookups = Lookup.objects.filter(tenant_id=tenant_id, command__in=commands).order_by("asked_at", "pk")
    return Story(
        run=run, steps=tuple(Step.objects.filter(tenant_id=tenant_id, run=run).order_by("position")),
        proposals=_by("step", proposals), commands={command.proposal_id: command for command in commands},
        votes=_by("proposal_id", votes.select_related("user").order_by("at", "pk")),
        attempts=_by("command_id", attempts), lookups=_by("command_id", lookups),
        sources=tuple(SourceEvent.objects.filter(tenant_id=tenant_id, run=run).order_by("created_at", "pk")),
    )  # fmt: skip


def _by(name: str, rows: Any) -> Mapping[Any, Any]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        found[getattr(row, name)].append(row)
    return dict(found)
