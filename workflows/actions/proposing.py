"""Write a proposal: bind the contract, render the view once, store the evidence. Inside the caller's transaction."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from access.enums import Role
from access.models import Group, Membership
from approvals.actions import approve_by_rule, move_proposal
from approvals.enums import Mode, ProposalStatus
from approvals.models import Evidence, Proposal
from approvals.refusals import ActionInProgress
from approvals.shown import view_of
from approvals.viewdoc import ASSERTED, ViewChange, ViewDocument, ViewEvidence, ViewWarning, build_view
from audit.actions import record
from audit.actors import Actor, rule_actor
from common.clock import Clock
from common.digests import evidence_digest
from common.fields import DataClass
from common.ids import new_id
from common.strictjson import canonicalize
from common.tx import flush, require_transaction
from workflows import registry
from workflows.actions.settle import make_wait
from workflows.contracts import Bound, Draft, bind, material_digest_of, parse_object, read_contract, utc_text
from workflows.enums import CommandStatus, Effect
from workflows.hooks import Stop, stopped
from workflows.models import Command, Run, Step
from workflows.operations import Affected, Test, Verdict
from workflows.preparing import Prepared, policy_snapshot
from workflows.results import EvidencePiece
from workflows.tenants import slug_of
from workflows.waits import wait_for_approval

MODES = {
    "observe": Mode.SHADOW, "suggest": Mode.SHADOW, "prepare": Mode.DRAFT, "approve": Mode.LIVE, "execute": Mode.LIVE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Piece:
    piece: EvidencePiece
    salt: bytes
    digest: str


def create_proposal(
    run: Run, step: Step, prepared: Prepared, *, tenant: str, by: Actor, clock: Clock, now: datetime,
    supersedes: Proposal | None = None,
) -> Proposal:  # fmt: skip
    """Bind, render and store one proposal for a step of a locked run, and let the step wait for the answer.

    An auto verdict is decided at once by its rule, on stage *execute* only; on any other a person is asked.
    """
    require_transaction()
    pieces = [_salted(piece) for piece in prepared.evidence]
    decide_by = (now + prepared.draft.operation.decide_within).replace(microsecond=0)
    generation = _next_generation(run, step, material_digest_of(run.tenant_id, prepared.draft))
    bound = bind(
        run, step.key, prepared.draft, tenant=tenant, actor=run.requested_by, generation=generation,
        evidence=[piece.digest for piece in pieces], decide_by=decide_by,
    )  # fmt: skip
    view = _render(run, prepared, bound, pieces, decide_by)
    if supersedes is not None and supersedes.status in ProposalStatus.live_states:
        move_proposal(supersedes, "supersede", by=by, at=now, reason="a newer version")
    automatic = prepared.verdict.verdict == "auto" and run.stage == "execute"
    proposal = _insert(
        run, step, prepared, bound, view, generation, decide_by, now, automatic, supersedes, by
    )
    _insert_evidence(proposal, pieces)
    step.proposal_id, step.generation = proposal.pk, generation
    on_expiry = registry.workflow(run.workflow).contract.on_expiry
    make_wait(step, wait_for_approval(decide_by, on_expiry), by=by, reason="proposal")
    _record_made(proposal, by=by)
    _ask(run, step, proposal, prepared, automatic, by=by, clock=clock, now=now)
    return proposal


def reissue(run: Run, step: Step, old: Proposal, *, by: Actor, clock: Clock, now: datetime) -> Proposal:
    """Ask the same again, as a new version: same arguments, pins and evidence, a new nonce and new clocks.

    For a proposal that ended without effect. Nothing is read from outside: the worker fetches the pins before it
    sends, and a record that has changed since is found there.
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
    )


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
                       if w.id not in found_anew and w.acknowledge),
        reason=old.reason, evidence=tuple(_piece_again(row) for row in old.evidence.all()),
        asserted_pins=tuple(row.text for row in view.unbound if row.label == ASSERTED),
    )  # fmt: skip


