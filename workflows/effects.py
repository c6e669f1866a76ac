"""What has happened in a run, and what people proposed after it: reads for compensations and remainders.

A compensation of the step *refund* is the step ``refund~undo``, in a run of its own that shares keys and counts with
the first one (design, section 5); a remainder is ``refund~2``. What happened beside another effect of the same step, as
a late answer says, is ``refund~twice``, so that taking the second one back leaves the first as it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

from django.db.models import Q

from approvals.models import Proposal
from audit.models import Event
from common.content_errors import ContentErased
from common.content_keys import SealBroken
from common.strictjson import JsonRefused
from workflows.classify import Meaning
from workflows.counteractions import BETWEEN
from workflows.documents import load_json
from workflows.enums import CommandStatus, Effect, RunKind, RunStatus
from workflows.models import Attempt, Command, Document, Run, Step
from workflows.operations import Happened
from workflows.replays import HANDLED_OUTSIDE

UNDO: Final = "undo"
TWICE: Final = "twice"
OPEN: Final = "open"
DONE: Final = "done"
HAPPENED: Final = (Effect.HAPPENED, Effect.PARTIAL)
UNREADABLE: Final = (ContentErased, SealBroken, JsonRefused)


@dataclass(frozen=True, slots=True)
class EffectOf:
    """One effect of one step: the order that had it, and what is known of it."""

    run: Run
    command: Command
    proposal: Proposal
    key: str
    """The step's, with *twice* behind it for the second of two effects of that step."""
    happened: Happened
    late: bool = False
    """Only a late answer says so, after the order had ended otherwise."""

    @property
    def what(self) -> str:
        """The effect itself, whatever it is called and whichever order told of it: the provider's reference."""
        return self.happened.reference or str(self.command.pk)

    @property
    def undo_key(self) -> str:
        return f"{self.key}{BETWEEN}{UNDO}"

    @property
    def rest_key(self) -> str:
        """``refund~2`` after *refund*, and ``refund~3`` after that."""
        stem, _, tail = self.key.rpartition(BETWEEN)
        return f"{stem}{BETWEEN}{int(tail) + 1}" if tail.isdecimal() else f"{self.key}{BETWEEN}2"


def family(run: Run) -> Q:
    """The runs that share keys and counts with this one: the original, its replays, what followed its effects."""
    return Q(pk=run.identity) | Q(original_id=run.identity)


def effects_of(run: Run) -> list[EffectOf]:
    """All effects of a run, oldest first; the second of two right behind the first.

    Each has a name of its own among those of its step in the whole family, and one reference is one effect, whichever
    order told of it.
    """
    return [it for it in effects_of_family(run) if it.run.pk == run.pk]


def effects_of_family(run: Run) -> list[EffectOf]:
    """The same of all runs that share keys with this one."""
    family = Q(run_id=run.identity) | Q(run__original_id=run.identity)
    rows = Command.objects.filter(family, tenant_id=run.tenant_id).select_related("step", "proposal", "run")
    found: dict[str, list[EffectOf]] = {}
    for command in rows.order_by("created_at", "id"):
        found.setdefault(command.step.key, []).extend(_of_command(command))
    return [it for of_step in found.values() for it in _named(of_step)]


def effects_of_command(run: Run, command: Command) -> list[EffectOf]:
    """What the order did: nothing, one effect, or two where a late answer names another one."""
    return [it for it in effects_of(run) if it.command.pk == command.pk]


def _of_command(command: Command) -> list[EffectOf]:
    found = []
    if command.effect in HAPPENED:
        known = Happened(command.provider_reference, command.effect == Effect.PARTIAL, _result(command))
        found.append(EffectOf(command.run, command, command.proposal, command.step.key, known))
    elif command.status not in CommandStatus.final_states:
        return []
    return found + [
        EffectOf(command.run, command, command.proposal, command.step.key, Happened(reference), late=True)
        for reference in late_references(command) if reference != command.provider_reference
    ]  # fmt: skip


