"""Planted defects: calls at the wrong time or a second time, answers read wrongly, history written wrongly."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.faults.planting import always, everywhere, patch, plants

W = "workflows.worker"


@plants
def call_before_sent_commits() -> None:
    """The request goes out first, and that it goes out is committed afterwards."""
    from common.deadline import Deadline
    from workflows.models import Command

    def execute(claim: Any, looked: Any = None, *, by: Any, clock: Any) -> None:
        from workflows.worker import loop
        from workflows.worker.store import store_answer

        command = Command.objects.select_related("proposal", "run").get(pk=claim.command_id)
        looked = loop.look(claim, command)
        contract = loop_contract(command)
        deadline = Deadline.after(claim.operation.call_deadline.total_seconds())
        seen = claim.operation.execute(loop.make_call(command, contract, deadline))
        if loop.commit_sent(claim, looked, by=by, clock=clock) is not None:
            store_answer(claim, seen, by=by, clock=clock)

    patch(f"{W}.loop.execute", lambda _: execute)


def loop_contract(command: Any) -> Any:
    from workflows.worker.checks import intact_contract

    return intact_contract(command.proposal, command)


@plants
def lease_over_means_ready() -> None:
    """A lost worker's command is taken again, also where its request may have arrived."""
    from workflows.enums import CommandStatus
    from workflows.settling import Move

    def after_lease(command: Any) -> Any:
        return Move.FREE if command.status in (CommandStatus.CLAIMED, CommandStatus.SENT) else Move.STAY

    patch(f"{W}.recover.after_lease", lambda _: after_lease)
    patch(f"{W}.recover._end_attempt", lambda _: _end_any_attempt)


def _end_any_attempt(held: Any, move: Any) -> None:
    attempt = held.attempt
    if attempt.sent_at is not None:
        attempt.no_answer(at=held.now, outcome="lease_over", detail="the worker did not come back")
    else:
        attempt.release(at=held.now, outcome="lease_over")
    attempt.save()


@plants
def timeout_means_failed() -> None:
    """No answer is taken for *it did not happen*."""
    from workflows.classify import Meaning

    def make(classify: Any) -> Any:
        def wrong(seen: Any, table: Any) -> Any:
            return Meaning.REFUSED if seen.sent and seen.status is None else classify(seen, table)

        return wrong

    patch(f"{W}.store.classify", make)


@plants
def server_error_means_not_executed() -> None:
    """A 5xx is tried again, as if nothing had happened."""
    from workflows.classify import Meaning

    def make(classify: Any) -> Any:
        def wrong(seen: Any, table: Any) -> Any:
            return Meaning.NOT_EXECUTED if seen.status in range(500, 600) else classify(seen, table)

        return wrong

    patch(f"{W}.store.classify", make)


@plants
def key_for_each_attempt() -> None:
    """Every try has a key of its own."""

    def make(make_call: Any) -> Any:
        def wrong(command: Any, contract: Any, deadline: Any) -> Any:
            call = make_call(command, contract, deadline)
            return replace(call, idempotency_key=f"{call.idempotency_key[:40]}-{command.claims}")

        return wrong

    for module in ("loop", "batch.send"):
        patch(f"{W}.{module}.make_call", make)


@plants
def no_settle_time() -> None:
    """*Not found* counts at once, while the request may still be on its way."""
    everywhere(
        "settles_at", (f"{W}.checks", f"{W}.reconcile"), lambda _: lambda held: held.command.last_sent_at
    )


@plants
def sent_again_blindly() -> None:
    """What cannot be looked up is simply sent again."""
    from workflows.settling import Move

    patch(f"{W}.reconcile.after_lookup", lambda _: lambda finding, *, settled: Move.FREE)


@plants
def body_of_other_values() -> None:
    """The request is built from something else than the approved bytes."""

    def make(make_call: Any) -> Any:
        def wrong(command: Any, contract: Any, deadline: Any) -> Any:
            call = make_call(command, contract, deadline)
            changed = call.arguments.model_copy(update={"message": f"For {command.target}"})
            return replace(call, arguments=changed)

        return wrong

    for module in ("loop", "batch.send"):
        patch(f"{W}.{module}.make_call", make)


@plants
def event_without_a_change() -> None:
    """A stale worker changes nothing, and writes into the history that it did."""

    def make(keep: Any) -> Any:
        def wrong(claim: Any, seen: Any, meaning: Any, *, by: Any, **others: Any) -> None:
            from audit.actions import record
            from workflows.models import Command

            keep(claim, seen, meaning, by=by, **others)
            command = Command.objects.get(pk=claim.command_id)
            record(
                by=by, kind="command.retry_wait", tenant_id=claim.tenant_id, subject_type="command",
                subject_id=command.pk, run_id=command.run_id, from_state="sent", to_state="retry_wait",
            )  # fmt: skip

        return wrong

    patch(f"{W}.store._keep_late_evidence", make)


@plants
def change_without_an_event() -> None:
    """A command is confirmed and nobody writes it down."""
    for module in ("workflows.actions.decided", f"{W}.batch.store"):
        patch(f"{module}.record_many", _silent)


def _silent(record_many: Any) -> Any:
    return lambda entries: record_many([entry for entry in entries if entry.kind != "command.confirmed"])


@plants
def late_answer_overwrites_the_end() -> None:
    """What a stale worker learned is written over what was settled meanwhile."""

    def make(keep: Any) -> Any:
        def wrong(claim: Any, seen: Any, meaning: Any, *, by: Any, **others: Any) -> None:
            from audit.actions import record
            from workflows.models import Command

            command = Command.objects.get(pk=claim.command_id)
            Command.objects.filter(pk=command.pk).update(
                status="refused", effect="none", failure_code="late", state_version=command.state_version + 1
            )
            record(
                by=by, kind="command.refused", tenant_id=claim.tenant_id, subject_type="command",
                subject_id=command.pk, run_id=command.run_id, from_state=command.status, to_state="refused",
            )  # fmt: skip

        return wrong

    patch(f"{W}.store._keep_late_evidence", make)


@plants
def message_is_trusted() -> None:
    """A second executor does what a task message says."""
    from approvals.models import Proposal
    from common.deadline import Deadline
    from workflows import tasks
    from workflows.models import Run
    from workflows.operations import Call, Site

    def run(**message: Any) -> None:
        from workflows import registry
        from workflows.contracts import bound_arguments, read_contract

        proposal = Proposal.objects.get(pk=message["proposal_id"])
        contract = read_contract(bytes(proposal.contract))
        operation = registry.operation(proposal.operation, proposal.operation_version)
        run_of = Run.objects.get(pk=proposal.run_id)
        operation.execute(Call(
            site=Site(proposal.tenant_id, contract["tenant"], run_of.on_behalf_of), pins=contract["pins"],
            arguments=bound_arguments(operation, contract), idempotency_key=contract["idempotency_key"],
            deadline=Deadline.after(timedelta(seconds=2).total_seconds()),
        ))  # fmt: skip

    tasks.work.run = run


@plants
def never_quarantined() -> None:
    """What kills every worker is claimed for ever."""
    patch(f"{W}.recover._lost_in_a_row", always(value=1))