def _verdict_of(old: Proposal) -> Verdict:
    policy = old.policy
    tests = tuple(Test(test["label"], test["ok"], test["says"]) for test in policy["tests"])
    group = old.group.name if old.group is not None else ""
    return Verdict(policy["verdict"], policy["rule"], policy["because"], tests, group, old.risk)


def _piece_again(row: Evidence) -> EvidencePiece:
    return EvidencePiece(
        kind=row.kind, title=row.title, content=bytes(row.content or b""), captured_at=row.captured_at,
        source=row.source, ref=row.ref, data_class=DataClass(row.data_class), asserted=row.asserted,
        fresh_for=row.fresh_until - row.captured_at if row.fresh_until else None,
    )  # fmt: skip


def _ask(
    run: Run, step: Step, proposal: Proposal, prepared: Prepared, automatic: bool, *, by: Actor, clock: Clock,
    now: datetime,
) -> None:  # fmt: skip
    if automatic:
        _approve_itself(run, step, proposal, prepared, by=by, clock=clock, now=now)
    elif eligible_people(proposal).count() < proposal.needed:
        summary = "Not enough people may decide this: it is asked of nobody who could answer."
        _report(run, step, proposal, "nobody_eligible", summary, by=by, now=now)


def _approve_itself(
    run: Run, step: Step, proposal: Proposal, prepared: Prepared, *, by: Actor, clock: Clock, now: datetime
) -> None:
    """By its rule, at once. While the same thing is being done already, it stays pending, and people are told."""
    rule, version = prepared.verdict.rule, prepared.draft.operation.policy.version
    flush()
    try:
        with transaction.atomic():
            approve_by_rule(
                proposal, rule=rule, version=version, by=rule_actor(rule, version), clock=clock, now=now
            )
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
    owner = registry.workflow(run.workflow).contract.owner
    stopped(Stop(run, step.key, cause, summary, owner, None, proposal.pk), by=by, at=now)


def eligible_people(proposal: Proposal) -> QuerySet[Membership]:
    """Who may decide on it at this moment."""
    people = Membership.objects.filter(
        tenant_id=proposal.tenant_id, is_active=True, user__is_active=True, roles__contains=[Role.REVIEWER]
    ).exclude(user_id__in=proposal.excluded_users)
    return people.filter(groups=proposal.group_id) if proposal.group_id else people


def _next_generation(run: Run, step: Step, material: str) -> int:
    """Section 5: a new key only when the last command certainly had no effect and the action is another one."""
    last = (
        Command.objects.filter(tenant_id=run.tenant_id, step__key=step.key, run_id__in=_family(run))
        .select_related("proposal").order_by("-created_at", "-id").first()
    )  # fmt: skip
    if last is None:
        return step.generation or 1
    settled_without = last.status in CommandStatus.final_states and last.effect == Effect.NONE
    grows = settled_without and last.proposal.material_digest != material
    return last.proposal.generation + (1 if grows else 0)


def _family(run: Run) -> list[UUID]:
    """The original run and its replays: they share keys and counts."""
    replays = Run.objects.filter(tenant_id=run.tenant_id, original_id=run.identity).values_list(
        "pk", flat=True
    )
    return [run.identity, *replays]


def _salted(piece: EvidencePiece) -> _Piece:
    salt = secrets.token_bytes(32)
    return _Piece(piece, salt, evidence_digest(salt, piece.content))


