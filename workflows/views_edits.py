"""Edit a proposal: the form with its arguments, and the new version that comes of it."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from access.web import role_required
from approvals.models import Proposal
from approvals.policies import check_is_open
from approvals.screens.proposal import proposal_screen
from approvals.screens.refused import refusal_in_words
from approvals.views import actor_of, attempted, proposal_of, reader_of
from common.clock import db_clock
from common.errors import Refused
from common.web import http_methods
from workflows import registry
from workflows.actions.asking_again import arguments_of
from workflows.actions.editing import Edit, NotEditable, check_may_edit
from workflows.actions.editing import edit as make_edit
from workflows.actions.outside import InvalidArguments
from workflows.forms_edits import EditForm

MADE = "The new version waits for somebody else. You edited it, so you do not decide on it."


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required()
@never_cache
def edit(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """The form; with POST the new version, or the form with what was typed, and what is wrong or who was faster."""
    row = proposal_of(request, proposal_id)
    form = attempted(lambda: _form(request, row))
    if isinstance(form, Refused):
        return edit_page(request, row, None, form)
    if request.method != "POST":
        late = attempted(lambda: check_is_open(row, db_clock()))
        return edit_page(request, row, form, late if isinstance(late, Refused) else None)
    if not form.is_valid():
        return edit_page(request, row, form, None)
    changes = Edit(form.cleaned_data["digest"], form.changes())
    made = attempted(lambda: make_edit(
        tenant_id=row.tenant_id, proposal_id=row.pk, edit=changes, by=actor_of(request), clock=db_clock
    ))  # fmt: skip
    if isinstance(made, Refused):
        if isinstance(made, InvalidArguments):
            form.tell(made.details["errors"])
        return edit_page(request, proposal_of(request, proposal_id), form, made)
    messages.info(request, MADE, "act")
    return redirect("approvals:proposal", made.pk)


def _form(request: HttpRequest, row: Proposal) -> EditForm:
    """Raises the refusals of deciding, NotEditable, ContractChanged."""
    check_may_edit(row, actor_of(request))
    if not registry.editable(row):
        raise NotEditable()
    operation = registry.operation(row.operation)
    return EditForm(
        operation, arguments_of(row), row.digest, request.POST if request.method == "POST" else None
    )


def edit_page(
    request: HttpRequest, row: Proposal, form: EditForm | None, refusal: Refused | None
) -> HttpResponse:
    """``form`` is none for those who may not edit it."""
    screen = proposal_screen(row, reader_of(request))
    told = refusal_in_words(screen, refusal) if refusal else None
    status = refusal.http_status if refusal else 422 if form is not None and form.errors else 200
    context = {
        "page": screen,
        "form": form,
        "refusal": told,
        "newer": row.successors.first() if refusal else None,
    }
    return render(request, "workflows/edit.html", context, status=status)
