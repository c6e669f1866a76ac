"""What one event of a run says, as the predicate of a sentence whose subject is whoever did it."""

from collections.abc import Mapping
from typing import Any, Final

from audit.detail import VIA
from audit.models import Event
from audit.names import spoken
from audit.tables import moved
from audit.through import Named, way
from common.display import visible
from workflows.enums import SettledBy, Testimony
from workflows.screens.words import code_words, step_words

SAID: Final = {"approve": "said yes", "reject": "said no", "request_changes": "asked for changes"}
TESTIMONY: Final = {one.value: one.label.lower() for one in Testimony}
SETTLED: Final = {one.value: one.label.lower() for one in SettledBy}
PREDICATES: Final[Mapping[str, str]] = {
    "attempt.late_evidence": "brought an answer after the order was no longer theirs ({meaning}); it was kept",
    "callback.delivered": "called the requester back",
    "callback.given_up": "gave up calling the requester back",
    "callback.sent_again": "had the requester called back again",
    "callback.superseded": "dropped a call to the requester: there is a newer state",
    "command.attested": "gave their word about the outcome: {says}",
    "command.attestation_refused": "was refused when they gave their word about the outcome",
    "command.cancelled": "cancelled the order",
    "command.claimed": "took the order and checked everything again",
    "command.confirmed": "stored that it happened; settled by: {settled_by}",
    "command.dead": "gave the order up after too many tries; nothing happened",
    "command.held": "held the order back; nothing is sent",
    "command.looked_up": "looked at the provider whether it had happened: {finding}",
    "command.look_up_asked": "asked for a look-up at the provider",
    "command.ready": "set off the order to {operation}",
    "command.refused": "stored that the provider refused; nothing happened",
    "command.retry_wait": "stored that this try changed nothing; it is tried again",
    "command.sent": "committed the order as sent and called the provider, request {tries}",
    "command.unknown": "stored that nobody knows whether it happened",
    "command.void": "stopped the order before anything was sent",
    "document.opened": "opened the protected document ({kind})",
    "incident.joined": "made this run part of an incident",
    "incident.frozen": "froze this run because of an incident",
    "incident.marked": "said what was found about this run in an incident",
    "packet.awaiting_second": "chose a way on that a second person must confirm",
    "packet.choice_refused": "was refused a choice about how to go on",
    "packet.chosen": "chose how to go on",
    "packet.exported": "took the case along as a file",
    "packet.opened": "stopped here and asked for a person",
    "packet.raised_again": "asked for a person again",
    "packet.resolved": "closed the case",
    "proposal.approved": "approved: with this the votes were enough",
    "proposal.carried_over": "kept the approval for an equal plan that came again",
    "proposal.changes_requested": "sent the proposal back for changes",
    "proposal.consumed": "marked the approval as used",
    "proposal.decision_refused": "tried to decide and was refused",
    "proposal.edited": "changed arguments, which made another version",
    "proposal.escalated": "asked more people",
    "proposal.expired": "let the proposal expire: nobody had decided in time",
    "proposal.held": "took the proposal to read it",
    "proposal.invalidated": "made the proposal invalid",
    "proposal.lapsed": "let the approval lapse: the time to send had passed",
    "proposal.made": "proposed {operation}, version {operation_version}; {needed} needed, by rule {rule} of policy "
    "version {policy_version}",
    "proposal.manned": "found enough people to decide again",
    "proposal.question_answered": "answered a question",
    "proposal.question_asked": "asked a question about it",
    "proposal.rejected": "rejected the proposal",
    "proposal.rejection_lifted": "lifted a remembered rejection",
    "proposal.rejection_remembered": "had the rejection remembered",
    "proposal.released": "gave the proposal back",
    "proposal.signed": "signed it with their passkey",
    "proposal.superseded": "replaced the proposal by another version",
    "proposal.taken_over": "took the proposal over from {from}",
    "proposal.unmanned": "found too few people to decide in time",
    "proposal.vote": "{kind}",
    "proposal.votes_dropped": "made a version for which earlier votes do not count",
    "proposal.withdrawn": "took the proposal back",
    "run.cancel_requested": "asked for the run to be cancelled",
    "run.content_erased": "erased what the run held; digests, times and names stay",
    "run.content_held": "kept the run's content from being erased",
    "run.content_released": "let the run's content be erased again",
    "run.data_supplied": "supplied data that was asked for",
    "run.duplicate_prevented": "sent the same event again; no second run was made",
    "run.outcome_corrected": "corrected the outcome",
    "run.queued": "asked for this run",
    "run.record_looked": "looked at the record as it stands now",
    "run.replayed": "replayed the run",
    "run.rest_proposed": "had the rest of it proposed",
    "run.undo_proposed": "had it proposed to take the effect back",
    "sample.drawn": "drew this automatic action for a look afterwards",
    "sample.said": "said about it afterwards: {verdict}",
    "step.asked_again": "asked people again",
    "step.corrected": "proposed a corrected version",
    "step.late_result_dropped": "brought a result that came too late and was dropped",
    "step.not_repeated": "did not repeat the step: its effect stands from the original run",
    "step.previously_rejected": "asked nobody: the same had been rejected before",
}
"""Kinds that are no mere move of a run or a step; those are said by their states."""
MINOR: Final = ("command.claimed", "proposal.consumed")
"""What merely follows: shown small, like the moves of runs and steps."""


