"""Planted defects: checks that are left out, locks that are not taken, clocks that are read too early."""

from typing import Any

from tests.faults.planting import always, everywhere, patch, plants

W = "workflows.worker"


@plants
def no_row_lock() -> None:
    """Proposal and command are read, and not locked, by the transaction that commits *sent*."""
    patch(f"{W}.send.hold", _unlocked_hold)


@plants
def no_lock_when_deciding() -> None:
    """The proposal is read, and not locked, by whoever decides."""
    from approvals.models import Proposal

    def make(_: Any) -> Any:
        return lambda tenant_id, proposal_id: Proposal.objects.get(tenant_id=tenant_id, pk=proposal_id)

    patch("approvals.actions.lock_proposal", make)


def _unlocked_hold(_: Any) -> Any:
    from approvals.models import Proposal
    from workflows.models import Command
    from workflows.worker.held import Held

    def hold(tenant_id: Any, proposal_id: Any, *, by: Any, clock: Any, token: Any = None) -> Any:
        proposal = Proposal.objects.get(tenant_id=tenant_id, pk=proposal_id)
        rows = Command.objects.filter(tenant_id=tenant_id, proposal_id=proposal_id)
        command = (rows.filter(lease_token=token) if token is not None else rows).first()
        if command is None:
            return None
        held = Held(proposal, command, by, clock(), clock)
        attempt = held.attempt  # read with the rest, before anything changes, and saved as a whole
        assert attempt is not None
        attempt.save = lambda **_: type(attempt).save(attempt)
        return held

    return hold


@plants
def no_fencing() -> None:
    """Whoever comes back with an answer stores it, whether or not the command is still theirs."""

    def make(hold: Any) -> Any:
        return lambda tenant_id, proposal_id, *, by, clock, token=None: hold(
            tenant_id, proposal_id, by=by, clock=clock
        )

    patch(f"{W}.store.hold", make)


@plants
def no_digest_check() -> None:
    """The stored bytes are taken for what was approved."""
    patch(f"{W}.checks.same", always(value=True))
    patch(f"{W}.send.same", always(value=True))
    patch(f"{W}.batch.send.same", always(value=True))


@plants
def clock_before_the_lock() -> None:
    """*Execute by* is compared with a time that was read before the wait for the row."""

    def make(commit: Any) -> Any:
        def commit_sent(claim: Any, looked: Any, *, by: Any, clock: Any) -> Any:
            early = clock()
            return commit(claim, looked, by=by, clock=lambda: early)

        return commit_sent

    patch(f"{W}.loop.commit_sent", make)


@plants
def clock_before_the_lock_when_deciding() -> None:
    """*Decide by* is compared with a time that was read before the wait for the row: what ``now()`` would do."""

    def make(decide: Any) -> Any:
        def _decide(*, clock: Any, **others: Any) -> Any:
            early = clock()
            return decide(clock=lambda: early, **others)

        return _decide

    patch("approvals.actions._decide", make)


@plants
def freeze_read_without_the_lock() -> None:
    """The holds are read, and nothing keeps one from being placed before *sent* commits."""
    from common.pipelined import Question

    patch(f"{W}.send.enter_scope", always(value=None))
    # A batch asks for the lock together with all that it reads: it asks for nothing in its place.
    patch(f"{W}.batch.send.scope_lock", always(value=Question("SELECT 1", [], lambda _: None)))


@plants
def freeze_not_looked_at() -> None:
    """A worker that has its command already sends it, whatever was frozen meanwhile."""
    from workflows.scope import Holds

    Holds.on = lambda *_: None  # type: ignore[method-assign]


@plants
def no_policy_check() -> None:
    """The policy may have changed since the approval."""
    everywhere(
        "current_policy",
        (f"{W}.checks", f"{W}.send"),
        lambda _: lambda operation, **__: operation.policy.version,
    )


@plants
def no_reviewer_check() -> None:
    """Whoever approved may have gone since."""
    patch(f"{W}.checks._still_approved", always(value=True))


@plants
def pins_not_compared() -> None:
    """The record may have changed since somebody looked at it."""
    patch(f"{W}.send.changed_since", always(value=None))


@plants
def no_deadline_before_the_call() -> None:
    """A worker that slept after *sent* makes its call whenever it wakes up."""
    from common.deadline import Deadline

    for module in ("loop", "batch.send"):
        patch(f"{W}.{module}.Deadline", lambda _: _NeverOver)
    _NeverOver.make = Deadline.after


class _NeverOver:
    """For calls only: the batch's own patience stays as it is."""

    make: Any

    @classmethod
    def after(cls, seconds: float) -> Any:
        return cls.make(seconds + 600)


@plants
def earlier_effects_not_looked_for() -> None:
    """The same thing may have been done before, under another approval."""
    patch(f"{W}.send._earlier_here", always(value=False))
    patch(f"{W}.batch.rows.with_others_in_the_way", always(value=set()))
    patch(
        f"{W}.send._read",
        lambda read: lambda operation, call, digest, *, first: read(operation, call, digest, first=False),
    )


@plants
def one_vote_is_enough() -> None:
    """A quorum is not counted."""
    patch("approvals.actions.valid_approvals", always(value=9))
    patch(f"{W}.checks.valid_approvals", always(value=9))


@plants
def batch_sent_unchecked() -> None:
    """What goes in batches is not asked whether its approval still holds."""
    patch(f"{W}.batch.send._holds", always(value=True))


@plants
def batch_sent_whatever_was_read() -> None:
    """What goes in batches is sent although the record has changed."""
    patch(f"{W}.batch.send._may_go", always(value=True))
