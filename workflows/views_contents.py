"""What is kept and for how long: legal holds, and erasing what is kept about a person. For admins, read by auditors."""

from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from access.screens.asking import (
    Asked,
    actor_of,
    ask,
    do_and_say,
    is_sure,
    made_from,
    may_change,
    or_404,
    proven,
    reader_of,
    reads,
    uuid_or_404,
    writes,
)
from audit.names import names_of, spoken
from common.clock import db_clock
from common.deadline import Deadline
from common.errors import Refused
from workflows import registry
from workflows.actions.contents_searched import searched
from workflows.actions.erasing import erase_content, hold_content, release_content
from workflows.actions.erasing_deliveries import erase_quarantined, quarantined_bodies
from workflows.actions.legal_holds import lift_legal_hold, place_legal_hold
from workflows.content_search import Mentions, mentions
from workflows.forms_contents import NewLegalHold, Reference, WordForm
from workflows.models import LegalHold, Run
from workflows.selectors_contents import MOST, Kept, holds_in_force, kept, runs_about, runs_held, runs_named

TAB: Final = "contents"
LOOK_S: Final = 8.0
PAGE: Final = "workflows/contents/contents.html"


@reads
def contents(request: HttpRequest) -> HttpResponse:
    """Retention, holds, and the runs that ``about`` names."""
    about = request.GET.get("about", "").replace("\0", "").strip()[:200]
    found = runs_about(reader_of(request).tenant_id, about)
    return _page(request, about=about, rows=kept(found[:MOST], {}), more=len(found) > MOST)


@writes
@proven("contents:contents")
def find(request: HttpRequest) -> HttpResponse:
    """The runs in whose contents a word stands. That it was looked for is written down; the word is not."""
    form = WordForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return _page(request, form=form, status=422 if form.errors else 200)
    tenant_id = reader_of(request).tenant_id
    found = mentions(tenant_id, form.cleaned_data["word"], Deadline.after(LOOK_S))
    searched(tenant_id=tenant_id, found=len(found.places), why=form.cleaned_data["why"], by=actor_of(request))
    runs = runs_named(tenant_id, list(found.places))
    rows = kept(runs[:MOST], found.places)
    return _page(request, rows=rows, more=len(runs) > MOST, looked=found, form=WordForm())


