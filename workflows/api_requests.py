"""From a request to the words of the actions: who asks, and where it comes from."""

from access.auth import Principal
from audit.principals import Principal as BasePrincipal
from workflows.actions.runs import Requester, Source
from workflows.api_schemas import SourceIn


def source_of(source: SourceIn, key: str = "") -> Source:
    return Source(
        system=source.system,
        event_id=source.event_id,
        record=source.record or "",
        sequence=source.sequence,
        key=key,
    )


def requester_of(principal: BasePrincipal) -> Requester:
    """The person behind an automation: asked for, and so never among those who decide on it."""
    agent = principal.agent if isinstance(principal, Principal) else None
    if agent is None or agent.acts_for_id is None:
        return Requester()
    return Requester(on_behalf_of=f"user:{agent.acts_for_id}", excluded_users=(agent.acts_for_id,))
