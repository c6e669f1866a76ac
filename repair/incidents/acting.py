"""What people do about an incident: open it, write down, contain, mark its runs, close. One transaction each.

Whoever changes something names the state they saw; of several at once one wins, and the others are told.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from access.enums import Role
from access.policies import check_role, membership_of
from audit.actions import record
from audit.actors import Actor, Via
from common.clock import Clock
from common.errors import InvalidInput, NotFound, Refused
from common.tx import action, require_transaction
from repair.choices.case import REPAIRERS
from repair.choices.causes import cause_named
from repair.enums import IncidentStatus, Mark, NoteKind
from repair.incidents.criteria import Criteria
from repair.incidents.finding import MOST, Found, find
from repair.models_incidents import Incident, IncidentNote, IncidentRun
from workflows.models import Run

I = IncidentStatus  # noqa: E741 - as the model names them
READERS: Final = (*REPAIRERS, Role.AUDITOR)
AT_ONCE: Final = 50
"""Runs that one request marks."""
LONGEST_TITLE: Final = 120
LONGEST_WORDS: Final = 1_000
TRACES: Final = ("clean", "corrected", "failed")


class TokenCannotLead(Refused):
    """Only a signed-in person opens, contains or closes an incident. A token never does, whatever its scopes."""

    code = "token_cannot_lead"
    http_status = 403


class NothingTouched(InvalidInput):
    """No run fits this, so there is nothing to work off. Ask for less, or for a longer time."""

    code = "nothing_touched"


class IncidentMoved(Refused):
    """This incident has moved since you looked at it, so nothing was done. Look at where it stands now."""

    code = "incident_moved"


class RunMarked(Refused):
    """Somebody else has marked this run since you looked at it. Look at what they wrote."""

    code = "run_marked"


class NothingSaid(InvalidInput):
    """Say what you found, or did: whoever reads it later must be able to follow."""

    code = "nothing_said"


class OneByOne(InvalidInput):
    """Only what is fine is marked for many at once. What was repaired or handled outside is said of each run."""

    code = "one_by_one"


@dataclass(frozen=True, slots=True)
class Texts:
    """What people write about an incident as a whole. It goes into the report."""

    trouble: str
    hypothesis: str = ""
    remedy: str = ""
    signal: str = ""


def check_may(by: Actor, tenant_id: UUID) -> UUID:
    """The person. Raises TokenCannotLead, RoleMissing."""
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotLead()
    check_role(membership_of(by.user_id, tenant_id), *REPAIRERS)
    return by.user_id


def may_read(by: Actor, tenant_id: UUID) -> None:
    """Raises RoleMissing for whoever may not read incidents."""
    check_role(membership_of(by.user_id, tenant_id), *READERS)


def get_incident(tenant_id: UUID, incident_id: UUID) -> Incident:
    """Raises NotFound, for another tenant's too."""
    rows = Incident.objects.select_related("owner", "opened_by", "root_cause")
    found = rows.filter(tenant_id=tenant_id, pk=incident_id).first()
    if found is None:
        raise NotFound
    return found


# -- opening, and what joins ------------------------------------------------------------------------------------------


@action
def open_incident(*, tenant_id: UUID, criteria: Criteria, texts: Texts, by: Actor, clock: Clock) -> Incident:
    """An incident with every run that fits now, the newest `MOST` of them. Raises NothingTouched."""
    person = check_may(by, tenant_id)
    now = clock()
    found = find(tenant_id, criteria, now)
    if not found.count:
        raise NothingTouched()
    incident = Incident.objects.create(
        tenant_id=tenant_id, trouble=texts.trouble[:LONGEST_TITLE], criteria=criteria.as_json(), opened_by_id=person,
        owner_id=person, hypothesis=texts.hypothesis, remedy=texts.remedy, signal=texts.signal, more=found.more,
        opened_at=now, looked_at=now,
    )  # fmt: skip
    joined = _join(incident, found, now)
    add_note(incident, NoteKind.OPENED, person, now)
    record_incident(incident, "incident.opened", by=by, body={
        "criteria": incident.criteria, "runs": joined, "more": found.more})  # fmt: skip
    return incident


@action
def join_now(*, tenant_id: UUID, incident_id: UUID, by: Actor, clock: Clock) -> int:
    """Look once more for runs that fit, because a person asks; returns how many joined. Raises IncidentMoved."""
    check_may(by, tenant_id)
    incident = lock_incident(tenant_id, incident_id)
    if incident.status != I.OPEN:
        raise IncidentMoved()
    return join(incident, by=by, now=clock())


