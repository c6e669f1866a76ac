"""What every page of the desk shows around its content: counts, the server's time, how the lanes do, what is frozen."""

from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from access.enums import Role
from access.models import Membership
from access.policies import PEOPLE_READERS
from approvals.screens.queue import waiting_count
from audit.proof import alarms
from audit.readers import may_read_history
from common.clock import db_clock
from notify.selectors import unread_count
from repair.selectors import open_count
from workflows.enums import CommandStatus
from workflows.models import Command
from workflows.screens.holds import Banner, banner

ALARMED: Final = (Role.ADMIN, Role.OWNER, Role.AUDITOR)
"""Who sees on every page that the history cannot be trusted."""
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
            "unread": 0,
            "reads_history": False,
            "reads_people": False,
            "break_glass": None,
            "pulse": None,
            "freeze": None,
            "alarms": [],
        }
    now = db_clock()
    tenant_id = membership.tenant_id
    frozen = banner(tenant_id)
    return {
        "section": section,
        "now": now,
        "tenant": membership.tenant.name,
        "review_count": waiting_count(tenant_id, now),
        "repair_count": open_count(tenant_id),
        "unread": unread_count(tenant_id, membership.accounts),
        "reads_history": may_read_history(membership),
        "reads_people": membership.has_role(*PEOPLE_READERS),
        "break_glass": membership.break_glass_until,
        "pulse": pulse(membership, now - STANDSTILL, frozen),
        "freeze": frozen,
        "alarms": alarms(tenant_id, now) if membership.has_role(*ALARMED) else [],
    }


def pulse(membership: Membership, since: Any, frozen: Banner | None) -> dict[str, str]:
    """Whether approved work moves."""
    due = Command.objects.filter(tenant_id=membership.tenant_id, status=CommandStatus.READY, due_at__lt=since)
    if due.exists():
        return {"tone": "wait", "icon": "hourglass", "text": "Work waits for a worker"}
    if frozen is not None:
        return {"tone": "held", "icon": "snow", "text": "Frozen" if frozen.whole else "Frozen in part"}
    return {"tone": "ok", "icon": "check-circle", "text": "All lanes moving"}
