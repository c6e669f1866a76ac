"""What is known outside the chain about a tenant's history: what was signed, what is refused, what others keep.

`notify` sends checkpoints away and lies above this layer: it registers here what it knows of that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from audit.checks import BROKEN, LastCheck, last_check, said
from audit.models import Checkpoint, Seal, SignerReport
from audit.reporting import REFUSED, last_report, last_spread

BEHIND: Final = timedelta(minutes=10)
"""An event that is sealed for so long and not signed says that no signer is at work."""
ANCHOR_EVERY: Final = timedelta(days=1)
"""How often a checkpoint is sent to those who keep them; after two of these without one, people are alarmed."""


@dataclass(frozen=True, slots=True)
class Anchored:
    """What was sent outside: to how many it goes, since when, and the newest checkpoint that somebody took."""

    receivers: int = 0
    since: datetime | None = None
    size: int = 0
    signed_at: datetime | None = None
    taken_at: datetime | None = None
    problem: str = ""
    """Why the last one was not taken by everybody; empty where it was."""

    def overdue(self, now: datetime) -> bool:
        """Whether nobody outside has a checkpoint of the last two intervals, though it should have been sent."""
        newest = self.signed_at or self.since
        return self.receivers > 0 and newest is not None and now - newest > 2 * ANCHOR_EVERY


_anchored: list[Callable[[UUID], Anchored]] = []


def register_anchors(look: Callable[[UUID], Anchored]) -> None:
    _anchored[:] = [look]


def anchored(tenant_id: UUID) -> Anchored:
    return _anchored[0](tenant_id) if _anchored else Anchored()


@dataclass(frozen=True, slots=True)
class Proof:
    """``refusal`` is the report that stands: since it, nothing is signed. ``unsigned_since``: of the oldest seal."""

    newest: Checkpoint | None
    refusal: SignerReport | None
    unsigned_since: datetime | None
    anchored: Anchored

    def behind(self, now: datetime) -> bool:
        return self.unsigned_since is not None and now - self.unsigned_since > BEHIND


def proof(tenant_id: UUID) -> Proof:
    newest = newest_checkpoint(tenant_id)
    after = newest.size if newest else 0
    unsigned = Seal.objects.filter(tenant_id=tenant_id, seq=after + 1).values_list("sealed_at", flat=True)
    return Proof(newest, standing_refusal(tenant_id), unsigned.first(), anchored(tenant_id))


def newest_checkpoint(tenant_id: UUID) -> Checkpoint | None:
    return Checkpoint.objects.filter(tenant_id=tenant_id).order_by("-recorded_at").first()


def standing_refusal(tenant_id: UUID) -> SignerReport | None:
    """The newest report, if it says that the signer refuses: an accepted history is refused no more."""
    newest = SignerReport.objects.filter(tenant_id=tenant_id).order_by("-recorded_at").first()
    return newest if newest is not None and newest.kind == SignerReport.Kind.REFUSED else None


@dataclass(frozen=True, slots=True)
class Alarm:
    """What an admin must not miss: a title, and what is known of it."""

    title: str
    says: str
    since: datetime | None


def alarms(tenant_id: UUID, now: datetime) -> list[Alarm]:
    """The history's alarms that stand; none as a rule."""
    refusal, last, sent = standing_refusal(tenant_id), last_check(tenant_id), anchored(tenant_id)
    found = []
    if refusal is not None:
        says = f"The signer refuses it: {refusal.detail} Nothing is signed until a person has looked."
        found.append(Alarm("The history is not the one that was signed", says, refusal.at))
    if last is not None and not last.holds:
        found.append(_broken(last))
    found += _of_the_installation(tenant_id)
    if not sent.receivers:
        found += _kept_by_nobody(tenant_id, now)
    if sent.overdue(now):
        says = "Until one is taken again, nobody outside can tell whether the newest part of the history was changed."
        found.append(Alarm("No checkpoint reached anybody for two days", says, sent.taken_at or sent.since))
    return found


def _of_the_installation(tenant_id: UUID) -> list[Alarm]:
    """Its chain is nobody's own, and what it holds (who tried to sign in) everybody's: it concerns all."""
    report, check = last_report(tenant_id), last_spread(tenant_id)
    found = []
    if report is not None and report.kind == REFUSED:
        says = f"The signer refuses it: {said(report, 'detail')} Whoever runs this installation has to look."
        found.append(Alarm("The installation's own history is not the one that was signed", says, report.at))
    if check is not None and check.kind == BROKEN:
        says = str(said(check, "meaning"))
        found.append(
            Alarm("The installation's own history did not hold when it was last checked", says, check.at)
        )
    return found


def _kept_by_nobody(tenant_id: UUID, now: datetime) -> list[Alarm]:
    """As long as nobody outside is sent any, checkpoints prove nothing: whoever can rewrite the rest removes them."""
    oldest = Checkpoint.objects.filter(tenant_id=tenant_id).order_by("recorded_at").first()
    if oldest is None or now - oldest.recorded_at <= 2 * ANCHOR_EVERY:
        return []
    says = "An admin registers under People, Notices who is sent one each day. Until then this history is not provable."
    return [Alarm("Nobody outside keeps checkpoints of the history", says, oldest.recorded_at)]


def _broken(last: LastCheck) -> Alarm:
    return Alarm("The history did not hold when it was last checked", last.meaning, last.at)
