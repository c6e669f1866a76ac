"""What became of it: ask the provider now, say it oneself, or send the same request once more."""

from collections.abc import Callable
from typing import Final

from audit.actors import Actor
from common.clock import Clock
from repair.choices import rules
from repair.choices.case import Case
from repair.choices.declared import Check, Choice, DryRun, Typed
from repair.choices.dry import checks_of, late_until, title_of_order, what_is_sent
from repair.choices.forms import EffectForm, NoEffectForm, QuietForm
from workflows.actions.attesting import attest, people_needed, standing_words
from workflows.actions.looking_up import look_up_now
from workflows.enums import Testimony

SECOND: Final = "a second person, from the operation's limit on"
EVIDENCE: Final = ("the provider's reference", "how you know", SECOND)


def _look_up(case: Case, typed: Typed, by: Actor, clock: Clock) -> str:
    assert case.command is not None
    look_up_now(tenant_id=case.tenant_id, command_id=case.command.pk, by=by, clock=clock)
    return "The provider is asked in a moment; what it says appears here."


def _looked_up(case: Case, typed: Typed | None) -> DryRun:
    assert case.command is not None
    until, says = late_until(case)
    finds = [
        "The worker asks the provider, by the key, what became of " + title_of_order(case) + ".",
        "It happened: that is recorded with the provider's reference, and the run goes on.",
    ]
    if until is not None:
        finds.append("Not found: that counts from the time below on, and settles nothing before.")
    else:
        finds.append(
            "Not found: nothing happened. It is then sent, held or void by the checks below, never blindly."
        )
    finds.append(
        "No answer: it stays unknown; with the same key it is sent again only where “send again” is offered here."
    )
    return DryRun(
        tuple(finds), sends=(("Look-up by key", case.command.idempotency_key),),
        sends_says="Only a question leaves this system. It can cause nothing.", checks=checks_of(case), until=until,
        until_says=says,
    )  # fmt: skip


def _say(testimony: Testimony) -> "Callable[[Case, Typed, Actor, Clock], str]":
    def act(case: Case, typed: Typed, by: Actor, clock: Clock) -> str:
        assert case.command is not None
        attested = attest(
            tenant_id=case.tenant_id, command_id=case.command.pk, says=testimony, by=by, clock=clock,
            reference=typed.get("reference", ""), reason=typed["words"],
        )  # fmt: skip
        if attested.settled:
            return "Recorded, and the outcome is settled by it."
        return "Recorded. A second person must say the same: until then nothing moves."

    return act


def _people(case: Case) -> Check:
    assert case.command is not None and case.of_order is not None
    needed = people_needed(case.of_order, case.command) if case.operation is not None else 2
    given = len(standing_words(case.command))
    words = (
        "one person's word is enough"
        if needed == 1
        else "two people must say the same, with the same reference"
    )
    return Check("People", f"{words}; {given} {'word stands' if given == 1 else 'words stand'} so far")


def _happened(case: Case, typed: Typed | None) -> DryRun:
    until, says = late_until(case)
    return DryRun(
        (
            f"{title_of_order(case)} counts as done, with the reference that you give; it is never sent again.",
            "The step is complete and the run goes on with what comes after it.",
        ),
        checks=(_people(case),), until=until, until_says=says,
    )  # fmt: skip


def _in_part(case: Case, typed: Typed | None) -> DryRun:
    until, says = late_until(case)
    return DryRun(
        (
            f"{title_of_order(case)} counts as done in part, with the reference that you give; it is never sent again.",
            "What is left of it is a new action, proposed and approved by itself. The run goes on.",
        ),
        checks=(_people(case),), until=until, until_says=says,
    )  # fmt: skip


def _did_not_happen(case: Case, typed: Typed | None) -> DryRun:
    until, says = late_until(case)
    if case.facts.cancel_wished:
        changes: tuple[str, ...] = (
            "Nothing happened, and the run is to be cancelled: the order is cancelled, nothing is sent.",
        )
        return DryRun(changes, checks=(_people(case),), until=until, until_says=says)
    checks = (_people(case), *checks_of(case))
    if case.failed:
        return DryRun(
            (
                f"Nothing happened, and nothing is sent: {rules.FAILED[case.failed]}",
                "A person is then asked whether to ask again.",
            ),
            checks=checks, until=until, until_says=says,
        )  # fmt: skip
    if case.hold is not None:
        return DryRun(
            ("Nothing happened. The order is held until the freeze or circuit ends, and then checked and sent.",),
            checks=checks, until=until, until_says=says,
        )  # fmt: skip
    return DryRun(
        (
            "Nothing happened. The order is ready again.",
            "A worker checks everything once more and then sends it, with the same key.",
        ),
        sends=what_is_sent(case), sends_says="This request, once, when every check holds again at that moment:",
        checks=checks, until=until, until_says=says,
    )  # fmt: skip


def _sent_again(case: Case, typed: Typed | None) -> DryRun:
    until, says = late_until(case)
    return DryRun(
        (
            "The worker first asks the provider what became of it.",
            "Only where that has no answer, the same request is sent once more.",
            "A provider that knows the key answers what came of the first request, or does it now for the first time.",
            "Only a yes settles it: a refusal of the second request says nothing about the first.",
        ),
        sends=what_is_sent(case), sends_says="At most this request, once:", checks=checks_of(case), until=until,
        until_says=says,
    )  # fmt: skip


LOOK_UP: Final = Choice(
    "look_up", "Look it up at the provider now", "It is asked by itself too, less and less often. This asks now.",
    "search", rules.LOOK_UP, _looked_up, QuietForm, act=_look_up, in_bulk=True, button="Look it up now",
)  # fmt: skip
HAPPENED: Final = Choice(
    "happened", "Confirm that it happened", "You have found the effect at the provider.", "check-circle",
    rules.HAPPENED, _happened, EffectForm, act=_say(Testimony.HAPPENED), needs=EVIDENCE,
    danger=True, resolves=True, button="It happened",
)  # fmt: skip
PARTIAL: Final = Choice(
    "partial", "It happened in part", "The provider did less than what was approved.", "layers", rules.HAPPENED,
    _in_part, EffectForm, act=_say(Testimony.PARTIAL), needs=EVIDENCE, danger=True,
    resolves=True,
)  # fmt: skip
DID_NOT_HAPPEN: Final = Choice(
    "did_not_happen", "Confirm that it did not happen",
    "You have looked at the provider: there is nothing. It is then sent again with the same key, after every check.",
    "x-circle", rules.DID_NOT_HAPPEN, _did_not_happen, NoEffectForm, act=_say(Testimony.DID_NOT_HAPPEN),
    needs=("how you know", SECOND), danger=True, resolves=True, button="It did not happen",
)  # fmt: skip
SEND_AGAIN: Final = Choice(
    "send_again", "Send it again with the same key", "For a provider that surely still knows the key.", "retry",
    rules.SEND_AGAIN, _sent_again, act=_look_up, needs=("a reason",), danger=True, button="Send it again",
)  # fmt: skip
FAMILY: Final = (LOOK_UP, HAPPENED, PARTIAL, DID_NOT_HAPPEN, SEND_AGAIN)