def _page(request: HttpRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    tenant_id = reader_of(request).tenant_id
    holds = holds_in_force(tenant_id)
    names = names_of({one.placed_by for one in holds} | {one.person for one in holds if one.person})
    looked: Mentions | None = more.get("looked")
    runs = {row.run.pk for row in more.get("rows", ())}
    context = {
        "about": "", "rows": [], "form": WordForm(), "retention": _retention(), "may_change": may_change(request),
        "holds": [(one, _scope(one, names), spoken(one.placed_by, names)) for one in holds],
        "held": runs_held(tenant_id), "quarantined": quarantined_bodies(tenant_id), "most": MOST,
        "elsewhere": len(set(looked.places) - runs) if looked and not more.get("more") else 0,
        "erasable": sum(1 for row in more.get("rows", ()) if not row.state),
    }  # fmt: skip
    return render(request, PAGE, context | more, status=status)


def _scope(hold: LegalHold, names: Any) -> str:
    return f"person {spoken(hold.person, names)}" if hold.person else hold.scope


def _retention() -> list[tuple[str, str]]:
    """By workflow, in words."""
    default = settings.PLACET_RETENTION_DAYS
    others = f"{default} days after the end of the run" if default else "until somebody erases it"
    own = [(flow.title, flow.contract.retention) for flow in registry.workflows()]
    said = [(title, f"{span.days} days after the end of the run") for title, span in own if span is not None]
    return [*said, ("All others" if said else "All workflows", others)]


@writes
@proven("contents:contents")
def erase(request: HttpRequest) -> HttpResponse:
    """First what would go, run by run; then it goes, each in a transaction of its own, and what stays is named."""
    tenant_id = reader_of(request).tenant_id
    ids = [uuid_or_404(text) for text in request.POST.getlist("run")][: MOST + 1]
    if not ids:
        messages.info(request, "Nothing was ticked, so nothing was done.", "wait")
        return redirect("contents:contents")
    rows = kept(runs_named(tenant_id, ids)[:MOST], {})
    or_404(rows or None)
    form = Reference(request.POST if is_sure(request) else None)
    asked = _erasing(rows, form)
    if not is_sure(request):
        return ask(request, asked)
    if not form.is_valid():
        return ask(request, asked, status=422)
    done, stays = _erase_each(request, rows, form.cleaned_data["why"])
    said = f"{done} of {len(rows)} erased." + (f" Not erased: {stays}" if stays else "")
    messages.info(request, said, "ok" if done else "wait")
    return redirect("contents:contents")


def _erasing(rows: list[Kept], form: Reference) -> Asked:
    stay = sum(1 for row in rows if row.state)
    points = [
        f"{', '.join((row.run.workflow, *row.targets))}, {row.run.pk}: {row.says}{_why_not(row)}"
        for row in rows
    ]
    points += [
        "Digests, times, states, decisions and the history stay, and so does the proof. Nothing brings the rest back.",
        "Backups that were made before still have it: let them run out.",
    ]
    if stay:
        points.append(f"{stay} of them will not be erased, for the reason beside each.")
    return Asked(
        title="Erase", sentence=f"Erase what {_so_many(len(rows) - stay)} held?", points=points,
        button="Erase for good",
        back=reverse("contents:contents"), form=form, tab=TAB, hidden=[("run", str(row.run.pk)) for row in rows],
    )  # fmt: skip


def _so_many(count: int) -> str:
    return "one run" if count == 1 else f"{count} runs"


def _why_not(row: Kept) -> str:
    why = {"held": "a legal hold keeps it", "in_use": "it is not over", "erased": "it was erased before"}
    return f" (stays: {why[row.state]})" if row.state else ""


def _erase_each(request: HttpRequest, rows: list[Kept], why: str) -> tuple[int, str]:
    done, stays = 0, []
    for row in rows:
        about = {"tenant_id": row.run.tenant_id, "run_id": row.run.pk}
        try:
            done += erase_content(**about, why=why, by=actor_of(request), clock=db_clock).done
        except Refused as refusal:
            stays.append(f"{row.run.pk}: {refusal.message}")
    return done, " ".join(stays[:5])


@writes
@proven("contents:contents")
def erase_webhooks(request: HttpRequest) -> HttpResponse:
    """The bodies of webhooks that were quarantined."""
    tenant_id = reader_of(request).tenant_id
    form = Reference(request.POST if is_sure(request) else None)
    asked = Asked(
        title="Erase", sentence="Erase the bodies of all quarantined webhooks?",
        points=["They were signed and not understood, and started nothing: nobody can say whom they are about.",
                "When each came, from where, and why it was not understood stay."],
        button="Erase for good", back=reverse("contents:contents"), form=form, tab=TAB,
    )  # fmt: skip
    return do_and_say(
        request, asked, "Erased.",
        lambda why: erase_quarantined(tenant_id=tenant_id, why=why, by=actor_of(request)),
    )  # fmt: skip


@writes
@proven("contents:new_hold")
def new_hold(request: HttpRequest) -> HttpResponse:
    """A legal hold over a target, a record, a person or everything."""
    tenant_id = reader_of(request).tenant_id
    form = NewLegalHold(request.POST or None, tenant_id=tenant_id)
    made, status = made_from(request, form, lambda: place_legal_hold(
        tenant_id=tenant_id, why=form.cleaned_data["why"], by=actor_of(request), clock=db_clock, **form.scope()
    ))  # fmt: skip
    if made is not None:
        messages.info(request, "Held: nothing within it is erased from now on.", "ok")
        return redirect("contents:contents")
    return render(request, "workflows/contents/new_hold.html", {"form": form}, status=status)


@writes
@proven("contents:contents")
def lift_hold(request: HttpRequest, legal_hold_id: UUID) -> HttpResponse:
    """End it."""
    tenant_id = reader_of(request).tenant_id
    found: LegalHold = or_404(LegalHold.objects.filter(tenant_id=tenant_id, pk=legal_hold_id).first())
    form = Reference(request.POST if is_sure(request) else None)
    asked = Asked(
        title="Legal hold", sentence=f"Lift the legal hold of {found.scope}?",
        points=[f"It was placed under {found.why}.", "What is over its time is erased within minutes, for good."],
        button="Lift it", back=reverse("contents:contents"), form=form, tab=TAB,
    )  # fmt: skip
    return do_and_say(
        request, asked, "Lifted.",
        lambda why: lift_legal_hold(
            tenant_id=tenant_id, hold_id=found.pk, why=why, by=actor_of(request), clock=db_clock
        ),
    )  # fmt: skip


@writes
@proven("contents:contents")
def hold_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Keep one run, and what follows it."""
    found = _run(request, run_id)
    form = Reference(request.POST if is_sure(request) else None)
    asked = Asked(
        title="Legal hold", sentence=f"Keep what the run {found.pk} holds?",
        points=["Neither its retention nor a person erases it while the hold stands, nor what follows it."],
        button="Keep it", back=_back(found), form=form, tab=TAB, harmless=True,
    )  # fmt: skip
    about: dict[str, Any] = {"tenant_id": found.tenant_id, "run_id": found.pk, "by": actor_of(request)}
    return do_and_say(
        request, asked, "Held.", lambda why: hold_content(**about, reason=why, clock=db_clock)
    )  # fmt: skip


@writes
@proven("contents:contents")
def release_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """End the hold of one run."""
    found = _run(request, run_id)
    form = Reference(request.POST if is_sure(request) else None)
    asked = Asked(
        title="Legal hold", sentence=f"Lift the hold of the run {found.pk}?",
        points=["Its retention counts again, and it may be erased."],
        button="Lift it", back=_back(found), form=form, tab=TAB,
    )  # fmt: skip
    about: dict[str, Any] = {"tenant_id": found.tenant_id, "run_id": found.pk, "by": actor_of(request)}
    return do_and_say(request, asked, "Lifted.", lambda why: release_content(**about, reason=why))


def _run(request: HttpRequest, run_id: UUID) -> Run:
    found: Run = or_404(Run.objects.filter(tenant_id=reader_of(request).tenant_id, pk=run_id).first())
    return found


def _back(run: Run) -> str:
    return f"{reverse('contents:contents')}?about={run.pk}"
