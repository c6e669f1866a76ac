"""Render a proposal's view document: once, when it is made, with everything that comparing finds odd about it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final

from approvals.contradictions import Piece, evidence_warnings
from approvals.oddities import oddities
from approvals.traits import MOST, Seen, all_seen_in, hosts_in_front
from approvals.viewdoc import ViewChange, ViewDocument, ViewEvidence, ViewWarning, build_view
from approvals.viewrows import Material, material_rows
from workflows.contracts import Bound, utc_text
from workflows.models import Run
from workflows.preparing import Prepared
from workflows.results import EvidencePiece
from workflows.selectors_known import known_of

NO_PREVIEW: Final = "The operation could not say what will stand in the records afterwards."
COMPARED: Final = frozenset(
    {
        "first_account", "first_host", "lookalike_value", "amount_unusual", "evidence_contradicts",
        "evidence_disagrees", "evidence_stale", "same_thing_in_progress", "link_userinfo", "link_other_host",
        "link_ip_literal", "link_trailing_dot", "link_scheme", "link_no_host", "text_after_gap", "currency_unusual",
        "not_compared", "evidence_names_others", "lookalike_host", "idn_host", "host_in_front",
    }
)  # fmt: skip
"""Codes of what is found by comparing: found anew for each version, never carried over from the one before."""


_SIGNED: Final = (("Approval", "signed by the passkey of each person who approves"),)


@dataclass(frozen=True, slots=True)
class Salted:
    """A piece of evidence with its salt, and the digest that the contract binds."""

    piece: EvidencePiece
    salt: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class Shown:
    """The document that people will see, and the values by which later proposals are compared with this one."""

    view: ViewDocument
    seen: tuple[Seen, ...]


def render(
    run: Run, prepared: Prepared, bound: Bound, pieces: Sequence[Salted], *, decide_by: datetime, now: datetime,
    signed: bool = False, in_progress: bool = False,
) -> Shown:  # fmt: skip
    """The view of one action; ``in_progress``: the very same thing is. Reads what is known of earlier values."""
    draft = prepared.draft
    material = material_rows(draft.operation.arguments, draft.material)
    seen = all_seen_in(material.fields)
    view = build_view(
        operation=draft.operation.name, operation_version=draft.operation.version, contract_digest=bound.digest,
        headline=prepared.summary, consequence=prepared.consequence, schema=draft.operation.arguments,
        arguments=draft.material, volatile=draft.volatile,
        bound=[*_bound_rows(run, prepared, decide_by, len(pieces)), *(_SIGNED if signed else ())],
        asserted=prepared.asserted_pins,
        changes=[ViewChange(**asdict(c)) for c in prepared.affected],
        evidence=[_view_evidence(piece) for piece in pieces],
        warnings=[
            *(_view_warning(*warning) for warning in prepared.warnings),
            *((_in_progress(),) if in_progress else ()),
            *_found(run, prepared, pieces, material, seen, now),
        ],
        effect_unknown="" if prepared.affected else NO_PREVIEW,
    )  # fmt: skip
    return Shown(view, seen[:MOST])


def _found(
    run: Run, prepared: Prepared, pieces: Sequence[Salted], material: Material, seen: Sequence[Seen],
    now: datetime,
) -> tuple[ViewWarning, ...]:  # fmt: skip
    draft = prepared.draft
    asked = (*seen[:MOST], *hosts_in_front(seen[:MOST]))
    known = known_of(run.tenant_id, draft.operation.name, draft.target, asked)
    return (
        *oddities(material.fields, material.lists, seen, known, draft.target),
        *evidence_warnings(
            material.fields, [_compared(n, it.piece) for n, it in enumerate(pieces, start=1)], now
        ),
    )


def _in_progress() -> ViewWarning:
    """Accepted, and said: only one of the same thing is executed at a time (design, section 5)."""
    sentence = (
        "The very same thing is being done already, or it is not known whether it happened."
        " Approving is refused until that is settled."
    )
    return ViewWarning(
        code="same_thing_in_progress", label="The whole proposal", sentence=sentence, acknowledge=True
    )


def _compared(number: int, piece: EvidencePiece) -> Piece:
    return Piece(
        number=number, title=piece.title, data_class=piece.data_class, content=piece.content, ref=piece.ref,
        captured_at=piece.captured_at, fresh_until=piece.captured_at + piece.fresh_for if piece.fresh_for else None,
        kind=piece.kind,
    )  # fmt: skip


def _bound_rows(run: Run, prepared: Prepared, decide_by: datetime, pieces: int) -> list[tuple[str, str]]:
    operation = prepared.draft.operation
    pins = [("Pinned record", f"{record_} as {tag}") for record_, tag in prepared.draft.pins.items()]
    return [
        ("Workflow", f"{run.workflow}, version {run.workflow_version}"),
        ("Policy", f"{operation.policy.name}, version {operation.policy.version}"),
        ("Target", prepared.draft.target),
        *pins,
        ("Evidence", f"{pieces} {'piece' if pieces == 1 else 'pieces'}, by hash"),
        ("Decide by", utc_text(decide_by)),
        ("Execute within", _spoken(operation.execute_within)),
    ]


def _spoken(span: timedelta) -> str:
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    return f"{minutes} min after approval" if not seconds else f"{int(span.total_seconds())} s after approval"


def _view_evidence(salted: Salted) -> ViewEvidence:
    it = salted.piece
    return ViewEvidence(
        kind=it.kind, title=it.title, source=it.source, captured_at=utc_text(it.captured_at), digest=salted.digest,
        asserted=it.asserted, size=len(it.content),
        fresh_until=utc_text(it.captured_at + it.fresh_for) if it.fresh_for else "",
    )  # fmt: skip


def _view_warning(code: str, field: str, sentence: str) -> ViewWarning:
    label = field.replace("_", " ").capitalize() or "The whole proposal"
    return ViewWarning(
        code=code, label=label, sentence=sentence, acknowledge=True, pointer=f"/{field}" if field else ""
    )
