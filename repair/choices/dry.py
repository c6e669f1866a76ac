"""What dry runs share: the checks of an order, and what a request of it would carry."""

from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from approvals.models import Proposal
from approvals.refusals import Uninspectable
from approvals.shown import view_of
from common.content_errors import ContentErased
from common.disclosure import is_open
from common.display import visible
from repair.choices.case import Case
from repair.choices.declared import Check
from workflows import registry
from workflows.contracts import bound_arguments
from workflows.worker.checks import settled_from

LATE: Final = "Until then an earlier request may still take effect."
OVER: Final = "No earlier request can take effect any more."
AT: Final = "%d %b %H:%M:%S UTC"
PINS: Final = "asked for again by the worker right before anything is sent; what differs is not sent"


def title_of_order(case: Case) -> str:
    """The order in words: *“Pay” on order:1042*."""
    row: Any = case.command or case.proposal
    if row is None:
        return "the step"
    name = case.operation.title if case.operation is not None else row.operation
    return f"“{name}” on {visible(row.target)}"


def checks_of(case: Case) -> tuple[Check, ...]:
    """Everything a send is checked for, looked at now: schema, policy, pins, approval, clocks, holds and key."""
    if case.command is None or case.of_order is None:
        return ()
    return (
        _contract(case), _schema(case), _policy(case), _approval(case), _clock(case.of_order, case.now), _hold(case),
        Check("Record", PINS), _key(case),
    )  # fmt: skip


def _contract(case: Case) -> Check:
    ok = case.contract is not None
    says = "its bytes hash to the digest that was approved" if ok else "is not what was approved"
    return Check("Contract", says, ok=ok)


def _schema(case: Case) -> Check:
    if case.contract is None or case.operation is None:
        return Check("Schema", "cannot be told: contract or operation cannot be read", ok=False)
    try:
        bound_arguments(case.operation, case.contract)
    except ValidationError:
        return Check("Schema", "the arguments do not fit the operation's schema", ok=False)
    version = f"{case.operation.name}, version {case.operation.version}"
    return Check("Schema", f"the arguments fit the schema of {version}", ok=True)


def _policy(case: Case) -> Check:
    bound = case.contract["policy_version"] if case.contract is not None else None
    ok = bound is not None and bound == case.policy
    today = "as it is today" if ok else f"and today's is {case.policy}"
    return Check("Policy", f"version {bound}, {today}", ok=ok)


def _approval(case: Case) -> Check:
    assert case.of_order is not None
    needed = case.of_order.needed
    if needed == 0:
        return Check("Approval", "given by a rule", ok=case.failed != "reviewer")
    return Check("Approval", f"{case.approvals} of {needed} needed still count", ok=case.approvals >= needed)


def _clock(proposal: Proposal, now: datetime) -> Check:
    until = proposal.execute_by
    if until is None:
        return Check("Time to execute", "was never begun", ok=False)
    in_time = now < until
    return Check("Time to execute", f"{'until' if in_time else 'over since'} {until:{AT}}", ok=in_time)


def _hold(case: Case) -> Check:
    if case.hold is None:
        return Check("Freezes", "nothing holds it", ok=True)
    says = "frozen" if case.hold.reason == "freeze" else "its provider's circuit is open"
    return Check("Freezes", says, ok=False)


def _key(case: Case) -> Check:
    facts = case.facts.order
    assert facts is not None
    if facts.key_until is None:
        return Check("Key", "the same key; the provider is not known to remember it")
    ok = case.now < facts.key_until
    knows = "the provider knows it until" if ok else "the provider may have forgotten it since"
    return Check("Key", f"{knows} {facts.key_until:{AT}}", ok=ok)


def what_is_sent(case: Case) -> tuple[tuple[str, str], ...]:
    """The request, built from the approved contract alone: no value of it can be another."""
    assert case.command is not None and case.of_order is not None
    head = (
        ("To", visible(case.command.provider)), ("What", title_of_order(case)),
        ("Idempotency key", case.command.idempotency_key), ("Digest of the contract", case.of_order.digest),
    )  # fmt: skip
    return head + shown_values(case.of_order)


def shown_values(proposal: Proposal) -> tuple[tuple[str, str], ...]:
    """The material values that are public or business; of personal and secret ones only that they are there."""
    try:
        fields = view_of(proposal).fields
    except (ContentErased, Uninspectable):
        return (("All values", "erased, or cannot be read any more"),)
    return tuple(
        (it.label, (it.text or "") if is_open(it.data_class) and it.text is not None and not it.folded
         else f"{it.data_class}, not shown here")
        for it in fields
    )  # fmt: skip


def late_until(case: Case) -> tuple[datetime | None, str]:
    """Until when a late effect of an earlier request is possible, and that in words."""
    command, operation = case.command, case.operation
    if command is None or command.last_sent_at is None or command.status not in ("sent", "unknown"):
        return None, ""
    if operation is None:
        return (
            None,
            "The code here does not know this version: nobody can tell until when an earlier request may take effect.",
        )
    until = settled_from(command, operation)
    return (until, LATE) if case.now < until else (None, OVER)


def newest(case: Case) -> str:
    """The operation that something new is proposed with."""
    assert case.proposal is not None
    operation = registry.operation(case.proposal.operation)
    return f"{operation.title} ({operation.name}, version {operation.version})"
