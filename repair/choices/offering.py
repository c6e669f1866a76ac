"""Which choices a case has: those that are offered, and those that are not, each with its reason."""

from datetime import datetime
from typing import Final

from django.http import QueryDict
from django.urls import reverse

from access.models import Membership
from access.policies import can_role
from approvals.policies import SEES_PERSONAL
from common.display import visible
from common.links import same_list
from repair.choices.case import REPAIRERS, Case, of_packet
from repair.choices.declared import Choice, Choices, Made, Offer
from repair.choices.facts import Facts
from repair.choices.registry import BY_CODE, CHOICES, IN_BULK
from repair.choices.rules import may_repair
from repair.enums import PacketStatus
from repair.models import RepairMove, RepairPacket
from workflows.screens.run import own_words

QUIET: Final = (
    "no_order",
    "not_yours",
    "already_yours",
    "packet_open",
    "cause_known",
    "no_data_asked",
    "never_proposed",
    "not_in_part",
)
"""Reasons that say only that a choice is about something else: those are left out of the list of refusals."""
MOST_MADE: Final = 30


def offered(packet: RepairPacket, membership: Membership, now: datetime) -> Choices:
    """For the page of a packet, which comes with its run. A few queries, and no word that this reader may not see."""
    return offers_of(of_packet(packet, membership, now))


def offers_of(case: Case) -> Choices:
    none = may_repair(case.facts)
    made = _made(case)
    assignee = visible(str(case.packet.assignee)) if case.packet.assignee is not None else ""
    if none is not None:
        return Choices((), (), made, assignee, none.words)
    offers = [offer_of(choice, case.facts, case.packet) for choice in CHOICES]
    if case.packet.status not in PacketStatus.open_states:
        return Choices(tuple(it for it in offers if it.offered), (), made, assignee, "")
    return Choices(
        tuple(it for it in offers if it.offered),
        tuple(it for it in offers if not it.offered and it.code not in QUIET), made, assignee,
    )  # fmt: skip


def offer_of(choice: Choice, facts: Facts, packet: RepairPacket) -> Offer:
    why = choice.rule(facts)
    if why is not None:
        return Offer(choice, why.code, why.words)
    return Offer(choice, href=reverse("repair:choice", args=[packet.pk, choice.code]))


def bulk_links(membership: Membership, query: QueryDict) -> tuple[tuple[Choice, str], ...]:
    """What may be done for many cases of the list as it is filtered, with the address of each."""
    if not can_role(membership, *REPAIRERS) or query.get("view") == "closed":
        return ()
    return tuple((choice, same_list(reverse("repair:bulk", args=[choice.code]), query)) for choice in IN_BULK)


def _made(case: Case) -> tuple[Made, ...]:
    """What was chosen before, the newest first. People's own words are for those who are shown personal values."""
    rows = (
        RepairMove.objects.filter(packet=case.packet)
        .select_related("user", "root_cause")
        .order_by("-at", "-id")
    )
    whole = can_role(case.membership, *REPAIRERS, *SEES_PERSONAL)
    return tuple(
        Made(
            visible(str(row.user)), BY_CODE[row.choice].title if row.choice in BY_CODE else visible(row.choice), row.at,
            row.refused, visible(row.root_cause.title) if row.root_cause is not None else "",
            own_words(row.words, whole) if row.words else "",
        )
        for row in rows[:MOST_MADE]
    )  # fmt: skip