def _named(of_step: list[EffectOf]) -> list[EffectOf]:
    """Those of one step, each once and each with its name: what something was proposed for keeps the name it had then,
    and of the others the known ones come before the late ones.
    """
    once: dict[str, EffectOf] = {}
    for it in sorted(of_step, key=lambda it: it.late):
        once.setdefault(it.what, it)
    if len(once) < 2:
        return list(once.values())
    names = {what: key for what, key in _kept_names(of_step).items() if what in once}
    for what, it in once.items():
        names[what] = names.get(what) or next(free for free in _names(it.key) if free not in names.values())
    rows = [replace(it, key=names[what]) for what, it in once.items()]
    return sorted(rows, key=lambda it: (it.command.created_at, it.command.pk, it.late))


def _names(key: str) -> Iterator[str]:
    """*pay*, *pay~twice*, *pay~twice3* and so on."""
    yield key
    yield f"{key}{BETWEEN}{TWICE}"
    yield from (f"{key}{BETWEEN}{TWICE}{number}" for number in count(3))


def _kept_names(of_step: Sequence[EffectOf]) -> dict[str, str]:
    """Under which name something was proposed after each of them."""
    said = Event.objects.filter(
        tenant_id=of_step[0].run.tenant_id, run_id__in={it.run.pk for it in of_step},
        kind__in=("run.undo_proposed", "run.rest_proposed"),
    )  # fmt: skip
    orders = {str(it.command.pk) for it in of_step}
    bodies = [body for body in said.values_list("body", flat=True) if body and body["order"] in orders]
    return {body["effect"]: body["key"] for body in bodies if "effect" in body}


def late_reference(command: Command) -> str:
    """The provider's reference in the newest late answer that says that it happened; empty where there is none."""
    return next(iter(late_references(command)), "")


def late_references(command: Command) -> list[str]:
    """All of them, each once, the newest first."""
    return references_in(Attempt.objects.filter(command=command, late_evidence__isnull=False))


def references_in(attempts: Iterable[Attempt]) -> list[str]:
    """The same of the attempts of one order."""
    newest = sorted(attempts, key=lambda attempt: attempt.number, reverse=True)
    said = [attempt.late_evidence or {} for attempt in newest]
    found = [str(it.get("reference", "")) for it in said if it.get("meaning") == Meaning.CONFIRMED.value]
    return list(dict.fromkeys(reference for reference in found if reference))


def _result(command: Command) -> dict[str, Any]:
    """What was kept of the provider's answer; empty where nothing was, or it was erased."""
    if command.result_ref is None:
        return {}
    document = Document.objects.filter(tenant_id=command.tenant_id, pk=command.result_ref).first()
    if document is None:
        return {}
    try:
        answer = load_json(document).get("answer", {})
    except UNREADABLE:
        return {}
    return answer if isinstance(answer, dict) else {}


def followers(run: Run) -> list[Run]:
    """What people proposed after effects of this run's family, oldest first."""
    rows = Run.objects.filter(tenant_id=run.tenant_id, original_id=run.identity, kind__in=RunKind.follow_ups)
    return list(rows.prefetch_related("steps").order_by("created_at", "id"))


def steps_named(run: Run, keys: Sequence[str]) -> list[Step]:
    """The steps of these keys among what followed effects of this run's family, oldest first, each with its run."""
    rows = Step.objects.filter(tenant_id=run.tenant_id, run__original_id=run.identity, key__in=keys)
    return list(
        rows.filter(run__kind__in=RunKind.follow_ups)
        .select_related("run")
        .order_by("run__created_at", "run_id")
    )


def state_of(run: Run, key: str) -> str:
    """Where what follows an effect stands, under this key: *open*, *done*, or empty where nothing came of any."""
    steps = steps_named(run, [key])
    if any(step.run.status not in RunStatus.final_states for step in steps):
        return OPEN
    if any(step.run.corrected_outcome == HANDLED_OUTSIDE for step in steps):
        return DONE  # somebody saw to it in another way
    commands = Command.objects.filter(tenant_id=run.tenant_id, step__in=steps)
    return DONE if any(one.effect in HAPPENED or late_reference(one) for one in commands) else ""