def join(incident: Incident, *, by: Actor, now: datetime) -> int:
    """Let what fits join a locked incident that is open."""
    require_transaction()
    criteria = Criteria.from_json(incident.criteria)
    found = find(incident.tenant_id, criteria, now)
    joined = _join(incident, found, now)
    incident.looked_at, incident.more = now, incident.more or found.more
    incident.save(update_fields=["looked_at", "more"])
    if joined:
        record_incident(incident, "incident.joined", by=by, body={"runs": joined, "more": found.more})
    return joined


def _join(incident: Incident, found: Found, now: datetime) -> int:
    """The runs that are not in it yet, as far as it has room."""
    known = IncidentRun.objects.filter(incident=incident)
    room = MOST - known.count()
    new = list(found.runs.exclude(pk__in=known.values("run_id")).values_list("pk", flat=True)[: room + 1])
    incident.more = incident.more or len(new) > room
    IncidentRun.objects.bulk_create([
        IncidentRun(tenant_id=incident.tenant_id, incident=incident, run_id=run, joined_at=now) for run in new[:room]
    ])  # fmt: skip
    return len(new[:room])


# -- what is written down ---------------------------------------------------------------------------------------------


@action
def note(*, tenant_id: UUID, incident_id: UUID, words: str, by: Actor, clock: Clock) -> None:
    """Add to what is written down. Raises NothingSaid."""
    person = check_may(by, tenant_id)
    _check_words(words)
    incident = lock_incident(tenant_id, incident_id)
    add_note(incident, NoteKind.NOTE, person, clock(), words=words)
    record_incident(incident, "incident.noted", by=by)


@action
def describe(
    *, tenant_id: UUID, incident_id: UUID, seen: int, texts: Texts, owner: UUID, traces: dict[str, UUID | None],
    by: Actor, clock: Clock,
) -> Incident:  # fmt: skip
    """Say what is thought and changed, whose it is, and which runs stand for the others.

    Raises IncidentMoved, NotFound for runs and people that are none of this organisation's.
    """
    person = check_may(by, tenant_id)
    incident = _seen(tenant_id, incident_id, seen)
    _check_owner(tenant_id, owner)
    _check_runs(tenant_id, [run for run in traces.values() if run is not None])
    incident.trouble, incident.hypothesis = texts.trouble[:LONGEST_TITLE], texts.hypothesis
    incident.remedy, incident.signal, incident.owner_id = texts.remedy, texts.signal, owner
    for name in TRACES:
        setattr(incident, f"trace_{name}_id", traces.get(name))
    incident.state_version += 1
    incident.save()
    add_note(incident, NoteKind.DESCRIBED, person, clock())
    chosen = {name: str(run) for name, run in traces.items() if run is not None}
    record_incident(incident, "incident.described", by=by, body={"owner": f"user:{owner}", "traces": chosen})
    return incident


def _check_owner(tenant_id: UUID, owner: UUID) -> None:
    membership = membership_of(owner, tenant_id)
    if membership is None:
        raise NotFound
    check_role(membership, *REPAIRERS)


def _check_runs(tenant_id: UUID, runs: Sequence[UUID]) -> None:
    if Run.objects.filter(tenant_id=tenant_id, pk__in=set(runs)).count() != len(set(runs)):
        raise NotFound


@action
def contain(*, tenant_id: UUID, incident_id: UUID, seen: int, words: str, by: Actor, clock: Clock) -> None:
    """The harm is stopped; ``words`` say how one knows. Raises NothingSaid, IncidentMoved."""
    person = check_may(by, tenant_id)
    _check_words(words)
    incident = _seen(tenant_id, incident_id, seen)
    if incident.status != I.OPEN:
        raise IncidentMoved()
    now = clock()
    join(incident, by=by, now=now)
    incident.contain(at=now)
    _moved(incident, NoteKind.CONTAINED, person, words, by=by, before=I.OPEN, now=now)


@action
def close(
    *, tenant_id: UUID, incident_id: UUID, seen: int, cause: str, words: str, by: Actor, clock: Clock
) -> None:
    """Say what the cause was. What is unfinished stays what it is, and stands in the report.

    Raises NothingSaid without a cause, IncidentMoved.
    """
    person = check_may(by, tenant_id)
    _check_words(cause)
    incident = _seen(tenant_id, incident_id, seen)
    if incident.status not in I.live_states:
        raise IncidentMoved()
    before, now = incident.status, clock()
    incident.close(at=now, cause=cause_named(tenant_id, cause, by=by, now=now))
    _moved(incident, NoteKind.CLOSED, person, words, by=by, before=before, now=now)


