"""What the API says and takes about workflows, operations, runs, commands and receipts."""

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from approvals.api_schemas import NextAction
from common.strictbody import Body

_ID = "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"
_SOURCE = {"system": "helpdesk", "event_id": "ticket-4711"}
ENVELOPE_EXAMPLE: dict[str, Any] = {
    "run_id": _ID, "kind": "original", "original_id": None, "workflow": "refund-triage", "workflow_version": 3,
    "status": "waiting_for_approval", "outcome": None, "original_outcome": None, "message": None,
    "waiting": {
        "wait_id": _ID, "for": "approval", "until": "2026-09-19T17:52:08Z", "on_expiry": "manual_queue", "asks": None,
    },
    "attempt": 1, "requested_by": "api:intake", "request_ids": ["0199d3f07b7e7cc28f606c1f0d3c5a12"],
    "source": _SOURCE, "versions": {"policy": 7, "model": None, "prompt": None, "operations": {"refunds.issue": 2}},
    "input_refs": [_ID], "started_at": "2026-09-19T13:52:08Z",
    "finished_at": None, "cancel_requested": False, "state_version": 12,
    "steps": [
        {
            "id": "refund", "kind": "side_effect", "status": "waiting", "waiting_for": "approval", "attempt": 1,
            "proposal_id": _ID, "command_id": None, "command_status": None, "input_hash": None, "result_ref": None,
            "failure_code": None,
            "started_at": "2026-09-19T13:52:08Z", "finished_at": None,
            "usage": {"input_tokens": 0, "output_tokens": 0, "cost": "0"},
        }
    ],
    "questions": [], "next_action": "wait", "retry_after": 5,
}  # fmt: skip


def example(value: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [value]})


def _instant(value: Any) -> datetime:
    """RFC 3339 with its zone; numbers are not taken for seconds since 1970."""
    if not isinstance(value, str):
        raise ValueError("An instant is a string such as 2026-09-19T17:52:08Z.")  # noqa: TRY004 - pydantic's way
    at = datetime.fromisoformat(value)
    if not 1900 <= at.year <= 9998:
        raise ValueError("An instant lies between the years 1900 and 9998.")  # in each zone
    return at


InstantText = Annotated[AwareDatetime, BeforeValidator(_instant)]
Id = Annotated[UUID, Field(strict=False)]
Word = Annotated[str, Field(max_length=200)]


# -- requests -------------------------------------------------------------------------------------------------


class SourceIn(Body):
    """Where a run comes from. ``record`` and ``sequence`` order the events of one record."""

    system: str = Field(min_length=1, max_length=60)
    event_id: str = Field(min_length=1, max_length=200)
    record: str | None = Field(default=None, max_length=200)
    sequence: int | None = None


class RunIn(Body):
    """One source event for a workflow. The same event again leads to the same run."""

    model_config = example(
        {
            "workflow": "refund-triage", "source": _SOURCE,
            "input": {"message": "My parcel arrived broken.", "order": "1042", "customer": "c-17"},
        }
    )  # fmt: skip

    workflow: str = Field(min_length=1, max_length=60)
    source: SourceIn
    input: dict[str, Any]
    callback: str | None = Field(
        default=None, max_length=500, pattern=r"^(https?://[^\s/]+\S*|[a-z0-9][a-z0-9_-]{0,59})$"
    )
    """The name or the exact address of a destination that an admin has registered."""


class DataIn(BaseModel):
    """The answer to a run that waits for data: ``wait_id``, and beside it the fields that were asked for."""

    model_config = ConfigDict(
        extra="allow", strict=True, frozen=True, json_schema_extra={"examples": [{"wait_id": _ID, "order": "1042"}]}
    )  # fmt: skip

    wait_id: Id

    @property
    def data(self) -> dict[str, Any]:
        """The fields beside the id; or, where the only one is an object called ``data``, those inside it."""
        beside = dict(self.model_extra or {})
        inside = beside.get("data")
        return inside if len(beside) == 1 and isinstance(inside, dict) else beside


class CancelIn(Body):
    """Why the run is stopped."""

    model_config = example({"reason": "The customer withdrew the request."})

    reason: str = Field(max_length=500)


class EvidenceIn(Body):
    """One piece that a proposal rests on. From outside it is an assertion, and is marked so."""

    kind: str = Field(min_length=1, max_length=40)
    title: str = Field(min_length=1, max_length=200)
    ref: str = Field(default="", max_length=300)
    content: str | dict[str, Any] | list[Any] | None = None
    captured_at: InstantText


class ProposalIn(Body):
    """One action that an automation proposes.

    ``target`` and ``pins`` are claims: they are fetched again and compared. ``hash``, where given, is the SHA-256 of
    the arguments' canonical bytes as ``./placet canonicalize`` prints them; it is compared and never stored.
    """

    model_config = example(
        {
            "workflow": "refund-requests", "source": _SOURCE, "key": "refund", "operation": "refunds.issue",
            "arguments": {"order": "1042", "amount": "25.00", "currency": "EUR"},
            "reason": "The parcel arrived broken.",
            "evidence": [
                {
                    "kind": "message", "title": "The customer's message", "ref": "ticket-4711",
                    "content": "My parcel arrived broken.", "captured_at": "2026-09-19T13:50:00Z",
                }
            ],
        }
    )  # fmt: skip

    workflow: str = Field(min_length=1, max_length=60)
    source: SourceIn
    key: str = Field(min_length=1, max_length=100)
    operation: str = Field(min_length=1, max_length=60)
    arguments: dict[str, Any]
    reason: str = Field(min_length=1, max_length=4_000)
    evidence: list[EvidenceIn] = Field(default_factory=list, max_length=50)
    target: str | None = Field(default=None, max_length=200)
    pins: dict[Word, Word] | None = Field(default=None, max_length=50)
    supersedes: Id | None = None
    hash: str | None = Field(default=None, max_length=80)


