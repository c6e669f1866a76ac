"""Telling the owner of a workflow that too many of its automatic actions were wrong."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

from django.urls import reverse

from access.audience import Audience
from access.enums import DutyKind, Role
from access.models import Duty
from approvals.models import Sample
from audit.models import Event
from common.clock import db_clock
from notify.actions.telling import Fact, Told, tell
from notify.hooks import WAITS, Standing, Teller
from notify.kinds import Kind, register

SUBJECT: Final = "sample"
WRONG: Final = register(
    Kind(
        "wrong_samples",
        "Too many automatic actions were wrong",
        "too many of the automatic actions that people looked at afterwards were wrong (to owners)",
        mail=True,
        chat=True,
    )
)


def tell_of(tenant_id: UUID, events: Sequence[Event]) -> None:
    """Each passing of the limit once: it hangs on the sample that passed it."""
    now = db_clock()
    for event in events:
        workflow = str(event.body.get("workflow", ""))
        said, wrong = event.body.get("said", 0), event.body.get("wrong", 0)
        tell(Told(
            kind=WRONG, tenant_id=tenant_id, subject_type=SUBJECT, subject_id=event.subject_id, version=1,
            lead=f"{workflow}: {wrong} of {said} automatic actions were wrong", href=reverse("approvals:afterwards"),
            digest="", audience=_owners(tenant_id, workflow), due_at=None, until=None, urgent=False,
            facts=[Fact("Workflow", workflow), Fact("Limit", str(event.body.get("limit", "")))],
        ), now=now)  # fmt: skip


def _owners(tenant_id: UUID, workflow: str) -> Audience:
    """Whoever is named as its owner; where nobody is, everybody with the role."""
    named = Duty.objects.filter(tenant_id=tenant_id, workflow=workflow, kind=DutyKind.OWNER, ended_at=None)
    people = list(named.values_list("user_id", flat=True))
    return Audience(people=people) if people else Audience(role=Role.OWNER)


def standings(tenant_id: UUID, ids: Collection[UUID]) -> Mapping[UUID, Standing]:
    """It asks for nothing that could be over."""
    rows = Sample.objects.filter(tenant_id=tenant_id, pk__in=ids)
    return dict.fromkeys(rows.values_list("pk", flat=True), WAITS)


TELLERS: Final = (Teller(SUBJECT, SUBJECT, frozenset({"sample.limit_passed"}), tell_of, standings),)
