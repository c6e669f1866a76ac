"""Somebody opened a link that another person was sent."""

from audit.actions import record
from audit.actors import Actor
from audit.models import Event
from common.tx import action
from notify.models import Notice

_KIND = "notice.link_refused"


@action
def note_refused(*, notice: Notice, by: Actor) -> bool:
    """Once for each person and link: following it again tells nothing new, and must not fill the history.

    The notice is locked, so that of many at once one is written.
    """
    Notice.objects.select_for_update(of=("self",), no_key=True).get(tenant_id=notice.tenant_id, pk=notice.pk)
    told = Event.objects.filter(tenant_id=notice.tenant_id, subject_id=notice.pk, kind=_KIND)
    if told.filter(performed_by=by.performed_by).exists():
        return False
    record(
        by=by, kind=_KIND, tenant_id=notice.tenant_id, subject_type="notice", subject_id=notice.pk,
        reason="not_theirs", body={"sent_to": str(notice.user_id)},
    )  # fmt: skip
    return True
