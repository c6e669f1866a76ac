"""One choice for the cases of a filtered list: which of them it is offered for, and the result of each."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from access.auth import person_of
from access.models import Membership
from access.web import role_required
from common.clock import db_clock
from common.errors import NotFound
from common.links import same_list
from common.web import http_methods
from repair.choices.acting import choice_named
from repair.choices.bulk import AT_ONCE, Listed, Result, choose_many
from repair.choices.case import REPAIRERS, Case, of_packet
from repair.choices.declared import Choice, DryRun
from repair.choices.facts import Why
from repair.choices.forms import ChoiceForm
from repair.filters import PacketFilter
from repair.listing import base_packets, offset_of, rows_of
from repair.selectors import SECTIONS, packets
from repair.tables import StoppedRow
from repair.views_choices import membership_of

STEP: Final = 50
"""Pages of the list of what stopped, and of this one."""
assert STEP == AT_ONCE


@dataclass(frozen=True, slots=True)
class Item:
    """One case of the list, and whether it is offered for it."""

    row: StoppedRow
    listed: str
    why: Why | None
    ticked: bool
    dry: DryRun | None
    """What it would do to this very case; None where it is not offered."""


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def bulk(request: HttpRequest, choice: str) -> HttpResponse:
    """The cases that the list's own filters choose; with POST each that is ticked, and what came of it."""
    try:
        chosen = choice_named(choice)
    except NotFound as missing:
        raise Http404 from missing
    if not chosen.in_bulk:
        raise Http404
    return _post(request, chosen) if request.method == "POST" else _page(request, chosen)


def _post(request: HttpRequest, chosen: Choice) -> HttpResponse:
    membership = membership_of(request)
    texts = request.POST.getlist("item")[:AT_ONCE]
    listed = [row for text in texts if (row := Listed.parse(text)) is not None]
    form = _form(chosen, membership, request.POST)
    if not listed or not form.is_valid():
        return _page(request, chosen, form=form, ticked=set(texts), none=not listed)
    results = choose_many(
        tenant_id=membership.tenant_id, choice=chosen, listed=listed, typed=form.typed(), membership=membership,
        by=person_of(request), clock=db_clock,
    )  # fmt: skip
    return _page(request, chosen, results=results)


@dataclass(frozen=True, slots=True)
class _Of:
    """As much of a case as the forms of many have."""

    tenant_id: UUID
    membership: Membership


def _form(chosen: Choice, membership: Membership, data: Any = None) -> ChoiceForm:
    of: Any = _Of(membership.tenant_id, membership)
    return chosen.make_form(of, data)


def _page(
    request: HttpRequest, chosen: Choice, *, form: ChoiceForm | None = None, ticked: set[str] | None = None,
    none: bool = False, results: Any = None,
) -> HttpResponse:  # fmt: skip
    membership, query = membership_of(request), request.GET
    found = _found(membership.tenant_id, query)
    offset, total = offset_of(query), found.count()
    now = db_clock()
    cases = [of_packet(packet, membership, now) for packet in found[offset : offset + AT_ONCE]]
    items = _items(chosen, cases, ticked)
    here = reverse("repair:bulk", args=[chosen.code])
    errors = bool(none or (form is not None and form.errors))
    context = {
        "choice": chosen, "items": items, "offered": sum(item.why is None for item in items), "total": total,
        "form": form or _form(chosen, membership), "none": none, "now": now, "told": _told(results or (), membership),
        "done": sum(not result.code for result in results or ()), "here": request.get_full_path(),
        "dry": next((item.dry for item in items if item.dry is not None), None),
        "back": same_list(reverse("repair:packets"), query),
        "older": _at(here, query, offset + AT_ONCE) if total > offset + AT_ONCE else "",
        "newest": same_list(here, query) if offset else "",
    }  # fmt: skip
    return render(request, "repair/bulk.html", context, status=422 if errors else 200)


def _found(tenant_id: UUID, query: QueryDict) -> Any:
    """Open packets by the list's own filters, in its order."""
    found = PacketFilter(query, queryset=base_packets(tenant_id), tenant_id=tenant_id).qs
    view = query.get("view", "")
    return found.filter(section=view) if view in SECTIONS else found


def _items(chosen: Choice, cases: list[Case], ticked: set[str] | None) -> list[Item]:
    if not cases:
        return []
    rows = rows_of([case.packet for case in cases], cases[0].now)
    items = []
    for case, row in zip(cases, rows, strict=True):
        why, listed = chosen.rule(case.facts), Listed(case.packet.pk, case.seen).text
        dry = chosen.dry_run(case, None) if why is None else None
        items.append(Item(row, listed, why, why is None and (ticked is None or listed in ticked), dry))
    return items


def _told(results: Any, membership: Membership) -> list[tuple[StoppedRow, Result]]:
    found = packets(membership.tenant_id).in_bulk([result.packet_id for result in results])
    known = [(found[result.packet_id], result) for result in results if result.packet_id in found]
    rows = rows_of([packet for packet, _ in known], db_clock()) if known else ()
    return [(row, result) for row, (_, result) in zip(rows, known, strict=True)]


def _at(here: str, query: QueryDict, offset: int) -> str:
    address = same_list(here, query)
    return f"{address}{'&' if '?' in address else '?'}offset={offset}"
