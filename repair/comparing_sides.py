"""What is compared of a run: its input, its data, and of each step what it found or was to do. Read as it is kept.

Content that was erased, or that does not open, is `UNREAD`: it is neither equal nor different to anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from approvals.models import Evidence, Proposal
from approvals.refusals import Uninspectable
from approvals.shown import view_of
from approvals.viewdoc import ViewDocument, ViewField
from common.content_errors import ContentErased
from common.content_keys import SealBroken
from common.digests import tenant_hmac
from common.sealed import prefetch_keys, readable
from common.strictjson import JsonRefused, JsonValue, canonicalize, parse
from workflows.contracts import read_contract
from workflows.engine.replayed import DRY
from workflows.enums import StepStatus, WaitingFor
from workflows.models import Command, Document, Run, Step


class Unread:
    """Content that cannot be read any more."""

    def __repr__(self) -> str:
        return "UNREAD"


UNREAD: Final = Unread()
Content: TypeAlias = "JsonValue | Unread"


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence; ``content`` is a keyed digest, None where the content is gone."""

    title: str
    data_class: str
    content: str | None


@dataclass(frozen=True, slots=True)
class Act:
    """What a step was to do, and what became of it. ``fields``: None where what was shown cannot be read any more."""

    operation: str
    operation_version: int
    target: str
    fields: tuple[ViewField, ...] | None
    pins: Mapping[str, str]
    evidence: tuple[Piece, ...]
    consequence: str
    policy: Mapping[str, Any]
    """``version``, ``verdict``, ``rule`` and whatever else the verdict's snapshot holds."""
    needed: int
    ended: str
    """What became of it: the state of its order, else of its proposal."""
    effect: str
    left_out: bool = False
    """It was prepared and nothing more, by a run that does not act."""


@dataclass(frozen=True, slots=True)
class SideStep:
    """One step of one run."""

    key: str
    kind: str
    status: str
    stands: bool
    """Whether it has come to an end, or to a stop that a person looks at."""
    failure: str
    confidence: str
    data: Content
    """What people supplied to it; None where nothing was."""
    result: Content
    act: Act | None


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    run: Run
    input: Content
    steps: Mapping[str, SideStep]


def side_of(run: Run) -> Side:
    """A handful of statements, however many steps there are."""
    documents = list(
        Document.objects.filter(tenant_id=run.tenant_id, run_id=run.pk).order_by("created_at", "id")
    )
    prefetch_keys(documents)
    steps = Step.objects.filter(tenant_id=run.tenant_id, run=run).order_by("position")
    acts = {**_left_out(documents), **_acts(run)}
    return Side(
        run=run, input=_of_id(documents, run.input_ref),
        steps={step.key: _side_step(step, documents, acts) for step in steps},
    )  # fmt: skip


def _side_step(step: Step, documents: Sequence[Document], acts: Mapping[str, Act]) -> SideStep:
    act = acts.get(step.key)
    stopped = step.status == StepStatus.WAITING and step.waiting_for == WaitingFor.PERSON
    return SideStep(
        key=step.key, kind=step.kind, status="stopped" if stopped else step.status,
        stands=stopped or step.status in StepStatus.final_states, failure=step.failure_code,
        confidence="" if step.confidence is None else f"{step.confidence.normalize():f}",
        data=_data_of(documents, step.key),
        # What a provider answered differs each time, by ids and times; whether it happened is compared as the effect.
        result=_of_id(documents, step.result_ref) if step.result_ref and act is None else None, act=act,
    )  # fmt: skip


def _data_of(documents: Sequence[Document], key: str) -> Content:
    """All that was supplied to the step, later answers over earlier ones."""
    supplied: dict[str, JsonValue] = {}
    for document in documents:
        if document.kind == f"data.{key}":
            answer = content_of(document)
            if not isinstance(answer, dict):
                return UNREAD
            supplied |= answer
    return supplied or None


def _of_id(documents: Sequence[Document], pk: object) -> Content:
    found = next((document for document in documents if document.pk == pk), None)
    return UNREAD if found is None else content_of(found)


def content_of(document: Document) -> Content:
    """A protected document as JSON."""
    stored = readable(document, "content")
    try:
        return UNREAD if stored is None else parse(bytes(stored))
    except JsonRefused:
        return UNREAD


# -- what was proposed --------------------------------------------------------------------------------------------


def _acts(run: Run) -> Mapping[str, Act]:
    """By step: the newest version of what was proposed."""
    proposals = Proposal.objects.filter(tenant_id=run.tenant_id, run_id=run.pk).order_by("created_at", "pk")
    newest = {proposal.step: proposal for proposal in proposals}
    evidence: dict[object, list[Evidence]] = {}
    pieces = list(
        Evidence.objects.filter(tenant_id=run.tenant_id, proposal__in=newest.values()).order_by("position")
    )
    for row in pieces:
        evidence.setdefault(row.proposal_id, []).append(row)
    commands = {
        command.proposal_id: command
        for command in Command.objects.filter(tenant_id=run.tenant_id, proposal__in=newest.values())
    }
    return {
        step: _act_of(proposal, evidence.get(proposal.pk, ()), commands.get(proposal.pk))
        for step, proposal in newest.items()
    }


def _left_out(documents: Sequence[Document]) -> Mapping[str, Act]:
    """By step: what a run that does not act has prepared and kept."""
    found = {
        document.kind.removeprefix(DRY): content_of(document) for document in documents if _is_dry(document)
    }
    return {step: _act_left_out(content) for step, content in found.items() if isinstance(content, dict)}


def _is_dry(document: Document) -> bool:
    return document.kind.startswith(DRY)


def _act_left_out(content: Mapping[str, Any]) -> Act:
    pieces = (Piece(piece["title"], piece["data_class"], piece["content"]) for piece in content["evidence"])
    return Act(
        operation=content["operation"], operation_version=content["operation_version"], target=content["target"],
        fields=ViewDocument.from_bytes(canonicalize(content["view"])).fields, pins=content["pins"],
        evidence=tuple(pieces), consequence=content["consequence"], policy=content["policy"],
        needed=content["needed"], ended="", effect="", left_out=True,
    )  # fmt: skip


def _act_of(proposal: Proposal, evidence: Sequence[Evidence], command: Command | None) -> Act:
    return Act(
        operation=proposal.operation, operation_version=proposal.operation_version, target=proposal.target,
        fields=_fields_of(proposal), pins=_pins_of(proposal), evidence=tuple(map(_piece, evidence)),
        consequence=proposal.consequence, policy=proposal.policy, needed=proposal.needed,
        ended=f"order {command.status}" if command else f"proposal {proposal.status}",
        effect=command.effect if command else "",
    )  # fmt: skip


def _fields_of(proposal: Proposal) -> tuple[ViewField, ...] | None:
    try:
        return view_of(proposal).fields
    except (ContentErased, Uninspectable):
        return None


def _pins_of(proposal: Proposal) -> Mapping[str, str]:
    try:
        pins = read_contract(bytes(proposal.contract)).get("pins", {})
    except (ContentErased, SealBroken, JsonRefused, AssertionError):
        return {}
    return cast("Mapping[str, str]", pins) if isinstance(pins, dict) else {}


def _piece(row: Evidence) -> Piece:
    content = readable(row, "content")
    digest = None if content is None else piece_digest(row.tenant_id, bytes(content))
    return Piece(row.title, row.data_class, digest)


def piece_digest(tenant_id: object, content: bytes) -> str:
    """Without the salt of one proposal, so that the same content is known again in another."""
    return tenant_hmac(tenant_id, "compared-evidence", content)
