"""A replay never does again what was done, or may have been: checked wherever it could come to an effect.

When it is proposed, under the locks of everything that speaks about it; when it is approved; and right before it is
sent (`workflows.worker.send`). Late evidence that comes in between is found by the next of them.
"""

from typing import Any
from uuid import UUID

from approvals.models import Proposal
from common.digests import business_key
from common.errors import Refused
from common.tx import require_transaction
from workflows.actions.settle import lock_run
from workflows.contracts import Draft
from workflows.models import Command, Run
from workflows.replays import InTheWay, in_the_way, is_dry, is_replay, orders_about, questions_about


class NotRepeated(Refused):
    """What happened, is not known, or is on its way is not done again by a replay."""

    code = "effect_not_repeated"

    def __init__(self, found: InTheWay) -> None:
        self.found = found
        facts: dict[str, Any] = {"why": found.why}
        facts |= (
            {"command_id": str(found.command.pk), "run_id": str(found.command.run_id)}
            if found.command
            else {}
        )
        facts |= {"proposal_id": str(found.proposal.pk)} if found.proposal else {}
        super().__init__(found.words, **facts)


class DryRunOnly(Refused):
    """This run is a dry one: nothing of it is proposed to anybody."""

    code = "dry_run_only"


def business_key_of(run: Run, draft: Draft) -> str:
    return business_key(run.tenant_id, draft.operation.name, [draft.operation.business_key(draft.arguments)])


def lock_effects(run: Run, step: str, draft: Draft) -> None:
    """Lock what says whether this step was done: proposals, then orders, then the original run. Of a run that is no
    replay nothing. Before the lock of the run itself, which is younger than its original.

    Whatever comes later waits for our commit: an approval writes its order under the run's lock, an answer, late or
    not, is stored under the order's.
    """
    require_transaction()
    if not is_replay(run):
        return
    key = business_key_of(run, draft)
    for rows in (questions_about(run, step, key), orders_about(run, step, key)):
        ids = list(rows.order_by("pk").values_list("pk", flat=True))
        list(
            rows.model.objects.select_for_update(of=("self",), no_key=True)
            .filter(pk__in=ids)
            .order_by("pk")
            .only("pk")
        )
    lock_run(run.tenant_id, run.identity)


def lock_effects_of(tenant_id: UUID, proposal_id: UUID, draft: Draft) -> None:
    """The same for who begins with a proposal: a new version of it comes in its place."""
    found = Proposal.objects.filter(tenant_id=tenant_id, pk=proposal_id).values_list("run_id", "step").first()
    if found is not None:
        run = (
            Run.objects.filter(tenant_id=tenant_id, pk=found[0])
            .only("tenant_id", "kind", "original_id")
            .first()
        )
        if run is not None:
            lock_effects(run, found[1], draft)


def check_may_propose(
    run: Run, step: str, *, business_key: str, material: str, besides: Proposal | None
) -> None:
    """For every way of proposing. Raises DryRunOnly, NotRepeated; of a run that is no replay it reads nothing."""
    if not is_replay(run):
        return
    if is_dry(run):
        raise DryRunOnly
    _check(run, step, business_key, material, besides.pk if besides is not None else None)


def check_may_act(run: Run, command: Command) -> None:
    """For an order that is being written, or sent, of the locked proposal. Raises NotRepeated."""
    if is_replay(run):
        _check(run, command.proposal.step, command.business_key, "", command.proposal_id)


def _check(run: Run, step: str, key: str, material: str, besides: UUID | None) -> None:
    found = in_the_way(run, step, business_key=key, material=material, besides=besides)
    if found is not None:
        raise NotRepeated(found)
