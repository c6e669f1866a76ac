"""How a dispatch ends, and what follows where it was given up: another way is taken, and admins are told."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

from django.urls import reverse

from access.audience import Audience
from access.enums import Role
from audit.actions import Entry, record_many
from audit.actors import Actor
from common.delivering import Seen, next_try
from notify.actions.spreading import spread_to_mail
from notify.actions.telling import Fact, Told, tell
from notify.enums import Channel, DispatchStatus
from notify.kinds import CHECKPOINT, UNDELIVERED, kind_of
from notify.models import Dispatch

MOST_TRIES: Final = 10
_FIRST_PAUSE: Final = timedelta(seconds=30)
_LONGEST_PAUSE: Final = timedelta(hours=1)
_ENDED: Final = ["status", "due_at", "claimed_until", "ended_at", "problem"]


def locked(ids: Iterable[UUID]) -> list[Dispatch]:
    """In the order of their ids, until the end of the transaction."""
    rows = Dispatch.objects.select_for_update(of=("self",), no_key=True).select_related("message")
    return list(rows.filter(pk__in=list(ids)).order_by("id"))


def delivered(dispatches: Sequence[Dispatch], *, by: Actor, at: datetime) -> None:
    for one in dispatches:
        one.deliver(at=at)
        one.save(update_fields=_ENDED)
    _record(dispatches, "dispatch.delivered", by=by)


def moot(dispatches: Sequence[Dispatch], *, by: Actor, at: datetime, because: str) -> None:
    """It need not be told any more: nothing leaves."""
    for one in dispatches:
        one.drop(at=at, problem=because)
        one.save(update_fields=_ENDED)
    _record(dispatches, "dispatch.moot", by=by)


def failed(dispatches: Sequence[Dispatch], seen: Seen, *, by: Actor, at: datetime) -> None:
    """Tried again later; given up where that cannot help, or was done often enough."""
    over = [one for one in dispatches if seen.final or one.tries >= MOST_TRIES]
    give_up(over, by=by, at=at, problem=seen.problem)
    for one in dispatches:
        if one.status == DispatchStatus.PENDING:
            one.problem, one.claimed_until = seen.problem, None
            one.due_at = next_try(at, one.tries, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
            one.save(update_fields=["problem", "claimed_until", "due_at"])


def give_up(dispatches: Sequence[Dispatch], *, by: Actor, at: datetime, problem: str) -> None:
    """For admins to see. What a room did not get goes to its people by mail; what a mail did not tell is in the app."""
    for one in dispatches:
        one.give_up(at=at, problem=problem)
        one.save(update_fields=_ENDED)
    _record(dispatches, "dispatch.given_up", by=by)
    for one in dispatches:
        if kind_of(one.message.kind).alarm:
            continue
        if one.channel == Channel.CHAT:
            spread_to_mail(one.message, at)
        _tell_admins(one, problem, at)


def begin_again(dispatch: Dispatch, *, by: Actor, at: datetime) -> None:
    """A locked one that was given up, from its first try on."""
    before = dispatch.problem
    dispatch.send_again(at=at)
    dispatch.save(update_fields=["status", "due_at", "ended_at", "tries", "batch"])
    _record([dispatch], "dispatch.sent_again", by=by, before=DispatchStatus.DEAD, was=before)


def _tell_admins(dispatch: Dispatch, problem: str, now: datetime) -> None:
    """Once a day for each channel: they open the page, which has all of it."""
    word = "A mail" if dispatch.channel == Channel.MAIL else "A chat message"
    word = "A checkpoint of the history" if dispatch.message.kind == CHECKPOINT.name else word
    tell(
        Told(
            kind=UNDELIVERED, tenant_id=dispatch.tenant_id, subject_type=f"undelivered_{dispatch.channel}",
            subject_id=dispatch.tenant_id, version=_day(now), lead=f"{word} could not be delivered and was given up",
            href=reverse("telling:failures"), audience=Audience(role=Role.ADMIN),
            facts=(Fact("Reason", problem), Fact("Since", "the first one today; there may be more")),
        ),
        now=now,
    )  # fmt: skip


def _day(now: datetime) -> int:
    return (now.astimezone(UTC).date() - date(2020, 1, 1)).days


def _record(
    dispatches: Sequence[Dispatch], kind: str, *, by: Actor, before: str = DispatchStatus.PENDING, **more: str
) -> None:
    record_many([
        Entry(
            by=by, kind=kind, tenant_id=one.tenant_id, subject_type="dispatch", subject_id=one.pk,
            from_state=before, to_state=one.status, reason=one.problem,
            body={
                "channel": one.channel, "told": one.message.kind, "about": str(one.message.subject_id),
                "tries": one.tries, "to": str(one.destination_id or one.notice_id), **more,
            },
        )
        for one in dispatches
    ])  # fmt: skip
