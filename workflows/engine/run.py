"""Run stages: outside any transaction, with nothing locked; the result is stored by `workflows.engine.store`."""

import os
import socket
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError

from audit.actors import Actor, worker_actor
from common.clock import db_clock
from common.prepared import Reading, fetch
from common.rounds import each
from common.stopping import stopping
from workflows import registry
from workflows.definitions import StageContext
from workflows.documents import load_json
from workflows.engine.claim import Claimed, claim_step, lost_leases, release_lost
from workflows.engine.replayed import DRY, version_for
from workflows.engine.store import Failed, Result, store_result
from workflows.enums import Lane, StepStatus
from workflows.models import Document, Run, Step
from workflows.operations import OperationRefused, Site
from workflows.preparing import Prepared, prepare
from workflows.results import CredentialRefused, Malformed, NotAllowed, Propose, RateLimited, SourceDown
from workflows.tenants import slug_of

log = structlog.get_logger(__name__)


def worker_name() -> str:
    """Names the process in attempts and events; it is no claim to anything, the token is."""
    return f"{socket.gethostname()}-{os.getpid()}"


def run_due_steps(*, limit: int, lane: Lane = Lane.NEW) -> int:
    """Run ``limit`` due steps of the lane, one after the other; returns how many were run.

    A few more where the last result brought its run's next step along: that one is claimed, and would have to wait
    for its lease to be over if it were left.
    """
    by = worker_actor(worker_name())
    done = 0
    claimed = None
    while claimed is not None or (done < limit and not stopping()):
        claimed = claimed or claim_step(lane=lane, by=by, clock=db_clock)
        if claimed is None:
            break
        # Storing one result claims the same run's next step in the same transaction, where it is due.
        claimed = _store(claimed, _run_stage(claimed), by=by)
        done += 1
    return done


def _store(claimed: Claimed, result: Result, *, by: Actor) -> Claimed | None:
    """Store the result; one that cannot be stored (no such case, no JSON, no result at all) breaks this stage only."""
    try:
        return store_result(claimed, result, by=by, clock=db_clock)
    except (OperationalError, InterfaceError):
        raise  # the database, not the result
    except Exception as error:
        log.exception("result_refused", run_id=str(claimed.run.pk), step=claimed.step.key)
        broken = Failed("stage_broke", detail=type(error).__name__)
        return store_result(claimed, broken, by=by, clock=db_clock)


def release_lost_steps(*, by: Actor) -> int:
    """Make due again what its worker left; returns how many."""

    def release(lost: tuple[UUID, UUID]) -> bool:
        return release_lost(run_id=lost[0], step_id=lost[1], by=by, clock=db_clock)

    return each(lost_leases(), release, what="release_lost")


def _run_stage(claimed: Claimed) -> Result:
    """The stage's result, a prepared proposal, or how it failed. Never raises: a stage cannot stop the worker."""
    run, step = claimed.run, claimed.step
    try:
        context = _context(run, step)
        result = claimed.stage.run(context)
        return _prepared(run, context.site, result) if isinstance(result, Propose) else result
    except SourceDown as error:
        return Failed("source_down", transient=True, detail=str(error))
    except RateLimited as error:
        return Failed("rate_limited", transient=True, retry_after=error.retry_after)
    except CredentialRefused as error:
        return Failed("credential_refused", detail=str(error))
    except Malformed as error:
        return Failed(error.code, kept=error.kept, keep=True)
    except NotAllowed as error:
        return Failed(error.code)
    except OperationRefused as error:
        return Failed(error.code, detail=error.message)
    except Exception as error:
        log.exception("stage_broke", run_id=str(run.pk), step=step.key, workflow=run.workflow)
        return Failed("stage_broke", detail=type(error).__name__)


def _prepared(run: Run, site: Site, propose: Propose) -> Prepared:
    return prepare(site, propose, version=version_for(run, propose.operation))


def _context(run: Run, step: Step) -> StageContext:
    flow = registry.workflow(run.workflow)
    by_id = {document.pk: document for document in _DOCUMENTS.rows(run.tenant_id, run.pk)}
    return StageContext(
        site=Site(run.tenant_id, slug_of(run.tenant_id), run.on_behalf_of), run_id=run.pk,
        requested_by=run.requested_by,
        on_behalf_of=run.on_behalf_of, input=flow.contract.input.model_validate(load_json(by_id[run.input_ref])),
        results=_results(run, by_id), data=_data(by_id), now=db_clock(), attempt=step.attempt,
    )  # fmt: skip


def _results(run: Run, documents: dict[UUID, Document]) -> dict[str, Any]:
    """What earlier steps found; a completed step is never run again."""
    done = fetch(_DONE, [run.pk])
    found = {key: _result(documents[ref]) for key, ref in done if ref in documents}
    return {key: value for key, value in found.items() if value is not None}


_DOCUMENTS = Reading(Document, "WHERE r.tenant_id = %s AND r.run_id = %s ORDER BY r.created_at, r.id")
_DONE: Final = f"""
    SELECT s.key, s.result_ref FROM workflows_step s
    WHERE s.run_id = %s AND s.status = '{StepStatus.COMPLETED}' AND s.result_ref IS NOT NULL
    ORDER BY s.position
"""  # noqa: S608 - our own words


def _result(document: Document) -> Any:
    """What was only prepared is no result: later stages know what the original had come to, or nothing."""
    value = load_json(document)
    return value["earlier"] if document.kind.startswith(DRY) else value


def _data(documents: dict[UUID, Document]) -> dict[str, Any]:
    """Everything that was supplied on request, later answers over earlier ones."""
    supplied: dict[str, Any] = {}
    for document in documents.values():
        if document.kind.startswith("data."):
            supplied.update(load_json(document))
    return supplied