# -- answers --------------------------------------------------------------------------------------------------


WaitingOut = TypedDict(
    "WaitingOut",
    {"wait_id": UUID, "for": str, "until": datetime, "on_expiry": str, "asks": NotRequired[dict[str, Any]]},
)
"""What a run waits for, until when, and what happens then. An answer must name ``wait_id``."""


class StepOut(BaseModel):
    """One logical action of a run."""

    id: str
    kind: str
    status: str
    waiting_for: str | None
    attempt: int
    proposal_id: UUID | None
    command_id: UUID | None
    command_status: str | None
    input_hash: str | None
    result_ref: UUID | None
    failure_code: str | None
    started_at: datetime | None
    finished_at: datetime | None
    usage: dict[str, Any]


class QuestionRef(BaseModel):
    """A reviewer's question that waits for the requester; its words are read with the proposal."""

    id: UUID
    proposal_id: UUID
    asked_at: datetime
    until: datetime


class RunOut(BaseModel):
    """The execution envelope. It points at protected storage and quotes nothing from there."""

    model_config = example(ENVELOPE_EXAMPLE)

    run_id: UUID
    kind: Literal["original", "replay", "undo", "rest"]
    original_id: UUID | None
    """Of a replay, a compensation or a remainder: the run whose keys and counts hold."""
    workflow: str
    workflow_version: int
    status: str
    outcome: str | None
    original_outcome: str | None
    message: str | None
    waiting: WaitingOut | None
    attempt: int
    requested_by: str
    request_ids: list[str]
    source: dict[str, Any]
    versions: dict[str, Any]
    input_refs: list[UUID]
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested: bool
    state_version: int
    steps: list[StepOut]
    questions: list[QuestionRef]
    next_action: NextAction
    retry_after: int | None


class CancelOut(RunOut):
    """The run after it was cancelled, or after the wish to cancel was noted."""

    model_config = example({"result": "cancelled"} | ENVELOPE_EXAMPLE)

    result: Literal["cancelled", "cancel_requested"]


class RunsOut(BaseModel):
    """Newest first; ``next_cursor`` is empty on the last page."""

    model_config = example({"runs": [ENVELOPE_EXAMPLE], "next_cursor": ""})

    runs: list[RunOut]
    next_cursor: str


class BulkItem(BaseModel):
    """What became of one item: its run with status 200 or 201, or the problem that it would have had alone."""

    index: int
    status: int
    run: RunOut | None = None
    problem: dict[str, Any] | None = None


class BulkOut(BaseModel):
    """One result for each item, in the order of the request."""

    model_config = example(
        {"created": 1, "repeated": 0, "refused": 0,
         "results": [{"index": 0, "status": 201, "run": ENVELOPE_EXAMPLE, "problem": None}]}
    )  # fmt: skip

    created: int
    repeated: int
    refused: int
    results: list[BulkItem]


class ReceiptOut(BaseModel):
    """The signed receipt of one step. ``decision`` and ``execution`` are apart; the second is null if nothing was sent.

    The signature is over ``"placet.receipt.v1\\n"`` and the RFC 8785 bytes of everything but ``signature``.
    """

    model_config = example(
        {
            "v": 1, "tenant_id": _ID, "run_id": _ID, "step": "refund", "workflow": "refund-triage",
            "workflow_version": 3, "operation": "refunds.issue", "operation_version": 2, "target": "order:1042",
            "mode": "live", "final": True, "decision": {"status": "consumed", "votes": []},
            "execution": {"status": "confirmed", "effect": "happened"},
            "signature": {"alg": "Ed25519", "key_id": "9b1f0c5a4d1f4b7a", "value": "bmljZSB0cnk="},
        }
    )  # fmt: skip

    v: int
    tenant_id: str
    run_id: str
    step: str
    workflow: str
    workflow_version: int
    operation: str
    operation_version: int
    target: str
    mode: str
    final: bool
    decision: dict[str, Any]
    execution: dict[str, Any] | None
    signature: dict[str, str]


class KeysOut(BaseModel):
    """The public keys of receipts: 32 bytes in base64 each."""

    model_config = example(
        {"keys": [{"key_id": "9b1f0c5a4d1f4b7a", "alg": "Ed25519", "public_key": "MCowBQ=="}]}
    )

    keys: list[dict[str, str]]


class ResultOut(BaseModel):
    """A document from protected storage: an input or a result that an envelope points at."""

    model_config = example(
        {"ref": _ID, "run_id": _ID, "kind": "result.confirm", "created_at": "2026-09-19T13:55:02Z",
         "digest": "hmac:…", "content": {"message": "Your refund is on its way."}}
    )  # fmt: skip

    ref: UUID
    run_id: UUID
    kind: str
    created_at: datetime
    digest: str
    content: Any