def _render(
    run: Run, prepared: Prepared, bound: Bound, pieces: Sequence[_Piece], decide_by: datetime
) -> ViewDocument:
    draft = prepared.draft
    return build_view(
        operation=draft.operation.name, operation_version=draft.operation.version, contract_digest=bound.digest,
        headline=prepared.summary, consequence=prepared.consequence, schema=draft.operation.arguments,
        arguments=draft.material, volatile=draft.volatile, bound=_bound_rows(run, prepared, decide_by, len(pieces)),
        asserted=prepared.asserted_pins,
        changes=[ViewChange(record=c.record, field=c.field, before=c.before, after=c.after)
                 for c in prepared.affected],
        evidence=[_view_evidence(piece) for piece in pieces],
        warnings=[_view_warning(*warning) for warning in prepared.warnings],
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


def _view_evidence(piece: _Piece) -> ViewEvidence:
    it = piece.piece
    return ViewEvidence(
        kind=it.kind, title=it.title, source=it.source, captured_at=utc_text(it.captured_at), digest=piece.digest,
        asserted=it.asserted,
    )  # fmt: skip


def _view_warning(code: str, field: str, sentence: str) -> ViewWarning:
    label = field.replace("_", " ").capitalize() or "The whole proposal"
    return ViewWarning(
        code=code, label=label, sentence=sentence, acknowledge=True, pointer=f"/{field}" if field else ""
    )


def _insert(
    run: Run, step: Step, prepared: Prepared, bound: Bound, view: ViewDocument, generation: int,
    decide_by: datetime, now: datetime, automatic: bool, supersedes: Proposal | None, by: Actor,
) -> Proposal:  # fmt: skip
    draft, verdict = prepared.draft, prepared.verdict
    needed = 0 if automatic else max(1, verdict.needed)
    snapshot = dict(policy_snapshot(verdict, draft.operation.policy.version))
    return Proposal.objects.create(
        tenant_id=run.tenant_id, run_id=run.pk, step=step.key, generation=generation,
        version=supersedes.version + 1 if supersedes else 1, workflow=run.workflow,
        workflow_version=run.workflow_version, operation=draft.operation.name,
        operation_version=draft.operation.version, mode=MODES[run.stage], target=draft.target,
        contract=bound.contract, digest=bound.digest, material_digest=bound.material_digest,
        business_key=bound.business_key, idempotency_key=bound.idempotency_key, view=view.to_bytes(),
        view_digest=view.digest, volatile=canonicalize(dict(draft.volatile)), policy=snapshot, needed=needed,
        group=_group(run, verdict.group), proposed_by=run.requested_by,
        excluded_users=[UUID(user) for user in run.excluded_users], consequence=view.consequence,
        summary=view.headline[:200], reason=prepared.reason, risk=verdict.risk,
        affected=[{"record": c.record, "field": c.field, "before": c.before, "after": c.after}
                  for c in prepared.affected],
        warning_count=len(view.to_acknowledge), decide_by=decide_by,
        execute_within_s=int(draft.operation.execute_within.total_seconds()), created_at=now,
        supersedes=supersedes, wait_id=new_id(),
    )  # fmt: skip


def _group(run: Run, name: str) -> Group | None:
    """The group that the rule names. One that nobody made yet is made, empty: then the proposal says so."""
    if not name:
        return None
    return Group.objects.get_or_create(tenant_id=run.tenant_id, name=name)[0]


def _insert_evidence(proposal: Proposal, pieces: Sequence[_Piece]) -> None:
    Evidence.objects.bulk_create(
        Evidence(
            tenant_id=proposal.tenant_id, proposal=proposal, position=position, kind=it.piece.kind,
            title=it.piece.title[:200], source=it.piece.source[:200], ref=it.piece.ref[:300],
            content=it.piece.content, salt=it.salt, digest=it.digest, captured_at=it.piece.captured_at,
            fresh_until=it.piece.captured_at + it.piece.fresh_for if it.piece.fresh_for else None,
            asserted=it.piece.asserted, data_class=it.piece.data_class,
        )
        for position, it in enumerate(pieces)
    )  # fmt: skip


def _record_made(proposal: Proposal, *, by: Actor) -> None:
    record(
        by=by, kind="proposal.made", tenant_id=proposal.tenant_id, subject_type="proposal", subject_id=proposal.pk,
        run_id=proposal.run_id, to_state=proposal.status, digest=proposal.digest,
        body={
            "view_digest": proposal.view_digest, "operation": proposal.operation, "version": proposal.version,
            "operation_version": proposal.operation_version, "policy_version": proposal.policy["version"],
            "rule": proposal.policy["rule"], "needed": proposal.needed, "mode": proposal.mode,
            "supersedes": str(proposal.supersedes_id) if proposal.supersedes_id else None,
        },
    )  # fmt: skip
