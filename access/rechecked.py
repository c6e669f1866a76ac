"""Do memberships and groups still say what the history says of them? For the daily check (`audit.replay`).

Who puts a row into these tables past the product makes a reviewer of whom nobody was ever told.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from access.models import GroupMembership, Membership
from audit.models import Event
from audit.replay import in_their_order, one_state

KINDS: Final = (
    "user.created", "membership.roles_set", "membership.deactivated", "membership.reactivated", "group.joined",
    "group.left",
)  # fmt: skip


@dataclass
class _Told:
    """What the history says of one person in one tenant."""

    roles: list[str] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    is_active: bool = True


def differences(tenant_id: UUID) -> Iterator[str]:
    """A sentence for each person. None where the history does not begin with its tenant: it does not know everybody."""
    if not Event.objects.filter(tenant_id=tenant_id, kind="tenant.created").exists():
        return
    with one_state():
        told, groups = _told(tenant_id), _groups(tenant_id)
        rows = list(Membership.objects.filter(tenant_id=tenant_id).order_by("pk"))
    for row in rows:
        known = told.pop(row.user_id, None)
        if known is None:
            yield f"The membership of user:{row.user_id} stands in no event of the history."
        elif set(row.roles) != set(known.roles) or row.is_active != known.is_active:
            yield f"The roles of user:{row.user_id} are not those that the history says."
        elif groups.get(row.user_id, set()) != known.groups:
            yield f"The groups of user:{row.user_id} are not those that the history says."
    for gone in told:
        yield f"The membership of user:{gone} stands in the history and no more in its table."


def _groups(tenant_id: UUID) -> dict[UUID, set[str]]:
    found: dict[UUID, set[str]] = {}
    places = GroupMembership.objects.filter(tenant_id=tenant_id).values_list(
        "membership__user_id", "group_id"
    )
    for user, group in places:
        found.setdefault(user, set()).add(str(group))
    return found


def _told(tenant_id: UUID) -> dict[UUID, _Told]:
    found: dict[UUID, _Told] = {}
    events = in_their_order(Event.objects.filter(tenant_id=tenant_id, kind__in=KINDS, subject_type="user"))
    for user, kind, body in events.values_list("subject_id", "kind", "body").iterator(chunk_size=2000):
        _hear(found.setdefault(user, _Told()), kind, body)
    return found


def _hear(person: _Told, kind: str, body: dict[str, Any]) -> None:
    match kind:
        case "user.created":
            person.roles = list(body.get("roles", ()))
        case "membership.roles_set":
            person.roles = list(body.get("after", ()))
        case "group.joined":
            person.groups.add(str(body.get("group")))
        case "group.left":
            person.groups.discard(str(body.get("group")))
        case _:
            person.is_active = kind == "membership.reactivated"
