"""Placing and lifting legal holds over a target, a record, a person, or all of an organisation."""

from uuid import UUID

from access.models import Membership
from access.policies import check_can_manage
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.errors import InvalidInput, NotFound, Refused
from common.tx import action
from workflows import legal_holds
from workflows.models import LegalHold


class NotOneScope(InvalidInput):
    """A legal hold is about one target, one record, one person, or all of the organisation."""

    code = "not_one_scope"


class HoldNeedsReference(InvalidInput):
    """A legal hold names why: a file number, say, without personal data."""

    code = "hold_needs_reference"


class HoldLifted(Refused):
    """This legal hold was lifted before."""

    code = "hold_lifted"


@action
def place_legal_hold(
    *, tenant_id: UUID, why: str, by: Actor, clock: Clock, target: str = "", record_: str = "",
    person: UUID | None = None,
) -> LegalHold:  # fmt: skip
    """Keep what is there and what comes within the scope; the same again is the same hold. By an admin.

    When this has committed, nothing within it is erased any more. Raises NotOneScope, HoldNeedsReference, NotFound.
    """
    check_can_manage(by, tenant_id)
    scope = {
        "target": target.strip()[:200],
        "record": record_.strip()[:200],
        "person": f"user:{person}" if person else "",
    }
    if sum(map(bool, scope.values())) > 1:
        raise NotOneScope
    if not why.strip():
        raise HoldNeedsReference
    if person and not Membership.objects.filter(tenant_id=tenant_id, user_id=person).exists():
        raise NotFound
    legal_holds.alone(tenant_id)
    about = {"tenant_id": tenant_id, "why": why.strip()[:200], **scope}
    there = LegalHold.objects.filter(**about, lifted_at=None).first()
    if there is not None:
        return there
    made = LegalHold.objects.create(**about, placed_by=by.performed_by, placed_at=clock())
    _record("legal_hold.placed", made, made.why, by)
    return made


@action
def lift_legal_hold(*, tenant_id: UUID, hold_id: UUID, why: str, by: Actor, clock: Clock) -> LegalHold:
    """From now on the retention counts again, and erasing is allowed. By an admin, with a reference.

    Raises NotFound, HoldLifted, HoldNeedsReference.
    """
    check_can_manage(by, tenant_id)
    if not why.strip():
        raise HoldNeedsReference
    legal_holds.alone(tenant_id)
    hold = LegalHold.objects.select_for_update(of=("self",)).filter(tenant_id=tenant_id, pk=hold_id).first()
    if hold is None:
        raise NotFound
    if hold.lifted_at is not None:
        raise HoldLifted(at=hold.lifted_at.isoformat())
    hold.lifted_at, hold.lifted_by, hold.lift_why = clock(), by.performed_by, why.strip()[:200]
    hold.save(update_fields=["lifted_at", "lifted_by", "lift_why"])
    _record("legal_hold.lifted", hold, hold.lift_why, by)
    return hold


def _record(kind: str, hold: LegalHold, reason: str, by: Actor) -> None:
    scope = {name: value for name in ("target", "record", "person") if (value := getattr(hold, name))}
    record(
        by=by, kind=kind, tenant_id=hold.tenant_id, subject_type="legal_hold", subject_id=hold.pk, reason=reason,
        body={"scope": scope},
    )  # fmt: skip
