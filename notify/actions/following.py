"""Following the history: whoever has something to tell hears of each new event once, after it was sealed.

So neither proposing nor deciding writes a row for it, and nothing that happened can go untold: an event is there from
the transaction that it records on, the sealer gives it a place without gaps, and the place that a teller has reached
moves in the transaction that writes what is to be told.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db.models import F, OuterRef, Q, Subquery

from audit.actors import INSTALLATION
from audit.models import Event, Head, Seal
from common.clock import Clock
from common.rounds import each
from common.tx import action
from notify import hooks
from notify.hooks import Teller
from notify.models import Follower

BATCH: Final = 500
"""Places of a chain that one transaction reads."""
FIRST_LOOK: Final = timedelta(days=1)
"""So far back a teller looks that was never here before: an upgrade tells nobody of last year."""


def follow(*, clock: Clock, rounds: int = 20) -> int:
    """Let every teller hear of what is new; returns how many batches that were."""
    following = [teller for teller in hooks.tellers() if teller.events]
    work = [(teller, tenant) for teller in following for tenant in _behind(teller)]
    return each(work, lambda one: _catch_up(*one, clock=clock, rounds=rounds), what="tell")


def _behind(teller: Teller) -> list[UUID]:
    """Tenants whose chain goes on behind the place that this teller has reached."""
    reached = Follower.objects.filter(tenant_id=OuterRef("tenant_id"), name=teller.name).values("seq")
    heads = Head.objects.exclude(tenant_id=INSTALLATION).annotate(reached=Subquery(reached))
    return list(heads.filter(Q(reached=None) | Q(seq__gt=F("reached"))).values_list("tenant_id", flat=True))


def _catch_up(teller: Teller, tenant_id: UUID, *, clock: Clock, rounds: int) -> int:
    done = 0
    while done < rounds and follow_batch(teller, tenant_id, clock=clock):
        done += 1
    return done


@action
def follow_batch(teller: Teller, tenant_id: UUID, *, clock: Clock) -> bool:
    """Tell of the next places of one chain. False where there are none, and where somebody else is at it."""
    place = _locked_place(teller, tenant_id, clock)
    if place is None:
        return False
    seals = Seal.objects.filter(tenant_id=tenant_id, seq__gt=place.seq, seq__lte=place.seq + BATCH)
    places = dict(seals.values_list("event_id", "seq"))
    if not places:
        return False
    teller.tell(tenant_id, _events(teller, places))
    place.seq = max(places.values())
    place.save(update_fields=["seq"])
    return True


def _events(teller: Teller, places: dict[UUID, int]) -> Sequence[Event]:
    found = Event.objects.filter(pk__in=places, kind__in=teller.events)
    return sorted(found, key=lambda event: places[event.pk])


def _locked_place(teller: Teller, tenant_id: UUID, clock: Clock) -> Follower | None:
    """None while somebody else has it."""
    rows = Follower.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    found = rows.filter(tenant_id=tenant_id, name=teller.name).first()
    if found is None and not Follower.objects.filter(tenant_id=tenant_id, name=teller.name).exists():
        _begin(teller, tenant_id, clock)
        return rows.filter(tenant_id=tenant_id, name=teller.name).first()
    return found


def _begin(teller: Teller, tenant_id: UUID, clock: Clock) -> None:
    """At the first recent event; where there is none, or it has no place yet, at the end as it was before that look."""
    end = Head.objects.filter(tenant_id=tenant_id).values_list("seq", flat=True).first() or 0
    recent = Event.objects.filter(tenant_id=tenant_id, at__gte=clock() - FIRST_LOOK).order_by("at", "id")
    first = Seal.objects.filter(event_id__in=recent.values("pk")[:1]).values_list("seq", flat=True).first()
    start = first - 1 if first else end
    Follower.objects.bulk_create(
        [Follower(tenant_id=tenant_id, name=teller.name, seq=start)], ignore_conflicts=True
    )
