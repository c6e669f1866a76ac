"""One freeze or open circuit as a page: who and why, what was in flight, what the history proves, what it holds."""

from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.http import QueryDict
from django.urls import reverse

from access.models import Membership
from access.policies import can_role
from audit.actors import INSTALLATION
from audit.checks import last_check
from audit.names import names_of
from audit.readers import may_read_history
from audit.selectors import Filters, events
from audit.tables import EventRow, event_rows
from common import cursors, spans
from common.cursors import BadCursor
from common.desk_parts import Leader
from common.display import visible
from common.links import same_list
from common.states_ui import Tone
from workflows.actions.asking_again import ASKERS, ended_under
from workflows.actions.freezing import FREEZERS
from workflows.enums import CommandStatus, HoldReason, HoldStatus, VoidReason
from workflows.models import Command, Hold
from workflows.screens.holds import HoldRow, hold_href, hold_row
from workflows.screens.proof import proof_lines
from workflows.selectors_holds import SentProof, fates, held_by, sent_proof

H = HoldStatus
LISTED: Final = 50
"""Rows of one table; of those in flight and of those to ask again, the counts are always whole."""

SAYS: Final = {
    (HoldReason.FREEZE, H.IN_FORCE): "Nothing within it is newly sent. People may decide; what they approve is held.",
    (HoldReason.FREEZE, H.LIFTING): "What it held is checked again one by one, and let go a few a second.",
    (HoldReason.FREEZE, H.LIFTED): "It holds nothing any more.",
    (HoldReason.CIRCUIT, H.IN_FORCE): "Calls to the provider came to nothing, so what is approved waits.",
    (HoldReason.CIRCUIT, H.TRIAL): "One call is let through, to see whether the provider works again.",
    (HoldReason.CIRCUIT, H.LIFTING): "The provider works again. What waited is let go a few a second.",
    (HoldReason.CIRCUIT, H.LIFTED): "The provider worked again, or nothing waited for it any more.",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NowScreen:
    """The part of the page that asks again by itself."""

    row: HoldRow
    says: str
    held: int
    pace: str
    polls: str
    """How often it asks again, for ``hx-trigger``; empty once it has ended."""
    version: str
    phase: str
    """Changes with what the rest of the page shows; ``version`` also with the count."""
    here: str
    trial_href: str
    may_lift: bool


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command in a list: what it is about, and where its run is."""

    href: str
    run_id: UUID
    operation: str
    target: str
    then: str
    """Its state at the drain, where it was in flight."""
    now: str
    since: datetime
    until: datetime | None
    is_over: bool
    """Whether its time to execute has passed: it will not be sent any more."""
    reason: str
    step: str


@dataclass(frozen=True, slots=True)
class InFlight:
    """What was on its way at the instant of the drain, and what has become of it."""

    rows: tuple[CommandRow, ...]
    sent: int
    unknown: int
    settled: int
    left_out: int
    whole: bool
    """Whether the counts are those of this organisation: of the installation's freeze, only listed ones are told."""


@dataclass(frozen=True, slots=True)
class RestScreen:
    """Everything below: proof, lists, history."""

    here: str
    ask_href: str
    is_freeze: bool
    is_over: bool
    proof: SentProof | None
    proof_tone: Tone
    proof_title: str
    proof_lines: tuple[str, ...]
    fates: tuple[Leader, ...]
    in_flight: InFlight
    lapsed: tuple[CommandRow, ...]
    lapsed_count: int
    may_ask_again: bool
    held: tuple[CommandRow, ...]
    older: str
    newest: str
    events: tuple[EventRow, ...]
    history_href: str
    """Where the events that the proof counts are listed, for those who may read the history."""


# -- the part that moves ----------------------------------------------------------------------------------------


def now_screen(hold: Hold, membership: Membership) -> NowScreen:
    held = held_by(membership.tenant_id, hold).count()
    row = hold_row(hold, names_of({hold.placed_by, hold.lifted_by}), {hold.pk: held})
    phase = f"{hold.status}-{'drained' if hold.drained_at else 'open'}"
    return NowScreen(
        row=row, says=SAYS[HoldReason(hold.reason), H(hold.status)], held=held, pace=_pace(hold, held),
        polls={H.LIFTED: "", H.LIFTING: "every 2s"}.get(H(hold.status), "every 5s"),
        version=f"{phase}-{held}-{hold.until.timestamp() if hold.until else ''}", phase=phase, here=hold_href(hold.pk),
        trial_href=_trial_href(membership.tenant_id, hold), may_lift=may_lift(hold, membership),
    )  # fmt: skip


def may_lift(hold: Hold, membership: Membership) -> bool:
    """Whether this reader may lift it here; the installation's are lifted at its command line."""
    here = hold.tenant_id is not None and hold.status in H.holding_states
    return here and can_role(membership, *FREEZERS)


def _pace(hold: Hold, held: int) -> str:
    if hold.status != H.LIFTING or not held:
        return ""
    a_second = settings.PLACET_RELEASES_PER_SECOND
    return f"At most {a_second} a second are let go, so about {spans.span(ceil(held / a_second))} are left."


def _trial_href(tenant_id: UUID, hold: Hold) -> str:
    """The run of the command that is let through on trial."""
    if hold.trial_command_id is None:
        return ""
    trial = Command.objects.filter(tenant_id=tenant_id, pk=hold.trial_command_id).first()
    return reverse("workflows:run", args=[trial.run_id]) if trial else ""


# -- the rest ---------------------------------------------------------------------------------------------------


def rest_screen(hold: Hold, membership: Membership, query: QueryDict, now: datetime) -> RestScreen:
    tenant_id = membership.tenant_id
    proof = sent_proof(tenant_id, hold, now)
    tone, title, lines = proof_lines(hold, proof, last_check(tenant_id) if proof else None, now)
    ended = ended_under(tenant_id, hold.pk).select_related("proposal", "step")
    reads_history = may_read_history(membership)
    held, older, newest = _held_page(tenant_id, hold, query, now)
    # The installation's freeze is told in the chain of the installation, of which a tenant reads only this.
    chain = events(hold.tenant_id or INSTALLATION, Filters(subject_type="hold", subject_id=hold.pk))[:LISTED]
    return RestScreen(
        here=hold_href(hold.pk), ask_href=reverse("workflows:ask_again", args=[hold.pk]),
        is_freeze=hold.reason == HoldReason.FREEZE, is_over=hold.status == H.LIFTED, proof=proof,
        proof_tone=tone, proof_title=title, proof_lines=lines,
        fates=tuple(_fate(*fate) for fate in fates(tenant_id, hold)), in_flight=_in_flight(tenant_id, hold, now),
        lapsed=tuple(_row(command, now) for command in ended[:LISTED]), lapsed_count=ended.count(),
        may_ask_again=can_role(membership, *ASKERS), held=held, older=older, newest=newest,
        events=tuple(event_rows(chain, linked=reads_history and hold.tenant_id is not None)),
        history_href=_history_href(proof) if proof and reads_history else "",
    )  # fmt: skip


def _history_href(proof: SentProof) -> str:
    since, until = (f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}" for at in (proof.since, proof.until))
    return f"{reverse('audit:history')}?{urlencode({'kind': 'command.sent', 'since': since, 'until': until})}"


def _held_page(
    tenant_id: UUID, hold: Hold, query: QueryDict, now: datetime
) -> tuple[tuple[CommandRow, ...], str, str]:
    found, here = held_by(tenant_id, hold).select_related("proposal", "step"), hold_href(hold.pk)
    cursor = query.get("cursor", "")
    try:
        page = cursors.page(found, list_name="held", cursor=cursor)
    except BadCursor:
        cursor, page = "", cursors.page(found, list_name="held")
    older = same_list(here, QueryDict(), cursor=page.next_cursor) if page.next_cursor else ""
    return tuple(_row(command, now) for command in page.rows), older, here if cursor else ""


def _row(command: Command, now: datetime, then: str = "") -> CommandRow:
    until = command.proposal.execute_by
    return CommandRow(
        href=reverse("workflows:run", args=[command.run_id]), run_id=command.run_id,
        operation=f"{command.operation}, version {command.operation_version}", target=visible(command.target),
        then=then, now=command.status, since=command.created_at, until=until,
        is_over=until is not None and until <= now,
        reason=VoidReason(command.void_reason).label if command.void_reason else "", step=command.step.key,
    )  # fmt: skip


def _in_flight(tenant_id: UUID, hold: Hold, now: datetime) -> InFlight:
    """By what was written down at the drain. The installation's list holds other tenants' commands: those stay out."""
    listed = {entry["id"]: entry["status"] for entry in hold.in_flight.get("commands", ())}
    found = Command.objects.filter(tenant_id=tenant_id, pk__in=listed).select_related("proposal", "step")
    rows = [_row(command, now, listed[str(command.pk)]) for command in found.order_by("last_sent_at", "pk")]
    total = {name: int(hold.in_flight.get(name, 0)) for name in CommandStatus.in_flight_states}
    whole = hold.tenant_id is not None or sum(total.values()) == len(listed)
    if hold.tenant_id is None:
        total = {name: sum(row.then == name for row in rows) for name in CommandStatus.in_flight_states}
    return InFlight(
        rows=tuple(rows[:LISTED]), **total, settled=sum(row.now in CommandStatus.final_states for row in rows),
        left_out=max(0, sum(total.values()) - LISTED), whole=whole,
    )  # fmt: skip


_FATES: Final[dict[str, tuple[str, Tone, str]]] = {
    "command.held": ("Held still, by this or by something else since", "held", "pause"),
    "command.ready": ("Let go: a worker checks them once more and sends them", "ok", "send"),
    "command.cancelled": ("Cancelled", "mute", "ban"),
    "command.unknown": ("In doubt since a backup was restored", "unknown", "unknown"),
}


def _fate(kind: str, void_reason: str, count: int) -> Leader:
    if void_reason:
        return Leader(
            f"Void, never sent: {VoidReason(void_reason).label.lower()}", f"{count:,}", "mute", "shield-x"
        )
    text, tone, icon = _FATES.get(kind, (f"Then: {visible(kind)}", "mute", "ledger"))
    return Leader(text, f"{count:,}", tone, icon)
