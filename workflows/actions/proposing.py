"""Write a proposal: bind the contract, render the view once, store the evidence. Inside the caller's transaction."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from approvals.actions import approve_by_rule, move_proposal
from approvals.alike import shape_of
from approvals.bound import of_proposal
from approvals.enums import Mode, ProposalStatus
from approvals.kept_votes import note_dropped
from approvals.models import Evidence, Proposal
from approvals.refusals import ActionInProgress, Uninspectable
from approvals.remembering import check_not_rejected
from approvals.shown import view_of
from approvals.signing import MEMBER, PASSKEY, must_be_signed
from approvals.traits import trait_rows
from approvals.viewdoc import ASSERTED, ViewDocument, build_view
from audit.actions import record
from audit.actors import Actor, rule_actor
from audit.bound import ROW, row_digest, utc_text
from common import prepared as rows
from common.clock import Clock
from common.content_errors import ContentErased
from common.content_keys import SealBroken
from common.digests import evidence_digest
from common.fields import DataClass
from common.ids import new_id
from common.sealed import check_intact
from common.strictjson import canonicalize
from common.tx import flush, require_transaction
from workflows import registry
from workflows.actions.before import before
from workflows.actions.manning import draw_sample, group_of, plan_escalations, report_if_unmanned
from workflows.actions.preflight import check_not_done, orders_of_the_same
from workflows.actions.rendering import COMPARED, Salted, render
from workflows.actions.replaying import check_may_propose
from workflows.actions.settle import make_wait
from workflows.contracts import Bound, Draft, bind, material_digest_of, parse_object, read_contract
from workflows.hooks import Stop, stopped
from workflows.models import Run, Step
from workflows.modes import Blocking, Case, Ruling, rule_on
from workflows.operations import Affected, Test, Verdict
from workflows.preparing import Prepared, policy_snapshot
from workflows.results import EvidencePiece
from workflows.signed import to_be_signed
from workflows.tenants import slug_of
from workflows.waits import wait_for_approval

MODES = {
    "observe": Mode.SHADOW, "suggest": Mode.SHADOW, "prepare": Mode.DRAFT, "approve": Mode.LIVE, "execute": Mode.LIVE,
}  # fmt: skip


def create_proposal(
    run: Run, step: Step, prepared: Prepared, *, tenant: str, by: Actor, clock: Clock, now: datetime,
    supersedes: Proposal | None = None, side: Collection[UUID] = (), edited_by: UUID | None = None,
    repeats: bool = False,
) -> Proposal:  # fmt: skip
    """Bind, render and store one proposal for a step of a locked run, and let the step wait for the answer.

    ``side``: people who stand behind this version, beside those behind the run and behind the version before it.
    An auto verdict is decided at once by its rule, on stage *execute* only; on any other a person is asked, and so they
    are about what ``edited_by`` has changed. Every way of proposing leads through here: raises PreviouslyRejected or
    AlreadyDone, before anything is written, but not of what ``repeats`` a question that had its yes.
    """
    require_transaction()
    material = material_digest_of(run.tenant_id, prepared.draft)
    known = before(run, step, prepared.draft, material, now)
    if not repeats:
        check_not_rejected(known.rejected, proposed_by=run.requested_by)
    made = _bind(run, step, prepared, known.generation(step, material), tenant=tenant, now=now)
    key = made.bound.business_key
    check_may_propose(run, step.key, business_key=key, material=material, besides=supersedes)
    same = orders_of_the_same(run.tenant_id, key)
    if not repeats:
        check_not_done(same)
    shown = render(
        run, prepared, made.bound, made.pieces, decide_by=made.decide_by, now=now, signed=made.signed,
        in_progress=same.in_progress,
    )  # fmt: skip
    if supersedes is not None and supersedes.status in ProposalStatus.live_states:
        move_proposal(supersedes, "supersede", by=by, at=now, reason="a newer version")
    ruling = _ruling(run, prepared, by_people=made.signed or edited_by is not None)
    proposal = _insert(
        run, step, prepared, made, shown.view, now, ruling, supersedes, known.excluded(run, supersedes, side),
        edited_by, _through(run, supersedes, by),
    )  # fmt: skip
    _insert_evidence(proposal, made.pieces)
    rows.insert_all(trait_rows(proposal, shown.seen))
    _let_wait(run, step, proposal, by=by)
    _record_made(proposal, by=by)
    _ask(run, step, proposal, prepared, ruling, by=by, clock=clock, now=now)
    return proposal


@dataclass(frozen=True, slots=True)
class _Binding:
    """What people will answer for: the contract, and what stands in it beside the draft."""

    bound: Bound
    pieces: list[Salted]
    decide_by: datetime
    generation: int
    signed: bool


def _bind(
    run: Run, step: Step, prepared: Prepared, generation: int, *, tenant: str, now: datetime
) -> _Binding:
    pieces = [_salted(piece) for piece in prepared.evidence]
    decide_by = (now + prepared.draft.operation.decide_within).replace(microsecond=0)
    signed = to_be_signed(prepared.draft, prepared.verdict.risk)
    bound = bind(
        run, step.key, prepared.draft, tenant=tenant, actor=run.requested_by, generation=generation,
        evidence=[piece.digest for piece in pieces], decide_by=decide_by, signed=signed,
    )  # fmt: skip
    return _Binding(bound, pieces, decide_by, generation, signed)


def _let_wait(run: Run, step: Step, proposal: Proposal, *, by: Actor) -> None:
    step.proposal_id, step.generation = proposal.pk, proposal.generation
    on_expiry = registry.promised(run).on_expiry
    make_wait(step, wait_for_approval(proposal.decide_by, on_expiry), by=by, reason="proposal")


def _ruling(run: Run, prepared: Prepared, *, by_people: bool) -> Ruling:
    """What the policy says, and the workflow's mode of review adds to it. No rule approves what a person has made: an
    edit, a compensation, a remainder. Nor what has to be signed (``by_people``, as an edit).
    """
    draft, verdict, flow = prepared.draft, prepared.verdict, registry.installed(run.workflow)
    auto = verdict.verdict == "auto" and run.stage == "execute" and not (by_people or run.is_follow_up)
    case = Case(draft.operation.name, draft.arguments, draft.target, verdict.risk, run.confidence)
    return rule_on(flow.review if flow else Blocking(), case, auto=auto, because=verdict.because)


def reissue(run: Run, step: Step, old: Proposal, *, by: Actor, clock: Clock, now: datetime) -> Proposal:
    """Ask the same again, as a new version: same arguments, pins and evidence, a new nonce and new clocks.

    For a proposal that ended without effect. Nothing is read from outside: the worker fetches the pins before it
    sends, and a record that has changed since is found there. People said yes to it before: a rejection that another
    proposal of the same got meanwhile is told to them, and does not answer in their place.
    """
    require_transaction()
    return create_proposal(
        run,
        step,
        _prepared_again(old),
        tenant=slug_of(run.tenant_id),
        by=by,
        clock=clock,
        now=now,
        supersedes=old,
        repeats=True,
    )


def can_reissue(old: Proposal) -> bool:
    """Whether all that a next version takes over can still be read as it was stored."""
    try:
        check_intact(old, "contract", "volatile", "consequence", "reason", "affected")
        view_of(old)
        for row in old.evidence.all():
            check_intact(row, "content")
    except (ContentErased, SealBroken, Uninspectable):
        return False
    return True


def _prepared_again(old: Proposal) -> Prepared:
    contract = read_contract(bytes(old.contract))
    operation = registry.operation(old.operation, old.operation_version)
    draft = Draft(
        operation, contract["arguments"], parse_object(bytes(old.volatile)), old.target, contract["pins"]
    )
    view = view_of(old)
    own = build_view(
        operation=old.operation, operation_version=old.operation_version, contract_digest=old.digest, headline="",
        consequence="", schema=operation.arguments, arguments=draft.material,
    )  # fmt: skip
    found_anew = {warning.id for warning in own.warnings}
    return Prepared(
        draft=draft, verdict=_verdict_of(old), consequence=old.consequence, summary=old.summary,
        affected=tuple(Affected(**row) for row in old.affected),
        warnings=tuple((w.code, w.pointer.lstrip("/"), w.sentence) for w in view.warnings
                       if w.id not in found_anew and w.acknowledge and w.code not in COMPARED),
        reason=old.reason, evidence=tuple(piece_again(row) for row in old.evidence.all()),
        asserted_pins=tuple(row.text for row in view.unbound if row.label == ASSERTED),
    )  # fmt: skip


def _verdict_of(old: Proposal) -> Verdict:
    policy = old.policy
    tests = tuple(Test(test["label"], test["ok"], test["says"]) for test in policy["tests"])
    group = old.group.name if old.group is not None else ""
    return Verdict(policy["verdict"], policy["rule"], policy["because"], tests, group, old.risk)


def piece_again(row: Evidence) -> EvidencePiece:
    """A stored piece as it was captured, for a next version that rests on it too."""
    return EvidencePiece(
        kind=row.kind, title=row.title, content=bytes(row.content or b""), captured_at=row.captured_at,
        source=row.source, ref=row.ref, data_class=DataClass(row.data_class), asserted=row.asserted,
        fresh_for=row.fresh_until - row.captured_at if row.fresh_until else None,
    )  # fmt: skip


def _ask(
    run: Run, step: Step, proposal: Proposal, prepared: Prepared, ruling: Ruling, *, by: Actor, clock: Clock,
    now: datetime,
) -> None:  # fmt: skip
    if ruling.automatic:
        _approve_itself(run, step, proposal, prepared, ruling, by=by, clock=clock, now=now)
    else:
        plan_escalations(proposal)
        report_if_unmanned(run, step, proposal, by=by, now=now)


def _approve_itself(
    run: Run, step: Step, proposal: Proposal, prepared: Prepared, ruling: Ruling, *, by: Actor, clock: Clock,
    now: datetime,
) -> None:  # fmt: skip
    """By its rule, at once. While the same thing is being done already, it stays pending, and people are told."""
    rule, version = prepared.verdict.rule, prepared.draft.operation.policy.version
    flush()
    try:
        with transaction.atomic():
            actor = rule_actor(rule, version)
            command_id = approve_by_rule(
                proposal, rule=rule, version=version, by=actor, now=now, why=ruling.why
            )
            draw_sample(proposal, command_id, by=actor, now=now)
    except ActionInProgress:
        proposal.refresh_from_db()
        summary = (
            "The same thing is already being done, so its rule could not approve it. A person can, later."
        )
        _report(run, step, proposal, "action_in_progress", summary, by=by, now=now)
        return
    # The end of the proposal moved the step and the run, in objects of its own.
    run.refresh_from_db()
    step.refresh_from_db()


def _report(
    run: Run, step: Step, proposal: Proposal, cause: str, summary: str, *, by: Actor, now: datetime
) -> None:
    owner = registry.contract_of(run.workflow).owner
    stopped(Stop(run, step.key, cause, summary, owner, None, proposal.pk), by=by, at=now)


def _salted(piece: EvidencePiece) -> Salted:
    salt = secrets.token_bytes(32)
    return Salted(piece, salt, evidence_digest(salt, piece.content))


def _through(run: Run, supersedes: Proposal | None, by: Actor) -> str | None:
    """Of whoever asks for this version themselves, their own; what workers and reviewers make keeps what it had."""
    if by.performed_by == run.requested_by:
        return by.through
    return supersedes.proposed_through if supersedes is not None else run.requested_through


def _insert(
    run: Run, step: Step, prepared: Prepared, made: _Binding, view: ViewDocument, now: datetime, ruling: Ruling,
    supersedes: Proposal | None, excluded: list[UUID], edited_by: UUID | None, through: str | None,
) -> Proposal:  # fmt: skip
    draft, verdict, bound = prepared.draft, prepared.verdict, made.bound
    needed = 0 if ruling.automatic else max(1, verdict.needed)
    snapshot = dict(policy_snapshot(verdict, draft.operation.policy))
    snapshot |= {"review": ruling.snapshot} if ruling.snapshot else {}
    amount, currency = draft.operation.amount(draft.arguments) or (None, "")
    proposal = Proposal(
        tenant_id=run.tenant_id, run_id=run.pk, step=step.key, generation=made.generation,
        version=supersedes.version + 1 if supersedes else 1, workflow=run.workflow,
        workflow_version=run.workflow_version, operation=draft.operation.name,
        operation_version=draft.operation.version, mode=MODES[run.stage], target=draft.target,
        contract=bound.contract, digest=bound.digest, material_digest=bound.material_digest,
        business_key=bound.business_key, idempotency_key=bound.idempotency_key, view=view.to_bytes(),
        view_digest=view.digest, volatile=canonicalize(dict(draft.volatile)), policy=snapshot, needed=needed,
        group=group_of(run.tenant_id, verdict.group or ruling.group), proposed_by=run.requested_by,
        proposed_through=through, excluded_users=excluded, consequence=view.consequence,
        summary=view.headline[:200], reason=prepared.reason, risk=verdict.risk,
        affected=[asdict(c) for c in prepared.affected],
        warning_count=len(view.to_acknowledge), decide_by=made.decide_by,
        execute_within_s=int(draft.operation.execute_within.total_seconds()), created_at=now,
        supersedes=supersedes, edited_by_id=edited_by, wait_id=new_id(),
        amount=amount, amount_currency=currency,
    )  # fmt: skip
    # What each signs with a passkey is alike to nothing: it is decided on its own page.
    proposal.shape = "" if must_be_signed(proposal) else shape_of(proposal, view)
    rows.insert(proposal)
    return proposal


def _insert_evidence(proposal: Proposal, pieces: Sequence[Salted]) -> None:
    rows.insert_all([
        Evidence(
            tenant_id=proposal.tenant_id, proposal=proposal, position=position, kind=it.piece.kind,
            title=it.piece.title[:200], source=it.piece.source[:200], ref=it.piece.ref[:300],
            content=it.piece.content, salt=it.salt, digest=it.digest, captured_at=it.piece.captured_at,
            fresh_until=it.piece.captured_at + it.piece.fresh_for if it.piece.fresh_for else None,
            asserted=it.piece.asserted, data_class=it.piece.data_class,
        )
        for position, it in enumerate(pieces)
    ])  # fmt: skip


def _record_made(proposal: Proposal, *, by: Actor) -> None:
    record(
        by=by, kind="proposal.made", tenant_id=proposal.tenant_id, subject_type="proposal", subject_id=proposal.pk,
        run_id=proposal.run_id, to_state=proposal.status, digest=proposal.digest,
        body={
            "view_digest": proposal.view_digest, "operation": proposal.operation, "version": proposal.version,
            "operation_version": proposal.operation_version, "policy_version": proposal.policy["version"],
            "rule": proposal.policy["rule"], "needed": proposal.needed, "mode": proposal.mode,
            "supersedes": str(proposal.supersedes_id) if proposal.supersedes_id else None,
            **({MEMBER: PASSKEY} if must_be_signed(proposal) else {}),
            "decide_by": utc_text(proposal.decide_by), ROW: row_digest(of_proposal(vars(proposal))),
            **({"group": str(proposal.group_id)} if proposal.group_id else {}),
        },
    )  # fmt: skip
    if proposal.supersedes is not None:
        note_dropped(proposal.supersedes, proposal, by=by)
