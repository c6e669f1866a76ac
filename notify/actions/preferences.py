"""A person says how they want to be told."""

from collections.abc import Mapping
from uuid import UUID

from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.errors import InvalidInput
from common.tx import action
from notify import times
from notify.enums import Rhythm
from notify.kinds import all_kinds
from notify.models import Preference
from notify.times import Wishes


class BadWishes(InvalidInput):
    """A time zone that is known, a rhythm of the list, and quiet hours with a beginning and another end."""

    code = "bad_wishes"


@action
def set_preferences(
    *, tenant_id: UUID, user_id: UUID, wishes: Wishes, mail: Mapping[str, bool], by: Actor, clock: Clock
) -> Preference:
    """Exactly these from now on. What waits already keeps its time. Raises BadWishes."""
    _check(wishes)
    rows = Preference.objects.select_for_update(of=("self",), no_key=True)
    row = rows.filter(tenant_id=tenant_id, user_id=user_id).first()
    row = row or Preference(tenant_id=tenant_id, user_id=user_id)
    row.zone, row.rhythm, row.daily_at = wishes.zone, wishes.rhythm, wishes.daily_at
    row.quiet_from, row.quiet_to, row.urgent_anyway = wishes.quiet_from, wishes.quiet_to, wishes.urgent_anyway
    own = {kind.name: kind.mail for kind in all_kinds() if kind.chosen}
    row.mail = {name: bool(mail[name]) for name in own if name in mail and bool(mail[name]) != own[name]}
    row.save()
    record(
        by=by, kind="preference.changed", tenant_id=tenant_id, subject_type="user", subject_id=user_id,
        body={"zone": row.zone, "rhythm": row.rhythm, "mail": row.mail, "quiet": row.quiet_from is not None},
    )  # fmt: skip
    return row


def _check(wishes: Wishes) -> None:
    quiet = (wishes.quiet_from, wishes.quiet_to)
    half = (quiet[0] is None) != (quiet[1] is None)
    if half or (quiet[0] is not None and quiet[0] == quiet[1]):
        raise BadWishes
    if wishes.zone not in times.zones() or wishes.rhythm not in Rhythm.values:
        raise BadWishes
