"""What became of an approval: a command's life, as a fragment that other apps' pages include by address."""

from datetime import datetime
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from access.web import role_required
from common.desk_parts import TrackStep
from common.web import http_methods
from workflows.enums import CommandStatus, HoldReason, VoidReason
from workflows.models import Attempt, Command

C = CommandStatus
ENDED_BADLY: Final = {C.REFUSED: "octagon", C.DEAD: "x-circle", C.CANCELLED: "ban", C.VOID: "shield-x"}


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def progress(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """The steps from approval to receipt. The fragment asks again by itself until the command has ended."""
    found = Command.objects.filter(tenant_id=request.tenant.pk, proposal_id=proposal_id)  # type: ignore[attr-defined]
    command = found.select_related("proposal", "step").first()
    if command is None:
        return HttpResponse(status=204)
    context = {
        "command": command,
        "steps": steps_of(command),
        "final": command.status in C.final_states,
        "says": sentence_of(command),
        "here": reverse("progress", args=[proposal_id]),
    }
    response = render(request, "workflows/includes/progress.html", context)
    if context["final"]:
        response["HX-Trigger"] = "execution-ended"
    return response


def steps_of(command: Command) -> list[TrackStep]:
    """Approved, claimed, sent, and how it ended: what is done, what is under way, what is lost."""
    attempt = command.attempts.order_by("-number").first()
    return [
        TrackStep("Approved", "", "check-circle", "done", command.created_at),
        claimed_step(command, attempt),
        sent_step(command),
        last_step(command),
    ]


def claimed_step(command: Command, attempt: Attempt | None) -> TrackStep:
    if attempt is not None:
        return TrackStep("Claimed", after(command, attempt.claimed_at), "check-circle", "done")
    if command.first_sent_at is not None:
        return TrackStep("Claimed", "", "check-circle", "done")
    if command.status == C.HELD:
        return TrackStep("Held", f"{HoldReason(command.hold_reason).label}. Nothing is lost.", "pause", "now")
    if command.status == C.READY:
        return TrackStep("Claimed", "waits for a worker", "running", "now")
    return TrackStep("Claimed", "was not claimed")


def sent_step(command: Command) -> TrackStep:
    if command.first_sent_at is not None:
        again = f", {command.tries} tries" if command.tries > 1 else ", once"
        return TrackStep("Sent", f"{after(command, command.first_sent_at)}{again}", "check-circle", "done")
    if command.status == C.CLAIMED:
        return TrackStep("Sent", "the contract is checked again", "running", "now")
    if command.status in ENDED_BADLY:
        return TrackStep("Sent", "was not sent")
    return TrackStep("Sent", "once, with a stable key")


def last_step(command: Command) -> TrackStep:
    """The end, or what is waited for."""
    match command.status:
        case C.CONFIRMED:
            note = f"{after(command, command.ended_at)}, {command.provider_reference}"
            return TrackStep("Confirmed", note, "check-circle", "done")
        case C.UNKNOWN:
            return TrackStep("Unknown", "no complete answer came; it is looked up", "unknown", "lost")
        case C.SENT:
            return TrackStep("Confirmed", "waits for the provider's answer", "running", "now")
        case C.RETRY_WAIT:
            return TrackStep("Confirmed", "was not carried out; tried again later", "retry", "now")
        case C.REFUSED | C.DEAD | C.CANCELLED | C.VOID:
            status = C(command.status)
            return TrackStep(status.label, after(command, command.ended_at), ENDED_BADLY[status], "bad")
    return TrackStep("Confirmed", "with the provider's reference")


def sentence_of(command: Command) -> str:
    """Where it stands, in one sentence; an outcome is called unknown until it is settled."""
    match command.status:
        case C.CONFIRMED:
            return f"Done once. The provider confirmed it as {command.provider_reference}."
        case C.UNKNOWN:
            return "It was sent and nobody knows yet whether it happened. Nothing is tried again by itself."
        case C.REFUSED:
            return "The provider refused it. Nothing happened."
        case C.DEAD:
            return "It was given up after its tries. Nothing happened."
        case C.VOID:
            return f"{VoidReason(command.void_reason).label}. Nothing happened."
        case C.CANCELLED:
            return "It was cancelled."
    return "On its way."


def after(command: Command, at: datetime | None) -> str:
    """How long after the approval a boundary was crossed."""
    if at is None:
        return ""
    seconds = (at - command.created_at).total_seconds()
    return f"+ {seconds:,.3f} s"
