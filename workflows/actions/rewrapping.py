"""A new wrapping key: every run's key is wrapped under it, and no content moves."""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

from audit.actions import record
from audit.actors import Actor
from common import content_keys
from common.content_keys import KeyUnknown, SealBroken
from common.models import ContentKey
from common.tx import action


@dataclass(frozen=True, slots=True)
class Rewrapped:
    """``left``: keys that none of the wrapping keys opens, and which stay as they are."""

    done: int
    left: int


def rewrap_keys(*, by: Actor, batch: int = 500) -> Rewrapped:
    """Wrap every run's key that another wrapping key holds under the current one. No content moves.

    A key that somebody has locked just now is waited for: when this returns, no other than ``left`` needs an old one.
    """
    done, left, after = 0, 0, UUID(int=0)
    while True:
        some, not_opened, last = _rewrap_some(batch, after, by=by)
        done, left = done + some, left + not_opened
        if last is None:
            return Rewrapped(done, left)
        after = last


@action
def _rewrap_some(batch: int, after: UUID, *, by: Actor) -> tuple[int, int, UUID | None]:
    old = ContentKey.objects.select_for_update(of=("self",)).filter(wrapped__isnull=False, pk__gt=after)
    rows = list(old.exclude(wrapped_with=content_keys.current_name()).order_by("pk")[:batch])
    tenants: Counter[UUID] = Counter(row.tenant_id for row in rows if _rewrap(row))
    for tenant_id, count in tenants.items():
        record(
            by=by, kind="tenant.content_keys_rewrapped", tenant_id=tenant_id, subject_type="tenant",
            subject_id=tenant_id, body={"keys": count, "wrapped_with": content_keys.current_name()},
        )  # fmt: skip
    return tenants.total(), len(rows) - tenants.total(), rows[-1].pk if rows else None


def _rewrap(row: ContentKey) -> bool:
    """One that does not open, because its wrapping key is not here or it is damaged, keeps no other from its turn."""
    assert row.wrapped is not None
    try:
        row.wrapped = content_keys.rewrapped(row.tenant_id, row.run_id, bytes(row.wrapped))
    except (KeyUnknown, SealBroken):
        return False
    row.wrapped_with = content_keys.wrapped_with(row.wrapped)
    row.save(update_fields=["wrapped", "wrapped_with"])
    return True
