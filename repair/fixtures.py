"""A packet as a case of the project's format: redacted, and ready to be a test once somebody has looked at it.

What was personal is replaced by something of its type, so that the input is valid again and says nothing of anybody.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from approvals.models import Proposal
from audit.actions import record
from audit.actors import Actor
from common.content_errors import ContentErased
from common.content_keys import SealBroken
from common.disclosure import is_open
from common.fields import Arguments, EmailType, ListType, OptionalType, StructureType
from common.tx import action
from repair.models import RepairPacket
from repair.packet.case import Case, case_of
from repair.tables import cause_words
from workflows import registry
from workflows.documents import load_json
from workflows.enums import Effect
from workflows.models import Document
from workflows.selectors import told_in_list

SOMEBODY: Final = "somebody@example.com"
WORDS: Final = "(personal, taken out)"
UNACCEPTABLE: Final = {
    "command_unknown": "It is sent again blindly, or called failed while nobody knows.",
    "late_effect": "It happens twice, and nobody is told.",
}
NEVER: Final = "Something happens without an approval, twice, or without anybody being told that it stopped."


@action
def fixture_of(packet: RepairPacket, *, by: Actor) -> dict[str, Any]:
    """The case. Whoever makes one is written down: it goes where code goes."""
    made = case_from(case_of(packet))
    record(
        by=by, kind="packet.exported", tenant_id=packet.tenant_id, subject_type="packet", subject_id=packet.pk,
        run_id=packet.run_id, body={"as": "fixture"},
    )  # fmt: skip
    return made


def case_from(case: Case) -> dict[str, Any]:
    packet = case.packet
    return {
        "id": f"packet-{packet.pk.hex[-8:]}", "title": f"{cause_words(packet.cause)}, at {packet.step}",
        "input": redacted_input(case), "decide": _decisions(case), "expect": _expected(case),
        "unacceptable": UNACCEPTABLE.get(packet.cause, NEVER),
    }  # fmt: skip


def redacted_input(case: Case) -> Any:
    """What came in, by the classes that the workflow's author declared; what has none is taken out whole."""
    run, flow = case.run, registry.installed(case.run.workflow)
    document = Document.objects.filter(tenant_id=run.tenant_id, pk=run.input_ref).first()
    try:
        value = load_json(document) if document is not None else {}
    except (ContentErased, SealBroken):
        return {}
    schema = flow.contract.input if flow is not None else None
    if isinstance(schema, type) and issubclass(schema, Arguments):
        return redacted(schema, value)
    return dict.fromkeys(_declared(schema, value), WORDS)


def _declared(schema: Any, value: Any) -> list[str]:
    """The names that the author declared: any other came in with the request, and may be what somebody wrote."""
    if not isinstance(value, Mapping) or not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return []
    known = {it.alias or name for name, it in schema.model_fields.items()}
    return [name for name in value if name in known]


def redacted(schema: type[Arguments], value: Any) -> Any:
    """The same names; open values as they are, others replaced."""
    if not isinstance(value, Mapping):
        return {}
    return {spec.name: _field(spec.kind, value[spec.name], open_=is_open(spec.data_class))
            for spec in schema.specs if spec.name in value}  # fmt: skip


def _field(kind: Any, value: Any, *, open_: bool) -> Any:
    match kind:
        case OptionalType(inner=inner):
            return None if value is None else _field(inner, value, open_=open_)
        case ListType(item=item) if isinstance(value, list):
            return [_field(item, one, open_=open_) for one in value]
        case StructureType():
            return redacted(kind.model, value) if open_ else {}
    if open_:
        return value
    return SOMEBODY if isinstance(kind, EmailType) else WORDS


def _decisions(case: Case) -> list[dict[str, str]]:
    """People as the case format names them: *one*, *two*."""
    votes = case.story.votes.get(case.proposal.pk, ()) if case.proposal else ()
    names = ("one", "two", "three", "four")
    people = [vote for vote in votes if vote.user_id is not None]
    return [{"by": name, "kind": vote.kind} for name, vote in zip(names, people, strict=False)]


def _expected(case: Case) -> dict[str, Any]:
    """As it rested when the fixture was made: whoever takes it over says what is right."""
    run, packet = case.run, case.packet
    expect: dict[str, Any] = {
        "state": run.status, "outcome": run.outcome, "user_message": told_in_list(run), "owner": packet.owner,
        "cause": packet.cause, "refunds": _effects(case),
    }  # fmt: skip
    if case.proposal is not None and case.proposal.group is not None:
        expect |= {"asked": case.proposal.group.name, "needed": case.proposal.needed}
    return expect


def _effects(case: Case) -> list[str]:
    proposal: Proposal | None = case.proposal
    if (
        proposal is None
        or case.command is None
        or case.command.effect not in (Effect.HAPPENED, Effect.PARTIAL)
    ):
        return []
    if proposal.amount is None:
        return [proposal.summary]
    return [f"{proposal.amount_currency} {proposal.amount.normalize():f}"]