def _moved(
    incident: Incident, kind: NoteKind, person: UUID, words: str, *, by: Actor, before: str, now: datetime
) -> None:
    incident.state_version += 1
    incident.save()
    add_note(incident, kind, person, now, words=words)
    unlooked = IncidentRun.objects.filter(incident=incident, mark=Mark.UNLOOKED).count()
    kinds = {NoteKind.CONTAINED: "incident.contained", NoteKind.CLOSED: "incident.closed"}
    cause = str(incident.root_cause_id) if incident.root_cause_id else None
    record_incident(incident, kinds[kind], by=by, before=before, body={"unlooked": unlooked, "cause": cause})


# -- working it off -----------------------------------------------------------------------------------------------


@action
def mark(
    *, tenant_id: UUID, incident_id: UUID, rows: Iterable[tuple[UUID, int]], mark: Mark, words: str, by: Actor,
    clock: Clock,
) -> list[UUID]:  # fmt: skip
    """Say of some runs what was found; ``rows``: each with the version that was seen. Returns those that were marked.

    All or one: a single run that somebody has marked meanwhile raises RunMarked, of many it is passed over.
    Raises NothingSaid, OneByOne, NotFound.
    """
    person, wanted = check_may(by, tenant_id), dict(rows)
    if not wanted or len(wanted) > AT_ONCE:
        raise InvalidInput(most=AT_ONCE)
    if mark != Mark.FINE:
        _check_words(words)
        if len(wanted) > 1:
            raise OneByOne()
    incident = get_incident(tenant_id, incident_id)
    found = IncidentRun.objects.select_for_update(of=("self",), no_key=True).filter(
        tenant_id=tenant_id, incident=incident, run_id__in=wanted
    )
    locked, now = list(found.order_by("pk")), clock()
    if not locked:
        raise NotFound
    ours = [row for row in locked if row.version == wanted[row.run_id]]
    if not ours:
        raise RunMarked()
    for row in ours:
        _mark(row, mark, words, person, now)
        record_incident(incident, "incident.marked", by=by, run_id=row.run_id, body={"mark": mark.value})
    return [row.run_id for row in ours]


def _mark(row: IncidentRun, mark: Mark, words: str, person: UUID, now: datetime) -> None:
    is_undone = mark == Mark.UNLOOKED
    row.mark, row.words, row.version = mark, words, row.version + 1
    row.marked_by_id, row.marked_at = (None, None) if is_undone else (person, now)
    row.save()


# -- parts --------------------------------------------------------------------------------------------------------


def lock_incident(tenant_id: UUID, incident_id: UUID) -> Incident:
    """Raises NotFound."""
    rows = Incident.objects.select_for_update(of=("self",), no_key=True)
    found = rows.filter(tenant_id=tenant_id, pk=incident_id).first()
    if found is None:
        raise NotFound
    return found


def _seen(tenant_id: UUID, incident_id: UUID, seen: int) -> Incident:
    incident = lock_incident(tenant_id, incident_id)
    if incident.state_version != seen:
        raise IncidentMoved(status=incident.status, state_version=incident.state_version)
    return incident


def _check_words(words: str) -> None:
    if not words.strip():
        raise NothingSaid()


def add_note(
    incident: Incident, kind: NoteKind, person: UUID, now: datetime, *, words: str = "", hold: UUID | None = None
) -> None:  # fmt: skip
    IncidentNote.objects.create(
        tenant_id=incident.tenant_id, incident=incident, kind=kind, user_id=person, at=now,
        words=words.strip()[:LONGEST_WORDS], hold_id=hold,
    )  # fmt: skip


def record_incident(
    incident: Incident, kind: str, *, by: Actor, before: str = "", run_id: UUID | None = None, digest: str = "",
    reason: str = "", body: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Nothing that a person wrote about it stands in an event; ``reason`` is a code or a file number."""
    record(
        by=by, kind=kind, tenant_id=incident.tenant_id, subject_type="incident", subject_id=incident.pk,
        run_id=run_id, from_state=before, to_state=incident.status if before else "", digest=digest, reason=reason,
        body=body,
    )  # fmt: skip
