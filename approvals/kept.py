"""What was ticked and opened on a proposal's page, while its reader confirms elsewhere that it is them.

It is kept in the session, for one proposal and a few minutes. Words are not: those of reviewers are sealed, and a
session is not.
"""

import time
from typing import Any, Final

from django.http import HttpRequest

from approvals.forms import Typed
from approvals.models import Proposal

KEY: Final = "desk.kept"
LIFE_S: Final = 600
_MOST: Final = 500


def keep(request: HttpRequest, proposal: Proposal, typed: Typed) -> None:
    """Remember ticks and opened parts of exactly this version; of another proposal nothing is kept any more."""
    request.session[KEY] = {
        "of": _named(proposal), "at": time.time(), "acknowledged": sorted(typed.acknowledged)[:_MOST],
        "receipts": list(typed.receipts)[:_MOST], "opened": sorted(typed.opened)[:_MOST],
    }  # fmt: skip


def typed_for(request: HttpRequest, proposal: Proposal) -> Typed | None:
    """What was kept of this version; None where there is nothing. Receipts are checked again like any."""
    found: dict[str, Any] = request.session.get(KEY) or {}
    if found.get("of") != _named(proposal) or time.time() - found.get("at", 0) > LIFE_S:
        return None
    return Typed(
        acknowledged=frozenset(found["acknowledged"]), receipts=tuple(found["receipts"]),
        opened=frozenset(found["opened"]),
    )  # fmt: skip


def _named(proposal: Proposal) -> str:
    return f"{proposal.pk} {proposal.digest}"


def forget(request: HttpRequest) -> None:
    """It was decided."""
    if KEY in request.session:
        del request.session[KEY]
