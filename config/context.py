"""What every page of the desk shows around its content: counts, the server's time, how the lanes do."""

from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from access.models import Membership
from approvals.screens.queue import waiting_count
from audit.readers import may_read_history
from common.clock import db_clock
from repair.selectors import open_count
from workflows.enums import CommandStatus
from workflows.models import Command

# Work that is due for longer than this, and that nobody has claimed, says that no worker is there.
STANDSTILL: Final = timedelta(minutes=1)


def shell(request: HttpRequest) -> dict[str, Any]:
    """Give templates ``shell``; it is read when a template first asks for it, so fragments pay nothing."""
    return {"shell": SimpleLazyObject(lambda: shell_of(request))}


def shell_of(request: HttpRequest) -> dict[str, Any]:
    """The facts around a page for this person; without a membership only the section."""
    section = request.path.strip("/").partition("/")[0]
    membership: Membership | None = getattr(request, "membership", None)
    if membership is None:
        return {
            "section": section,
            "now": None,
            "tenant": "",
            "review_count": 0,
            "repair_count": 0,
            "reads_history": False,
            "pulse": None,
        }
    now = db_clock()
    tenant_id = membership.tenant_id
    return {
        "section": section,
        "now": now,
        "tenant": membership.tenant.name,
        "review_count": waiting_count(tenant_id, now),
        "repair_count": open_count(tenant_id),
        "reads_history": may_read_history(membership),
        "pulse": pulse(membership, now - STANDSTILL),
    }


def pulse(membership: Membership, since: Any) -> dict[str, str]:
    """Whether approved work moves."""
    due = Command.objects.filter(tenant_id=membership.tenant_id, status=CommandStatus.READY, due_at__lt=since)
    if due.exists():
        return {"tone": "wait", "icon": "hourglass", "text": "Work waits for a worker"}
    return {"tone": "ok", "icon": "check-circle", "text": "All lanes moving"}