class _Known(dict[str, str]):
    """What a body does not say is not invented."""

    def __missing__(self, name: str) -> str:
        return "not noted"


def predicate(event: Event, names: Mapping[str, str]) -> str:
    """What was done: *said yes*, *committed the order as sent*."""
    return PREDICATES[event.kind].format_map(_Known(_values(event, names)))


def sentence(event: Event, names: Mapping[str, str], ways: Mapping[str, Named]) -> str:
    """Who, by what way, for whom, did what, moving what, and why as far as a code says it.

    Where a run or a step only went on, it stands first: the person whose decision moved it did not do that.
    """
    for_whom = f" on behalf of {spoken(event.on_behalf_of, names)}" if event.on_behalf_of else ""
    came = way(event.through, ways) or VIA.get(event.via, visible(event.via))
    who = f"{spoken(event.performed_by, names)}, {came}{for_whom}"
    change = moved(event)
    why = f" Reason: {code_words(visible(event.reason))}." if event.reason else ""
    if event.kind not in PREDICATES:
        return f"{_thing(event)}: {change or _what(event)}, by {who}.{why}"
    led = f" ({change})" if event.from_state and change else ""
    return f"{_begun(who)}, {predicate(event, names)}{led}.{why}"


def _begun(who: str) -> str:
    """Our own words begin a sentence; names and codes stay as they are."""
    return (
        who[:1].upper() + who[1:]
        if who.startswith(("worker ", "the clock ", "rule ", "command line "))
        else who
    )


def is_minor(event: Event) -> bool:
    """Whether it only says that things went on."""
    return event.kind not in PREDICATES or event.kind in MINOR


def _thing(event: Event) -> str:
    body = event.body if isinstance(event.body, dict) else {}
    if event.subject_type == "step" and body.get("key"):
        return f"The step {step_words(visible(str(body['key'])))}"
    return f"The {visible(event.subject_type).replace('_', ' ')}"


def _what(event: Event) -> str:
    return visible(event.kind).partition(".")[2].replace("_", " ")


def _values(event: Event, names: Mapping[str, str]) -> dict[str, str]:
    body: Mapping[str, Any] = event.body if isinstance(event.body, dict) else {}
    values = {str(name): visible(str(value)) for name, value in body.items() if value not in (None, "")}
    if event.kind == "proposal.vote":
        values["kind"] = SAID.get(values.get("kind", ""), values.get("kind", "voted"))
    if event.kind == "proposal.made":
        needed = values.get("needed", "")
        values["needed"] = "one approval is" if needed == "1" else f"{needed} approvals are"
    if "from" in body:
        values["from"] = spoken(str(body["from"]), names)
    values |= {"says": TESTIMONY.get(values.get("says", ""), values.get("says", "not noted"))}
    values |= {"settled_by": SETTLED.get(values.get("settled_by", ""), "not noted")}
    return {
        name: code_words(value) if name in ("finding", "meaning", "verdict") else value
        for name, value in values.items()
    }
