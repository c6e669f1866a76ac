"""Ask people anew: the same again, something corrected, or with the data that was missing."""

from typing import Final

from access.selectors import accounts_of
from audit.actors import Actor
from common.clock import Clock
from repair.choices import rules
from repair.choices.case import Case
from repair.choices.declared import Check, Choice, DryRun, Typed
from repair.choices.dry import newest, shown_values
from repair.choices.forms import CorrectForm, DataForm, QuietForm
from workflows.actions.asking_again import ask_again
from workflows.actions.cancelling import supply_data
from workflows.actions.proposing_anew import prepared_anew, propose_anew
from workflows.forms_edits import as_text

NOTHING_SENT: Final = "Nothing leaves this system by this: somebody must approve the new version first."
TODAY: Final = (
    Check("Schema", "checked when the new version is made; what does not fit makes none"),
    Check("Policy", "judged anew, by the policy of today"),
    Check("Record", "read anew from its source, and pinned as it is today"),
    Check("Approval", "none of those before counts"),
)


def _ask_again(case: Case, typed: Typed, by: Actor, clock: Clock) -> str:
    proposal = ask_again(
        tenant_id=case.tenant_id, run_id=case.run.pk, step=case.packet.step, by=by, clock=clock
    )
    return f"Asked again: version {proposal.version} waits for a decision."


def _asked_again(case: Case, typed: Typed | None) -> DryRun:
    assert case.proposal is not None
    return DryRun(
        (
            f"A new version of the proposal is made: {newest(case)}, the same values, today's policy and record.",
            "People decide on it from the start. Its key stays the old one while the action is the same.",
            "What stopped here is closed by it.",
        ),
        sends=shown_values(case.proposal), sends_says="What is asked about. " + NOTHING_SENT, checks=TODAY,
    )  # fmt: skip


def _correct(case: Case, typed: Typed, by: Actor, clock: Clock) -> str:
    proposal = propose_anew(
        tenant_id=case.tenant_id, run_id=case.run.pk, step=case.packet.step, changes=typed["changes"], by=by,
        clock=clock,
    )  # fmt: skip
    return f"Version {proposal.version} waits for a decision. Where you changed something, somebody else decides."


def _corrected(case: Case, typed: Typed | None) -> DryRun:
    assert case.proposal is not None
    changes: Typed = (typed or {}).get("changes", {})
    rows = tuple(
        (name, f"{as_text(case.values.get(name))} → {as_text(value)}") for name, value in changes.items()
    )
    checks = TODAY if typed is None else _prepared(case, changes)
    return DryRun(
        (
            f"A new version of the proposal is made: {newest(case)}, with the values below, judged and approved anew.",
            "Whoever corrects it does not decide on it. What stopped here is closed by it.",
            "A changed action gets a key of its own; it is certain that nothing happened under the old one.",
        ),
        sends=rows, sends_says=("Changed. " if rows else "") + NOTHING_SENT, checks=checks,
    )  # fmt: skip


def _prepared(case: Case, changes: Typed) -> tuple[Check, ...]:
    """As the new version would be prepared now; a refusal of it is raised, for whoever shows the form."""
    assert case.proposal is not None
    prepared = prepared_anew(case.run, case.proposal, changes)
    verdict = prepared.verdict
    asked = asked_words(verdict.needed)
    pins = ", ".join(f"{record} as {tag}" for record, tag in prepared.draft.pins.items()) or "none"
    return (
        Check("Schema", "the values fit", ok=True),
        Check("Policy", f"{verdict.because} By rule {verdict.rule}: {asked}.", ok=True),
        Check("Record", f"read just now; pins: {pins}", ok=True), TODAY[3],
    )  # fmt: skip


def asked_words(needed: int) -> str:
    return (
        "nobody is asked" if not needed else f"{needed} {'person' if needed == 1 else 'people'} must approve"
    )


def _supply(case: Case, typed: Typed, by: Actor, clock: Clock) -> str:
    assert case.step is not None and case.step.wait_id is not None and by.user_id is not None
    supply_data(
        tenant_id=case.tenant_id, run_id=case.run.pk, wait_id=case.step.wait_id, data=typed["data"], by=by, clock=clock,
        side=accounts_of(case.tenant_id, [by.user_id]), late=True,
    )  # fmt: skip
    return "The data is there, and the step begins again with it."


def _supplied(case: Case, typed: Typed | None) -> DryRun:
    return DryRun(
        (
            "What you type is stored with the run, and the step that asked for it begins again.",
            "You do not decide on what is proposed from it.",
        ),
        checks=(Check("Schema", "exactly what the step asked for, and nothing beside it"),),
    )  # fmt: skip


ASK_AGAIN: Final = Choice(
    "ask_again", "Ask again", "The same action, put before people anew.", "inbox", rules.ASK_AGAIN, _asked_again,
    QuietForm, act=_ask_again, resolves=True, in_bulk=True,
)  # fmt: skip
CORRECT: Final = Choice(
    "correct", "Correct it and propose it anew",
    "A new version that others approve: with other values, or, where it was given up, with the same.", "pencil",
    rules.CORRECT, _corrected, CorrectForm, act=_correct, needs=("a reason", "a new approval"), resolves=True,
    preview=True, button="Propose it anew",
)  # fmt: skip
SUPPLY: Final = Choice(
    "supply", "Provide the missing data", "What the step asked its requester for.", "pencil", rules.SUPPLY, _supplied,
    DataForm, act=_supply, needs=("the data", "where it comes from"), resolves=True, button="Provide it",
)  # fmt: skip
FAMILY: Final = (SUPPLY, ASK_AGAIN, CORRECT)
