"""Asking before deciding, and answering. Whatever else was typed, ticked or opened on the page stays as it is."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django_htmx.http import reswap, retarget

from access.web import role_required
from approvals import actions_questions
from approvals.actions_questions import Told, UnknownColleague
from approvals.forms import AskForm, Typed, typed_in
from approvals.policies import check_can_decide
from approvals.screens.bar import bar_for
from approvals.screens.proposal import proposal_screen
from approvals.screens.questions_to_me import questions_screen
from approvals.screens.refused import refusal_in_words
from approvals.screens.standing import Notice
from approvals.views import (
    PANE,
    actor_of,
    attempted,
    membership_of,
    proposal_of,
    proposal_page,
    reader_of,
    refused,
)
from common.clock import db_clock
from common.errors import NotFound, Refused
from common.web import http_methods

ASKED = Notice("act", "chat", "", "Asked. Nothing is decided, and the clock keeps running.")
ANSWERED = Notice("act", "chat", "", "Answered.")


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def to_me(request: HttpRequest) -> HttpResponse:
    """What colleagues ask this person, about proposals that still wait."""
    now = db_clock()
    screen = questions_screen(membership_of(request), now)
    return render(request, "approvals/questions.html", {"screen": screen, "now": now})


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required()
@never_cache
def ask(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """Ask the proposer or a colleague: from the sheet in the bar, or on a page of its own."""
    row = proposal_of(request, proposal_id)
    if request.method != "POST":
        barred = attempted(lambda: check_can_decide(row, actor_of(request)))
        return ask_page(request, proposal_id, Typed(), barred if isinstance(barred, Refused) else None)
    typed, form = typed_in(request.POST), AskForm(request.POST)

    def send() -> Told:
        check_can_decide(row, actor_of(request))
        if not form.is_valid():
            raise UnknownColleague
        return actions_questions.ask(
            tenant_id=row.tenant_id, proposal_id=row.pk, text=form.cleaned_data["question_text"],
            colleague=form.cleaned_data["ask_of"], by=actor_of(request), clock=db_clock,
        )  # fmt: skip

    told = attempted(send)
    alone = "alone" in request.POST
    if isinstance(told, Refused):
        return (
            ask_page(request, proposal_id, typed, told)
            if alone
            else not_told(request, proposal_id, typed, told)
        )
    if alone:
        messages.info(request, ASKED.text, "act")
        return redirect("approvals:proposal", proposal_id)
    return told_page(request, proposal_id, typed.without_question(), ASKED)


@http_methods(read=(), write=("POST",))
@role_required()
@never_cache
def answer(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """Answer a question that one was asked, or that was asked of the side that one stands on."""
    row = proposal_of(request, proposal_id)
    typed, asked = typed_in(request.POST), request.POST.get("question", "")
    try:
        question_id = UUID(asked)
    except ValueError:
        raise Http404 from None
    told = attempted(lambda: actions_questions.answer(
        tenant_id=row.tenant_id, proposal_id=row.pk, question_id=question_id, text=typed.answer_to(asked),
        by=actor_of(request), clock=db_clock,
    ))  # fmt: skip
    if isinstance(told, NotFound):
        raise Http404
    if isinstance(told, Refused):
        return not_told(request, proposal_id, typed, told)
    return told_page(request, proposal_id, typed.without_answer(asked), ANSWERED)


def told_page(request: HttpRequest, proposal_id: UUID, typed: Typed, toast: Notice) -> HttpResponse:
    """The list with what is new, and the sheet shut and empty; without script the page with all that was typed."""
    row, reader = proposal_of(request, proposal_id), reader_of(request, typed)
    if not request.htmx:  # type: ignore[attr-defined]
        messages.info(request, toast.text, "act")
        if typed.is_nothing:
            return redirect("approvals:proposal", proposal_id)
        return proposal_page(request, row, reader, typed=typed)
    screen = proposal_screen(row, reader, typed.acknowledged)
    bar = bar_for(screen, actor_of(request), typed=typed)
    asked = toast is ASKED
    context = {
        "page": screen, "bar": bar, "toast": toast, "whole": request.POST.get("in") != PANE, "asked": asked,
        "focus": not asked,
    }  # fmt: skip
    return render(request, "approvals/includes/asked.html", context)


def not_told(request: HttpRequest, proposal_id: UUID, typed: Typed, refusal: Refused) -> HttpResponse:
    """Refused as a decision is: in the bar, with what was written."""
    response = refused(request, proposal_id, typed, refusal)
    if request.htmx:  # type: ignore[attr-defined]
        response = reswap(retarget(response, "#decide"), "outerHTML")
    return response


def ask_page(
    request: HttpRequest, proposal_id: UUID, typed: Typed, refusal: Refused | None = None
) -> HttpResponse:
    """The form on a page of its own."""
    screen = proposal_screen(proposal_of(request, proposal_id), reader_of(request))
    bar = bar_for(screen, actor_of(request), typed=typed)
    told = refusal_in_words(screen, refusal) if refusal else None
    context = {"page": screen, "bar": bar, "refusal": told}
    return render(request, "approvals/ask.html", context, status=refusal.http_status if refusal else 200)
