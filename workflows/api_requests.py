"""From a request to the words of the actions: who asks, and where it comes from."""

from access.auth import Principal
from audit.principals import Principal as BasePrincipal
from common.rates import check_caller
from workflows.actions.runs import Requester, Source
from workflows.api_schemas import SourceIn

ITEMS_A_REQUEST = 10


def source_of(source: SourceIn, key: str = "") -> Source:
    return Source(
        system=source.system,
        event_id=source.event_id,
        record=source.record or "",
        sequence=source.sequence,
        key=key,
    )


def count_items(principal: BasePrincipal, many: int) -> None:
    """A bulk is one request, and one more for every ten of its items. Raises RateLimited."""
    if isinstance(principal, Principal) and principal.token is not None:
        check_caller(f"token:{principal.token.pk}", principal.tenant.pk, count=many // ITEMS_A_REQUEST)


def requester_of(principal: BasePrincipal) -> Requester:
    """The people behind an automation: asked for or answered for by them, and so never decided by them."""
    if not isinstance(principal, Principal) or principal.agent is None:
        return Requester()
    return Requester(on_behalf_of=principal.actor.on_behalf_of, excluded_users=principal.behind)
