"""Incidents, to read: which there are, what a search touches, one of them, two of its runs, its report."""

from typing import Any, Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from access.auth import person_of
from access.policies import can_role
from access.web import role_required
from approvals.policies import SEES_PERSONAL
from common.clock import db_clock
from common.disclosure import Recipient
from common.errors import NotFound, Refused
from common.web import http_methods
from repair.choices.case import REPAIRERS
from repair.comparing import compare_runs
from repair.enums import Mark
from repair.incidents.acting import READERS, get_incident, open_incident
from repair.incidents.criteria import LABELS
from repair.incidents.finding import SCANNED, find
from repair.incidents.forms import CriteriaForm, MarkForm, OpenForm, WordsForm
from repair.incidents.report import export_report, report_of
from repair.incidents.screen import found_page, incident_list, incident_screen
from repair.incidents.traces import traces_of
from repair.models_incidents import Incident
from repair.views import membership_of

TYPES: Final = {"json": "application/json", "md": "text/markdown; charset=utf-8"}
ASKED: Final = {*LABELS, "since", "until"}


@http_methods(read=("GET", "HEAD"))
@role_required(*READERS)
@never_cache
def incidents(request: HttpRequest) -> HttpResponse:
    """All of them, the newest first."""
    membership = membership_of(request)
    context = incident_list(membership.tenant_id, request.GET)
    return render(
        request, "repair/incidents/list.html", context | {"may_act": can_role(membership, *REPAIRERS)}
    )


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required(*REPAIRERS)
@never_cache
def new(request: HttpRequest) -> HttpResponse:
    """What something touched, by the address; with POST an incident of it."""
    form = CriteriaForm(request.GET) if ASKED & set(request.GET) else CriteriaForm()
    texts = OpenForm(request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid() or not texts.is_valid():
        return _found(request, form, texts)
    now = db_clock()
    criteria = form.criteria(now)
    if criteria is None:
        return _found(request, form, texts)
    tenant_id = membership_of(request).tenant_id
    try:
        made = open_incident(
            tenant_id=tenant_id, criteria=criteria, texts=texts.texts(), by=person_of(request), clock=db_clock
        )  # fmt: skip
    except Refused as refusal:
        texts.add_error(None, refusal.message)
        return _found(request, form, texts)
    return redirect("repair:incident", made.pk)


def _found(request: HttpRequest, form: CriteriaForm, texts: OpenForm) -> HttpResponse:
    now = db_clock()
    context: dict[str, Any] = {"form": form, "texts": texts, "scanned": SCANNED, "found": None}
    criteria = form.criteria(now) if form.is_bound and form.is_valid() else None
    if criteria is not None:
        found = find(membership_of(request).tenant_id, criteria, now)
        page = found_page(found, request.GET, reverse("repair:new_incident"))
        context |= {
            "found": page, "criteria": criteria.words(), "shared": request.build_absolute_uri(criteria.address()),
            "here": request.get_full_path(),
        }  # fmt: skip
    errors = bool(form.errors or texts.errors)
    return render(request, "repair/incidents/new.html", context, status=422 if errors else 200)


@http_methods(read=("GET", "HEAD"))
@role_required(*READERS)
@never_cache
def incident(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """One of them, with a part of its runs."""
    return incident_page(request, incident_of(request, incident_id))


def incident_page(
    request: HttpRequest, found: Incident, *, status: int = 200, **forms: Any
) -> HttpResponse:  # fmt: skip
    screen = incident_screen(found, membership_of(request), request.GET)
    context = {
        "incident": screen, "now": db_clock(), "mark_form": MarkForm(), "note_form": WordsForm(),
        "contain_form": contain_form(), "refusal": None,
    }  # fmt: skip
    return render(request, "repair/incidents/incident.html", context | forms, status=status)


def contain_form(data: Any = None) -> WordsForm:
    return WordsForm(
        data, label="How you know that the harm is stopped", hint="From then on no run joins.", ids="contain"
    )


@http_methods(read=("GET", "HEAD"))
@role_required(*READERS)
@never_cache
def compare(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """Two of the runs that stand for the others, down to the first difference that means something."""
    found, membership = incident_of(request, incident_id), membership_of(request)
    traces = {trace.name: trace for trace in traces_of(found)}
    left, right = (traces.get(request.GET.get(side, "")) for side in ("left", "right"))
    if left is None or right is None or left.run is None or right.run is None:
        raise Http404
    reader = Recipient(membership.tenant_id, can_role(membership, *SEES_PERSONAL))
    compared = compare_runs(left.run, right.run, reader=reader)
    context = {"incident": found, "left": left, "right": right, "compared": compared}
    return render(request, "repair/incidents/compare.html", context)


@http_methods(read=("GET", "HEAD"))
@role_required(*READERS)
@never_cache
def report(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """What would be taken along, to read."""
    found = incident_of(request, incident_id)
    document = report_of(found, db_clock())
    marks = [(Mark(mark).label, number) for mark, number in document["runs"]["by_mark"].items()]
    context = {"incident": found, "report": document, "marks": marks}
    return render(request, "repair/incidents/report.html", context)


@http_methods(read=(), write=("POST",))
@role_required(*READERS)
@never_cache
def export(request: HttpRequest, incident_id: UUID, kind: str) -> HttpResponse:
    """The report as a file. It is written down who took it, so it is asked for with POST."""
    found = incident_of(request, incident_id)
    made = export_report(
        tenant_id=found.tenant_id, incident_id=found.pk, kind=kind, by=person_of(request), clock=db_clock
    )  # fmt: skip
    name = f"incident-{found.pk}.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(made, content_type=TYPES[kind], headers=headers)


def incident_of(request: HttpRequest, incident_id: UUID) -> Incident:
    """404 for missing ones and for those of others alike."""
    try:
        return get_incident(membership_of(request).tenant_id, incident_id)
    except NotFound as missing:
        raise Http404 from missing
