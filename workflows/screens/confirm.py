"""What a freeze would stop, in plain words, before anybody pulls it."""

from dataclasses import dataclass

from common.display import visible
from common.models import Tenant
from workflows import registry
from workflows.actions.freezing import Scope
from workflows.models import Hold
from workflows.screens.words import title_of
from workflows.selectors_holds import on_their_way, target_is_known


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The sentence, what it means for what is on its way, and a doubt where there is one."""

    sentence: str
    waiting: int
    in_flight: int
    doubt: str


def confirmation(scope: Scope, tenant: Tenant) -> Confirmation:
    """Two queries; one where no target is typed."""
    hold = Hold(
        tenant=tenant, workflow=scope.workflow, workflow_version=scope.workflow_version, operation=scope.operation,
        target=scope.target,
    )  # fmt: skip
    waiting, in_flight = on_their_way(hold, tenant.pk)
    strange = bool(scope.target) and not target_is_known(tenant.pk, scope.target)
    doubt = (
        "Nothing was ever proposed for a target of that name. Check every letter: a wrong name holds nothing."
    )
    return Confirmation(sentence_of(scope, tenant), waiting, in_flight, doubt if strange else "")


def sentence_of(scope: Scope, tenant: Tenant) -> str:
    if scope.workflow and scope.workflow_version is not None:
        return (
            f"Nothing that version {scope.workflow_version} of {visible(title_of(scope.workflow))} "
            f"({visible(scope.workflow)}) proposed is newly sent. Its other versions go on."
        )
    if scope.workflow:
        return (
            f"Nothing that {visible(title_of(scope.workflow))} ({visible(scope.workflow)}) proposes is newly sent, in "
            "none of its versions. Other workflows go on."
        )
    if scope.operation:
        title = visible(registry.operation(scope.operation).title)
        return f"No “{title}” ({visible(scope.operation)}) is newly sent, whichever workflow asks. All else goes on."
    if scope.target:
        return f"Nothing is newly sent to {visible(scope.target)}, whatever it is. All other targets go on."
    return f"Nothing at all is newly sent for {visible(tenant.name)}: no workflow, no operation, no target."
