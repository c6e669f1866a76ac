"""Look at the records that an approval rests on as they are now, and keep what was seen. It changes nothing there."""

from collections.abc import Mapping

from approvals.models import Proposal
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.errors import Refused
from common.tx import action
from workflows import registry
from workflows.actions.asking_again import ContractChanged
from workflows.actions.outside import SourceUnavailable
from workflows.contracts import bound_arguments, read_contract
from workflows.documents import store_json
from workflows.models import Run
from workflows.operations import Site
from workflows.record_looks import KIND, RecordLook, can_be_looked_at, pins_of
from workflows.results import CredentialRefused, RateLimited, SourceDown
from workflows.tenants import slug_of


class NoRecord(Refused):
    """It rests on no record that could be looked at from here."""

    code = "no_record"


def look_at_record(run: Run, proposal: Proposal, *, by: Actor, clock: Clock) -> RecordLook:
    """Read them from their source, outside any transaction, then keep their versions under the run's key.

    Raises NoRecord; ContractChanged where what was approved cannot be read any more; SourceUnavailable.
    """
    if not can_be_looked_at(proposal):
        raise NoRecord()
    pins = _read(run, proposal)
    return _keep(proposal, pins, by=by, clock=clock)


def _read(run: Run, proposal: Proposal) -> Mapping[str, str]:
    operation = registry.operation(proposal.operation, proposal.operation_version)
    site = Site(run.tenant_id, slug_of(run.tenant_id), run.on_behalf_of)
    try:
        arguments = bound_arguments(operation, read_contract(bytes(proposal.contract)))
    except ValueError as error:
        raise ContractChanged() from error
    try:
        return operation.pins(arguments, operation.look(site, arguments))
    except (SourceDown, RateLimited, CredentialRefused) as error:
        raise SourceUnavailable() from error


@action
def _keep(proposal: Proposal, pins: Mapping[str, str], *, by: Actor, clock: Clock) -> RecordLook:
    now = clock()
    seen = {str(name): str(tag) for name, tag in pins.items()}
    kept = {"proposal": str(proposal.pk), "pins": seen}
    document = store_json(proposal.tenant_id, proposal.run_id, KIND, kept, now)
    record(
        by=by, kind="run.record_looked", tenant_id=proposal.tenant_id, subject_type="run", subject_id=proposal.run_id,
        run_id=proposal.run_id, digest=proposal.digest,
        body={"step": proposal.step, "proposal_id": str(proposal.pk), "document": str(document.pk),
              "same": seen == dict(pins_of(proposal))},
    )  # fmt: skip
    return RecordLook(now, seen, document.pk)
