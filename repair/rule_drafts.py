"""A packet as the draft of a validation rule: what a check could have seen before, and a case that would prove it.

A draft decides nothing and is run by nothing. It names the arguments, evidence, records and answers that the stop was
about, so that an author can write the check where it belongs: into the operation, its policy, or a stage.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from approvals.models import Proposal
from audit.actions import record
from audit.actors import Actor
from audit.models import Event
from common.content_errors import ContentErased
from common.content_keys import SealBroken
from common.strictjson import JsonRefused
from common.tx import action
from repair.fixtures import case_from, redacted
from repair.models import RepairPacket
from repair.packet.case import Case, case_of
from repair.packet.execution import code_of
from repair.packet.texts import said
from repair.tables import cause_words
from workflows import registry
from workflows.contracts import read_contract
from workflows.record_looks import kind_of_record
from workflows.registry import UnknownOperation

FORMAT: Final = "placet.rule-draft.v1"
BELONGS: Final = {
    "command_refused": "the operation's check: the provider refuses this, so nobody need be asked about it",
    "command_pin": "the operation's pins, or a shorter time to execute: the record moves faster than people decide",
    "command_earlier_effect": "the operation's business key or earlier effects: it is the same thing once more",
    "command_lapsed": "the operation's time to execute, or the people who are asked",
    "approval_expired": "the operation's time to decide, or the workflow's escalations",
    "low_confidence": "a stage: code that is sure, before anything is judged",
    "invalid_arguments": "the stage that proposes: it must not suggest this",
}
ANYWHERE: Final = "the operation's check or its policy"


@action
def rule_of(packet: RepairPacket, *, by: Actor) -> dict[str, Any]:
    """The draft. Whoever makes one is written down: it goes where code goes."""
    case = case_of(packet)
    before, after = _versions(case)
    draft = {
        "format": FORMAT, "id": f"rule-{packet.pk.hex[-8:]}", "made_of": f"packet-{packet.pk.hex[-8:]}",
        "workflow": case.run.workflow, "operation": before.operation if before is not None else None,
        "operation_version": before.operation_version if before is not None else None,
        "says": f"Never again unseen: {cause_words(packet.cause).lower()}, at {packet.step}.",
        "belongs_to": BELONGS.get(packet.cause, ANYWHERE),
        "conditions": [*_arguments(before, after), *_evidence(case), *_records(case), *_answers(case)],
        "test": _skeleton(case),
    }  # fmt: skip
    record(
        by=by, kind="packet.exported", tenant_id=packet.tenant_id, subject_type="packet", subject_id=packet.pk,
        run_id=packet.run_id, body={"as": "rule"},
    )  # fmt: skip
    return draft


def _versions(case: Case) -> tuple[Proposal | None, Proposal | None]:
    """The version that stopped, and the one that people made instead, where they corrected it."""
    stopped = case.proposal
    if stopped is None:
        return None, None
    corrected = Event.objects.filter(
        tenant_id=stopped.tenant_id, kind="step.corrected", run_id=stopped.run_id, body__instead_of=str(stopped.pk)
    ).first()  # fmt: skip
    if corrected is None:
        return stopped, None
    made = UUID(str((corrected.body or {})["proposal_id"]))
    return stopped, Proposal.objects.filter(tenant_id=stopped.tenant_id, pk=made).first()


def _arguments(before: Proposal | None, after: Proposal | None) -> list[dict[str, Any]]:
    """What people changed, from what to what; where they changed nothing, all that was bound. Redacted by class."""
    if before is None:
        return []
    was, became = _values(before), _values(after) if after is not None else None
    if became is None:
        return [{"where": "argument", "name": name, "was": value} for name, value in was.items()]
    return [
        {"where": "argument", "name": name, "was": value, "became": became.get(name)}
        for name, value in was.items() if _plain(before).get(name) != _plain(after).get(name)
    ]  # fmt: skip


def _values(proposal: Proposal) -> Mapping[str, Any]:
    try:
        operation = registry.operation(proposal.operation, proposal.operation_version)
    except UnknownOperation:
        return {}
    found: Mapping[str, Any] = redacted(operation.arguments, _plain(proposal))
    return found


def _plain(proposal: Proposal | None) -> Mapping[str, Any]:
    """The bound arguments as they are, to be compared; nothing where they cannot be read any more."""
    if proposal is None:
        return {}
    try:
        arguments = read_contract(bytes(proposal.contract)).get("arguments", {})
    except (ContentErased, SealBroken, JsonRefused, AssertionError):
        return {}
    return arguments if isinstance(arguments, Mapping) else {}


def _evidence(case: Case) -> list[dict[str, Any]]:
    """Kinds and ages: titles and contents are somebody's words."""
    asked = case.proposal.created_at if case.proposal is not None else case.packet.opened_at
    return [
        {"where": "evidence", "name": row.kind, "asserted": row.asserted,
         "age_s": max(0, int((asked - row.captured_at).total_seconds()))}
        for row in case.evidence
    ]  # fmt: skip


def _records(case: Case) -> list[dict[str, Any]]:
    """Kinds of records whose version was pinned, and whether a newer one was seen: ids and versions stay here."""
    return [
        {"where": "record", "name": kind_of_record(name), "changed_since": case.pins_now.get(name, tag) != tag}
        for name, tag in case.pins.items()
    ]  # fmt: skip


def _answers(case: Case) -> list[dict[str, Any]]:
    """What the provider, or the stage, said: a code."""
    code = said(code_of(case))
    return [{"where": "answer", "name": code}] if code else []


def _skeleton(case: Case) -> dict[str, Any]:
    """The case as it was, with what a rule would make of it: whoever writes the rule says which."""
    made = case_from(case)
    expect = {name: made["expect"][name] for name in ("user_message", "owner")}
    return made | {
        "id": f"rule-{case.packet.pk.hex[-8:]}", "decide": [],
        "expect": {"state": "TO BE SAID", "outcome": "TO BE SAID", **expect, "refunds": []},
        "unacceptable": "The rule does not see it, and it stops again, or worse, happens.",
    }  # fmt: skip
