"""Telling admins that the history does not hold, or that its signer refuses it: heard of from the history itself."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

from django.urls import reverse

from access.audience import Audience
from access.enums import Role
from audit.actors import INSTALLATION
from audit.checks import BROKEN
from audit.models import Event
from audit.reporting import REFUSED
from common.clock import db_clock
from notify.actions.telling import Fact, Told, tell
from notify.hooks import WAITS, Standing, Teller
from notify.kinds import HISTORY

LEADS: Final = {
    BROKEN: "{whose} history did not hold when it was checked",
    REFUSED: "The signer refuses {whose} history: it is not the one that was signed",
}  # fmt: skip


def tell_of(tenant_id: UUID, events: Sequence[Event]) -> None:
    now = db_clock()
    for event in events:
        tell(_told(event), now=now)


def _told(event: Event) -> Told:
    installation = str(INSTALLATION) in (str(event.subject_id), event.body.get("chain"))
    lead = LEADS[event.kind].format(whose="the installation's own" if installation else "this organisation's")
    says = str(event.body.get("detail") or event.body.get("meaning") or "")
    return Told(
        kind=HISTORY, tenant_id=event.tenant_id, subject_type=HISTORY.name, subject_id=event.pk,
        lead=f"{lead[:1].upper()}{lead[1:]}", href=reverse("audit:history"), audience=Audience(role=Role.ADMIN),
        facts=(Fact("Cause", event.reason), Fact("Found", says)), urgent=True,
    )  # fmt: skip


def standings(_tenant_id: UUID, ids: Collection[UUID]) -> Mapping[UUID, Standing]:
    return dict.fromkeys(ids, WAITS)


TELLER: Final = Teller("history", HISTORY.name, frozenset(LEADS), tell_of, standings)
